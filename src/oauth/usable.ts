import type { Connection } from "./connection.js";
import { reauthorizationRequired } from "./refreshable.js";

/** Throws RelayError REAUTHORIZATION_REQUIRED unless the connection's tokens may be used. */
export function requireUsable({ state }: Pick<Connection, "state">): void {
  if (state !== "ACTIVE") throw reauthorizationRequired();
}
