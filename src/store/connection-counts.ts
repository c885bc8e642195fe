import type { ConnectionState } from "../tokens/connection.js";

/** How many connections are in each state. */
export type ConnectionCounts = ReadonlyMap<ConnectionState, number>;

/** Every state, whether or not a connection is in it. */
export const CONNECTION_STATES: readonly ConnectionState[] = ["ACTIVE", "REAUTHORIZATION_REQUIRED"];
