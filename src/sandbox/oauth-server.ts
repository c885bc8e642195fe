import type { AuthorizationCodes } from "./authorization-codes.js";
import type { Client } from "./client-authentication.js";
import type { Grants } from "./grants.js";

/** What the endpoints of the authorization server share. */
export interface OAuthServer {
  readonly clients: readonly Client[];
  readonly grants: Grants;
  readonly codes: AuthorizationCodes;
}
