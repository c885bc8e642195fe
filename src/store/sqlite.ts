import type { ApplicationStore } from "../applications/application.js";
import type { TicketStore } from "../authorization/ticket.js";
import type { ConnectionStore } from "../tokens/connection.js";
import type { OAuthClientStore } from "../tokens/oauth-client.js";
import type { WebhookStore } from "../webhooks/webhook-store.js";
import { createApplicationStore } from "./applications.js";
import { createAttempt } from "./attempt.js";
import { createConnectionStore } from "./connections.js";
import { createKeyCheckStore, type KeyCheckStore } from "./key-checks.js";
import { createOAuthClientStore } from "./oauth-clients.js";
import { openDatabase } from "./open-database.js";
import { createRowCaches } from "./row-cache.js";
import { createSealedRows, type SealedRows } from "./sealed-rows.js";
import { createTicketStore } from "./tickets.js";
import { createWebhookStore } from "./webhooks.js";

/** The store in one SQLite file. Several processes of one machine may share it. */
export interface SqliteStore {
  readonly applications: ApplicationStore;
  readonly connections: ConnectionStore;
  readonly oauthClients: OAuthClientStore;
  readonly tickets: TicketStore;
  readonly webhooks: WebhookStore;
  readonly keyChecks: KeyCheckStore;
  /** Everything that is sealed, for verify-keys.ts and reseal.ts. */
  readonly sealedRows: readonly SealedRows[];
  /** Rejects when the database cannot be read; cheap. */
  ready(): Promise<void>;
  /** Ends the use of the file; what is called afterwards rejects with STORE_UNAVAILABLE. */
  close(): void;
}

/** What tests replace. */
export interface SqliteStoreOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** Opens the store, creating it when there is none. Throws StoreOpenError when the relay cannot start with this file. */
export function openSqliteStore(path: string, { now = Date.now }: SqliteStoreOptions = {}): SqliteStore {
  const db = openDatabase(path);
  const caches = createRowCaches(db);
  const attempt = createAttempt(db, caches);
  // For tables of which no row is kept.
  const unkept = createAttempt(db, { forgetAll: () => {} });
  const probe = db.prepare("SELECT 1 FROM applications LIMIT 1");
  return {
    applications: createApplicationStore(db, attempt, caches),
    connections: createConnectionStore(db, attempt, caches),
    oauthClients: createOAuthClientStore(db, attempt),
    tickets: createTicketStore(db, unkept),
    webhooks: createWebhookStore(db, unkept),
    keyChecks: createKeyCheckStore(db, attempt, now),
    sealedRows: createSealedRows(db, attempt),
    ready: () => attempt.read(() => void probe.get()),
    close: () => void db.close(),
  };
}
