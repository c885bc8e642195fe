import type Database from "better-sqlite3";
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
import type { OnOperation } from "./row-cache.js";
import { createRowCaches } from "./row-cache.js";
import { createSealedRows } from "./sealed-rows.js";
import { createFileGuard, createPagesCheck, createWriteCheck } from "./sqlite-checks.js";
import type { Store } from "./store.js";
import { type OnHealth, requireWell, type StoreHealth, UNWATCHED, watchStore } from "./store-health.js";
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
  readonly onHealth?: OnHealth | undefined;
}

/** Opens the store, creating it when there is none. Throws StoreOpenError when the relay cannot start with this file. */
export function openSqliteStore(
  path: string,
  { now = Date.now, onOperation: tell = () => {}, onDamagedCalls = () => {}, onHealth }: SqliteStoreOptions = {},
): SqliteStore {
  const db = openDatabase(path);
  const requireInPlace = createFileGuard(path);
  const health = onHealth === undefined ? UNWATCHED : watchFile(db, path, requireInPlace, onHealth);
  const onOperation: OnOperation = (kind, ms, isFailed) => {
    tell(kind, ms, isFailed);
    if (isFailed) health.suspect();
  };
  const caches = createRowCaches(db, onOperation);
  const attempt = createAttempt(db, caches, onOperation, requireInPlace);
  // For tables of which no row is kept.
  const unkept = createAttempt(db, { forgetAll: () => {} }, onOperation, requireInPlace);
  const probe = db.prepare("SELECT 1 FROM applications LIMIT 1");
  const isApplication = db.prepare<[string]>("SELECT 1 FROM applications WHERE id = ?");
  const calls = createCallsFile(path, {
    exists: (id) => isApplication.get(id) !== undefined,
    onDamaged: onDamagedCalls,
  });
  const applications = createApplicationStore(db, attempt, { caches, calls });
  const connections = createConnectionStore(db, attempt, { caches, now });
  return {
    id: db.prepare<[], string>("SELECT id FROM store_identity").pluck().get() ?? "",
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
    health,
    ready: async () => {
      requireInPlace();
      await attempt.read(() => void probe.get());
      await requireWell(health);
    },
    close() {
      health.close();
      calls.close();
      db.close();
    },
  };
}

function watchFile(db: Database.Database, path: string, requireInPlace: () => void, onHealth: OnHealth): StoreHealth {
  const pages = createPagesCheck(path);
  const file = { look: requireInPlace, everyMs: 1000, retryMs: 1000 };
  const health = watchStore({ file, write: createWriteCheck(db, requireInPlace), pages }, onHealth);
  return {
    ...health,
    close() {
      health.close();
      pages.close();
    },
  };
}
