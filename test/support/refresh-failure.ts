import type { Connection, ConnectionKey, Lease } from "../../src/oauth/connection.js";
import type { Store } from "../../src/store/store.js";

/** When refreshing began to fail, and failed last, milliseconds since the epoch. */
export const FAILING = { since: 1_800_000_000_000, lastAt: 1_800_003_600_000 } as const;

/** Lets a refresh of a connection have failed with 5xx, at FAILING.lastAt. */
export async function failRefresh(store: Store, key: ConnectionKey): Promise<void> {
  const connection = (await store.connections.find(key)) as Connection;
  const lease = (await store.connections.takeLease(connection, "a test", 1000)) as Lease;
  const trouble = { since: FAILING.since };
  const failure = { errorClass: "server_error", isUnspent: true, waitMs: 60_000, trouble };
  await store.connections.recordFailure(lease, failure, FAILING.lastAt);
}
