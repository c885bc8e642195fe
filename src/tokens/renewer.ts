import { setTimeout as delay } from "node:timers/promises";
import type { Connection } from "./connection.js";
import { misconfigured, type RenewalOptions, type RenewalTarget, refreshUnavailable, renewLeased } from "./renewal.js";

/** What renewing needs beside one renewal's own. */
export interface RenewerOptions extends RenewalOptions {
  /** This process, different from every other one that shares the store. */
  readonly owner: string;
  /** Where a connection is renewed. Rejects with RelayError when there is nowhere. */
  readonly targetFor: (connection: Connection) => Promise<RenewalTarget>;
}

/** Renews tokens, each at most once at a time over all processes (threats 3.2, 3.3). */
export interface Renewer {
  /**
   * Resolves when the connection's row is worth reading again: renewed by us, by another process, or gone. Not tied to
   * any caller. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
   */
  renew(connection: Connection): Promise<void>;
  /** Begins no more; resolves when what has begun is stored. */
  close(): Promise<void>;
}

/** Longer than a token request may take (8 s), shorter than what providers with a grace window grant (30 s). */
export const LEASE_MS = 12_000;
/** How often the row is looked at while another process has the lease, in milliseconds. */
const POLL_MS = 100;
/** How long a client that the provider refused is not shown to it again, in milliseconds. */
const MISCONFIGURED_HOLD_MS = 30_000;

/** One flight per connection; whoever comes meanwhile waits for it. */
export function createRenewer(options: RenewerOptions): Renewer {
  const flights = new Map<string, Promise<void>>();
  /** Application and provider → until when. */
  const holds = new Map<string, number>();
  const closing = new AbortController();

  async function fly(connection: Connection): Promise<void> {
    const hold = `${connection.applicationId} ${connection.providerName}`;
    if ((holds.get(hold) ?? 0) > options.now()) throw misconfigured();
    holds.delete(hold);
    try {
      await renewOnce(options, connection, closing.signal);
    } catch (error) {
      const isHeld = (error as { reason?: unknown }).reason === "PROVIDER_MISCONFIGURED";
      if (isHeld) holds.set(hold, options.now() + MISCONFIGURED_HOLD_MS);
      throw error;
    }
  }

  return {
    renew(connection) {
      const known = flights.get(connection.id);
      if (known !== undefined) return known;
      const flight = fly(connection).finally(() => flights.delete(connection.id));
      flights.set(connection.id, flight);
      return flight;
    },
    async close() {
      closing.abort();
      await Promise.allSettled(flights.values());
    },
  };
}

async function renewOnce(options: RenewerOptions, connection: Connection, closing: AbortSignal): Promise<void> {
  requireDue(connection, options.now());
  const target = await options.targetFor(connection);
  const leaveAt = options.now() + 2 * LEASE_MS;
  for (let current: Connection | undefined = connection; isSame(current, connection); ) {
    const now = options.now();
    if (now >= leaveAt || closing.aborted) throw refreshUnavailable();
    if (current.leaseUntil === undefined || current.leaseUntil <= now) {
      requireDue(current, now);
      requireEndpoint(options, target, now);
      const lease = await options.connections.takeLease(current, options.owner, now + LEASE_MS, now);
      if (lease !== undefined) return renewLeased(options, lease, target);
    }
    await delay(POLL_MS, undefined, { ref: false });
    current = await options.connections.find(connection);
  }
}

/** Whether the row is still the one that has to be renewed. */
function isSame(current: Connection | undefined, connection: Connection): current is Connection {
  return current !== undefined && current.id === connection.id && current.version === connection.version;
}

function requireDue({ nextTryAt }: Connection, now: number): void {
  if (nextTryAt !== undefined && nextTryAt > now) throw refreshUnavailable(nextTryAt - now);
}

function requireEndpoint({ breaker }: RenewerOptions, { tokenEndpoint }: RenewalTarget, now: number): void {
  const waitMs = breaker.waitMs(tokenEndpoint, now);
  if (waitMs > 0) throw refreshUnavailable(waitMs);
}
