import type { CallerOptions } from "../applications/caller.js";
import type { Pending } from "../lib/pending.js";
import type { ProviderCatalog } from "../providers/provider.js";
import type { Sealer } from "../sealing/seal.js";
import type { ConnectionStore } from "./connection.js";
import type { OAuthClientStore } from "./oauth-client.js";
import type { Tickets } from "./tickets.js";
import type { TokenEndpointAnswer } from "./token-answer.js";
import type { TokenEndpoint } from "./token-endpoint.js";
import type { TokenRequest } from "./token-request.js";

/** What became of an attempt to connect or disconnect; for the log. */
interface ConnectEvent {
  readonly what: "connect" | "disconnect";
  readonly applicationId: string;
  readonly provider: string;
  /** `success`, an OAuth error code, or what became of the token at the provider. */
  readonly outcome: string;
}

/** What making and ending connections needs; everything is a value or an interface. */
export interface AuthorizationOptions extends CallerOptions {
  readonly catalog: ProviderCatalog;
  readonly connections: Pick<ConnectionStore, "find" | "put" | "list" | "delete">;
  readonly oauthClients: Pick<OAuthClientStore, "find" | "list">;
  readonly sealer: Sealer;
  readonly tickets: Tickets;
  readonly pending: Pending;
  /** Asks an authorization server; rejects when there is no answer. Has a deadline of its own. */
  readonly send: (endpoint: TokenEndpoint, request: TokenRequest) => Promise<TokenEndpointAnswer>;
  /** `https://relay.example.com`, without a slash at the end; undefined when the operator has to say it first. */
  readonly publicUrl: () => string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onEvent: (event: ConnectEvent) => void;
  readonly onFault: (where: string, error: unknown) => void;
}
