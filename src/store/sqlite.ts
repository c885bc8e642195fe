import { createApplicationStore } from "./applications.js";
import { createAttempt } from "./attempt.js";
import { createAuditStore } from "./audit-records.js";
import { createCallsFile } from "./calls-file.js";
import { createCaptureStore } from "./captures.js";
import { createConnectionStore } from "./connections.js";
import { prepareCountConnections } from "./count-connections.js";
import { createKeyCheckStore } from "./key-checks.js";
import { createOAuthClientStore } from "./oauth-clients.js";
import { openDatabase } from "./open-database.js";
import { createRowCaches } from "./row-cache.js";
import { createSealedRows } from "./sealed-rows.js";
import type { OnOperation, Store } from "./store.js";
import { createTicketStore } from "./tickets.js";
import { createWebhookStore } from "./webhooks.js";

/** The store in one SQLite file. Several processes of one machine may share it. */
export interface SqliteStore extends Store {
  close(): void;
}

/** What the store does not need. */
export interface SqliteStoreOptions {
  /** Milliseconds since the epoch; tests replace it. */
  readonly now?: () => number;
  readonly onOperation?: OnOperation | undefined;
  /** Hears where a damaged file of call records was moved to. */
  readonly onDamagedCalls?: ((aside: string) => void) | undefined;
}

/** Opens the store, creating it when there is none. Throws StoreOpenError when the relay cannot start with this file. */
export function openSqliteStore(
  path: string,
  { now = Date.now, onOperation = () => {}, onDamagedCalls = () => {} }: SqliteStoreOptions = {},
): SqliteStore {
  const db = openDatabase(path);
  const caches = createRowCaches(db, onOperation);
  const attempt = createAttempt(db, caches, onOperation);
  // For tables of which no row is kept.
  const unkept = createAttempt(db, { forgetAll: () => {} }, onOperation);
  const probe = db.prepare("SELECT 1 FROM applications LIMIT 1");
  const isApplication = db.prepare<[string]>("SELECT 1 FROM applications WHERE id = ?");
  const calls = createCallsFile(path, {
    exists: (id) => isApplication.get(id) !== undefined,
    onDamaged: onDamagedCalls,
  });
  const applications = createApplicationStore(db, attempt, { caches, calls });
  const connections = createConnectionStore(db, attempt, { caches, now });
  return {
    applications,
    connections,
    // The file is read in place: nothing is seen late.
    lookups: { applications, connections },
    oauthClients: createOAuthClientStore(db, attempt),
    tickets: createTicketStore(db, unkept),
    webhooks: createWebhookStore(db, unkept),
    calls,
    captures: createCaptureStore(db, unkept),
    audit: createAuditStore(db, unkept),
    keyChecks: createKeyCheckStore(db, attempt, now),
    sealedRows: createSealedRows(db, attempt),
    countConnections: prepareCountConnections(db, unkept),
    ready: () => attempt.read(() => void probe.get()),
    close() {
      calls.close();
      db.close();
    },
  };
}
