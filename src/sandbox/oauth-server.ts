import type { Answer } from "./answer.js";
import type { AuthorizationCodes } from "./authorization-codes.js";
import type { Client } from "./client-authentication.js";
import type { Grants } from "./grants.js";
import type { SandboxRequest } from "./sandbox-request.js";

/** Hears of each answer of the token endpoint, after the tokens have changed; it is sent when this resolves. */
export type HoldTokenAnswer = (received: SandboxRequest, answer: Answer) => Promise<void>;

/** What the endpoints of the authorization server share. */
export interface OAuthServer {
  readonly clients: readonly Client[];
  readonly grants: Grants;
  readonly codes: AuthorizationCodes;
  readonly holdTokenAnswer?: HoldTokenAnswer | undefined;
}
