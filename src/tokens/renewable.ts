import type { Breaker } from "./breaker.js";
import { type Connection, isAhead, MAX_BACKOFF_MS } from "./connection.js";
import { refreshUnavailable } from "./renewal.js";

/** What tells whether a renewal could begin. */
export interface RenewableOptions {
  readonly breaker: Pick<Breaker, "peekMs">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Where a connection is renewed; opens no secret. Rejects with RelayError when there is nowhere. */
  readonly endpointFor: (connection: Connection) => Promise<string>;
}

/**
 * Rejects as a renewal would before the provider is asked, with RelayError REFRESH_UNAVAILABLE; begins none, and opens
 * no secret.
 */
export async function requireRenewable(
  { breaker, now, endpointFor }: RenewableOptions,
  connection: Connection,
): Promise<void> {
  requireDue(connection, now());
  requireNoWait(breaker.peekMs(await endpointFor(connection), now()));
}

/**
 * A renewal that has failed is not tried again before its time; a time further ahead than any was set by a clock that
 * stood wrong. Throws RelayError REFRESH_UNAVAILABLE.
 */
export function requireDue({ nextTryAt }: Pick<Connection, "nextTryAt">, now: number): void {
  if (isAhead(nextTryAt, now, MAX_BACKOFF_MS)) requireNoWait((nextTryAt ?? 0) - now);
}

/** Throws RelayError REFRESH_UNAVAILABLE unless the time to wait, in milliseconds, is over. */
export function requireNoWait(waitMs: number): void {
  if (waitMs > 0) throw refreshUnavailable(waitMs);
}
