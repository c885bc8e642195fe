import type { ApplicationStore } from "../applications/application.js";
import type { ConnectionStore } from "../tokens/connection.js";
import type { OAuthClientStore } from "../tokens/oauth-client.js";
import type { Sealer } from "../tokens/seal.js";
import type { WebhookStore } from "../webhooks/webhook-store.js";
import type { AuditStamp } from "./audit-stamp.js";

/** What the stored things of operators are changed with, by the administration port and by commands alike. */
export interface Administration {
  /** Who does it: the name of an admin token, or `cli:` and the operating system's user. */
  readonly actor: string;
  readonly store: AdministeredStore;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newAuditStamp: () => AuditStamp;
}

/** The part of the store that operators change. */
export interface AdministeredStore {
  readonly applications: ApplicationStore;
  readonly connections: ConnectionStore;
  readonly oauthClients: OAuthClientStore;
  readonly webhooks: WebhookStore;
}
