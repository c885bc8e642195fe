import type { ConnectionState } from "../tokens/connection.js";

/** How many connections there are. */
export interface ConnectionCounts {
  /** In each state. */
  readonly states: ReadonlyMap<ConnectionState, number>;
  /** Of those that are ACTIVE, the ones whose last refresh failed. */
  readonly refreshFailing: number;
}

/** Every state, whether or not a connection is in it. */
export const CONNECTION_STATES: readonly ConnectionState[] = ["ACTIVE", "REAUTHORIZATION_REQUIRED"];
