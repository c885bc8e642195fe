import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../errors.js";
import { createPending } from "../pending.js";
import { type Connection, isAhead, type Lease, MAX_LEASE_MS } from "./connection.js";
import { type RenewableOptions, requireDue, requireNoWait, requireRenewable } from "./renewable.js";
import { misconfigured, type RenewalOptions, type RenewalTarget, refreshUnavailable, renewLeased } from "./renewal.js";

/** What renewing needs beside one renewal's own. */
export interface RenewerOptions extends Omit<RenewalOptions, "track">, Pick<RenewableOptions, "endpointFor"> {
  /** This process, different from every other one that shares the store. */
  readonly owner: string;
  /** Hears of what no renewal should end with: a store that cannot be used, a value that does not open, a fault. */
  readonly onFault: (error: unknown) => void;
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
  /** Rejects as `renew()` would before the provider is asked; renews nothing, opens nothing. */
  requireRenewable(connection: Connection): Promise<void>;
  /** Begins no more; resolves when what has begun is stored, or revoked. */
  close(): Promise<void>;
}

/**
 * How long a lease outlives its owner. The owner extends it while the token request is on its way, so it may be shorter
 * than one; short, since the next owner, and the one after it, must come within the 30 s of a provider's grace window.
 */
const LEASE_MS = 5000;
/** Several may fail before the lease ends, in milliseconds. */
const EXTEND_EVERY_MS = 1000;
/** Longer than a token request may take (8 s) and the lease of an owner that is gone. */
const WAIT_MS = 24_000;
/** How often the row is looked at while another process has the lease, in milliseconds. */
const POLL_MS = 100;
/** How long a client that the provider refused is not shown to it again, in milliseconds. */
const MISCONFIGURED_HOLD_MS = 30_000;

/** One flight per connection; whoever comes meanwhile waits for it. */
export function createRenewer(options: RenewerOptions): Renewer {
  const pending = createPending();
  const flying = { ...options, track: pending.track };
  const flights = new Map<string, Promise<void>>();
  /** Application and provider → until when. */
  const holds = new Map<string, number>();
  const closing = new AbortController();

  function requireNotHeld(hold: string): void {
    if (isAhead(holds.get(hold), options.now(), MISCONFIGURED_HOLD_MS)) throw misconfigured();
  }

  async function fly(connection: Connection): Promise<void> {
    const hold = holdOf(connection);
    requireNotHeld(hold);
    holds.delete(hold);
    try {
      await renewOnce(flying, connection, closing.signal);
    } catch (error) {
      if (!(error instanceof RelayError) || error.cause !== undefined) options.onFault(error);
      const isHeld = error instanceof RelayError && error.reason === "PROVIDER_MISCONFIGURED";
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
    async requireRenewable(connection) {
      requireNotHeld(holdOf(connection));
      await requireRenewable(options, connection);
    },
    async close() {
      closing.abort();
      await Promise.allSettled(flights.values());
      await pending.settled();
    },
  };
}

function holdOf({ applicationId, providerName }: Connection): string {
  return `${applicationId} ${providerName}`;
}

/** A renewer's options, with what it adds. */
type FlightOptions = RenewerOptions & RenewalOptions;

async function renewOnce(options: FlightOptions, connection: Connection, closing: AbortSignal): Promise<void> {
  requireDue(connection, options.now());
  const target = await options.targetFor(connection);
  const leaveAt = options.now() + WAIT_MS;
  for (let current: Connection | undefined = connection; isSame(current, connection); ) {
    const now = options.now();
    if (now >= leaveAt || closing.aborted) throw refreshUnavailable();
    if (!isAhead(current.leaseUntil, now, MAX_LEASE_MS)) {
      requireDue(current, now);
      requireNoWait(options.breaker.waitMs(target.tokenEndpoint, now));
      const lease = await options.connections.takeLease(current, options.owner, LEASE_MS);
      if (lease !== undefined) return renewExtended(options, lease, target);
    }
    await delay(POLL_MS, undefined, { ref: false });
    current = await options.connections.find(connection);
  }
}

/** Renews while the lease is kept: only an owner that is gone, or stands still, loses it. */
async function renewExtended(options: RenewalOptions, lease: Lease, target: RenewalTarget): Promise<void> {
  const { connections } = options;
  const timer = setInterval(() => {
    // The next one is a second away; when none can be written, the lease ends as if the owner were gone.
    connections.extendLease(lease, LEASE_MS).catch(() => {});
  }, EXTEND_EVERY_MS);
  try {
    await renewLeased(options, lease, target);
  } finally {
    clearInterval(timer);
  }
}

/** Whether the row is still the one that has to be renewed. */
function isSame(current: Connection | undefined, connection: Connection): current is Connection {
  return current !== undefined && current.id === connection.id && current.version === connection.version;
}
