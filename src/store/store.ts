import type { ApplicationStore } from "../applications/application.js";
import type { AuditStore, SessionStore } from "../model/audit.js";
import type { Inspect } from "../model/findings.js";
import type { ConnectionStore } from "../oauth/connection.js";
import type { OAuthClientStore } from "../oauth/oauth-client.js";
import type { Presence, Spool } from "../oauth/peers.js";
import type { TicketStore } from "../oauth/tickets.js";
import type { CallStore } from "../records/call-block.js";
import type { CaptureStore } from "../records/capture-store.js";
import type { FigureStore } from "../records/figures.js";
import type { WebhookStore } from "../webhooks/webhook-store.js";
import { createApplicationStore } from "./applications.js";
import { createAuditStore, createSessionStore } from "./audit-records.js";
import { type CallBlockStore, createCaptureStore } from "./call-blocks.js";
import { createConnectionStore } from "./connections.js";
import { createStatement, type Database, first, nothing } from "./database.js";
import { createInspect } from "./inspect.js";
import { createOAuthClientStore } from "./oauth-clients.js";
import { createKeyCheckStore, createSealedRows, type KeyCheckStore, type SealedRows } from "./sealed-rows.js";
import type { OnOperation } from "./sqlite-driver.js";
import type { ConnectionCounts, OnHealth, StoreHealth } from "./store-health.js";
import { createTicketStore } from "./tickets.js";
import { createWebhookStore } from "./webhooks.js";

/** The whole store, in SQLite or PostgreSQL. Several processes may share it. */
export interface Store {
  /** Assigned when the store is created; its backups and copies have the same id. */
  readonly id: string;
  readonly applications: ApplicationStore;
  readonly connections: ConnectionStore;
  readonly oauthClients: OAuthClientStore;
  readonly tickets: TicketStore;
  readonly webhooks: WebhookStore;
  readonly calls: CallStore;
  readonly figures: FigureStore;
  readonly inspect: Inspect;
  readonly captures: CaptureStore;
  readonly audit: AuditStore;
  readonly sessions: SessionStore;
  readonly keyChecks: KeyCheckStore;
  readonly lookups: Lookups;
  /** All sealed values, for verify-keys.ts. */
  readonly sealedRows: readonly SealedRows[];
  /** The database's clock, milliseconds since the epoch; undefined if it has none of its own. */
  clock(): Promise<number | undefined>;
  /** Counts all connections: for a figure, not for a decision. Not cheap: call it once a minute at most. */
  countConnections(): Promise<ConnectionCounts>;
  /**
   * Proves to relays on other machines that this process lives, until the store is closed, and finds those that are
   * gone; undefined when no other machine can share the store.
   */
  readonly announce?: (spool: Pick<Spool, "owner" | "knows">) => Presence;
  /** The results of the background checks; empty without an `onHealth` listener. */
  readonly health: StoreHealth;
  /** Rejects when the database cannot be read, or when a check has found a problem; cheap. */
  ready(): Promise<void>;
  /** Closes the database; later calls reject with STORE_UNAVAILABLE. */
  close(): Promise<void> | void;
}

/** Optional settings for opening a store. */
export interface StoreOptions extends StoreListeners {
  /** Milliseconds since the epoch; tests replace it. */
  readonly now?: () => number;
}

/** Callbacks for events of the store. */
export interface StoreListeners {
  readonly onOperation?: OnOperation | undefined;
  /** SQLite only: the file of call records was damaged and moved to this path; a new one is created. */
  readonly onDamagedCalls?: ((aside: string) => void) | undefined;
  /** Called when the health of the store changes; it is checked only where this is given. */
  readonly onHealth?: OnHealth | undefined;
}

/**
 * The two look-ups of every call. Changes by other processes may be seen up to a second late, changes by this one at
 * once. Decisions on a refresh read `connections` itself.
 */
interface Lookups {
  readonly applications: Pick<ApplicationStore, "findByPublicKey">;
  readonly connections: Pick<ConnectionStore, "find">;
}

/** State of a store: none yet, one of an older version that a start migrates, or one of this version. */
export type StoreState = "missing" | "older" | "current";

const PROBE = createStatement<object, unknown>("SELECT 1 FROM applications LIMIT 1");

/** Creates the parts that every store shares, over its database. */
export function createTables(
  database: Database,
  { calls, figures, health }: Pick<Store, "figures" | "health"> & { readonly calls: CallBlockStore },
): Omit<Store, "id" | "clock" | "countConnections" | "close"> {
  const applications = createApplicationStore(database, calls);
  const connections = createConnectionStore(database);
  // For tables that are not cached.
  const unkept: Database = { ...database, write: (operation) => database.write(operation, nothing) };
  return {
    applications,
    connections,
    lookups: { applications: applications.lookup, connections: connections.lookup },
    oauthClients: createOAuthClientStore(unkept),
    tickets: createTicketStore(unkept),
    webhooks: createWebhookStore(unkept),
    calls,
    figures,
    inspect: createInspect(database),
    captures: createCaptureStore(unkept),
    audit: createAuditStore(unkept),
    sessions: createSessionStore(unkept),
    keyChecks: createKeyCheckStore(unkept),
    sealedRows: createSealedRows(database),
    health,
    async ready() {
      await database.read(() => first(PROBE, {}));
      for (const problem of health.problems.values()) if (problem !== undefined) throw problem;
    },
  };
}
