import { setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { createPending } from "../lib/process.js";
import { RelayError } from "../model/errors.js";
import { type CommitOutcome, type Connection, isAhead, MAX_LEASE_MS, type RefreshCause } from "./connection.js";
import type { Spool, UnstoredAnswer } from "./peers.js";
import { type HeldLease, placeOf, type RefreshOptions, refreshLeased } from "./refresh.js";
import {
  isOfChangedClient,
  misconfigured,
  type RefreshableOptions,
  refreshUnavailable,
  requireDue,
  requireNoWait,
  requireRefreshable,
} from "./refreshable.js";
import { openPair, type Persistence, persistentStore, storeLeftAnswer } from "./store-answer.js";
import { revokeOrphans } from "./token-endpoint.js";

/** What a refresher needs in addition to the options of one refresh. */
interface RefresherOptions
  extends Omit<RefreshOptions, "track" | "persistence" | "leaseMs" | "watchAge" | "ending">,
    Pick<RefreshableOptions, "placeFor"> {
  /** Its owner name identifies this process in leases. */
  readonly spool: Spool;
  /** How long `send` waits for an answer, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Resolves after `ms` milliseconds; tests replace it. */
  readonly pause?: (ms: number) => Promise<void>;
  /** Called for unexpected failures: a store that cannot be used, a value that does not open, a fault. */
  readonly onFault: (error: unknown) => void;
}

/** Refreshes tokens; each at most once at a time across all processes (threats 3.2, 3.3). */
export type Refresher = ReturnType<typeof createRefresher>;

/** Longest time from the request for a lease to the first byte of the token request, in milliseconds. */
const BEGIN_WITHIN_MS = 60_000;
/**
 * How long storing an answer is retried while stopping, in milliseconds: longer than a database restart or failover.
 */
const STORE_FOR_MS = 180_000;
/**
 * How long to wait for another process's refresh: as long as a caller may wait for one of this process. Milliseconds.
 */
const WAIT_MS = 120_000;
/** Shortest and longest poll interval of the row while another process holds the lease, in milliseconds. */
const POLL_MS = { first: 100, last: 1000 };

/** Creates a refresher. It runs one refresh per connection at a time; further callers join that one. */
export function createRefresher(options: RefresherOptions) {
  const { pause = (ms) => delay(ms) } = options;
  const pending = createPending();
  const flights = new Map<string, Promise<void>>();
  /** Connections whose lease is still waiting to be released. */
  const unsettled = new Set<string>();
  let isStopping = false;
  const closing = new AbortController();
  const ending = new AbortController();
  // Every request in flight adds a listener: there are as many as refreshes.
  setMaxListeners(0, ending.signal);
  let endingSince = Number.POSITIVE_INFINITY;
  const persistence: Persistence = {
    pause,
    mustGiveUp: (isKept) => ending.signal.aborted && (isKept || performance.now() - endingSince > STORE_FOR_MS),
    onRefused: options.onFault,
  };
  const flying: FlightOptions = {
    ...options,
    pause,
    persistence,
    leaseMs: options.requestTimeoutMs + BEGIN_WITHIN_MS,
    watchAge: () => watchAge(options.now),
    ending: ending.signal,
    track: pending.track,
    connections: persistentStore(options.connections, persistence, (id, work) => {
      unsettled.add(id);
      void pending.track(work).then(() => unsettled.delete(id));
    }),
  };

  async function fly(connection: Connection, cause: RefreshCause): Promise<void> {
    if (unsettled.has(connection.id)) throw refreshUnavailable();
    try {
      await refreshOnce({ ...flying, cause }, connection, closing.signal);
    } catch (error) {
      if (!(error instanceof RelayError) || error.cause !== undefined) options.onFault(error);
      throw error;
    }
  }

  /**
   * Resolves when the connection's row has changed: refreshed by us or by another process, or gone. Not tied to any
   * caller. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
   *
   * @param cause "requested" skips the wait after a failure, or after the client was refused.
   */
  function refresh(connection: Connection, cause: RefreshCause = "expired"): Promise<void> {
    const known = flights.get(connection.id);
    if (known !== undefined) return known;
    const flight = fly(connection, cause).finally(() => flights.delete(connection.id));
    flights.set(connection.id, flight);
    return flight;
  }

  return {
    refresh,
    /** Refreshes in the background: the result is only logged. Does nothing once the process stops. */
    refreshBeside(connection: Connection, cause: RefreshCause): void {
      if (!isStopping) refresh(connection, cause).catch(() => {});
    },
    /** Stores an answer that a dead process could not store. Rejects as `storeLeftAnswer()` does. */
    async storeLeft(answer: UnstoredAnswer): Promise<CommitOutcome> {
      const outcome = await storeLeftAnswer(flying, answer);
      if (outcome === "gone") pending.track(revokeLeft(options, answer));
      return outcome;
    },
    /** Rejects as `refresh()` would before it asks the provider; refreshes nothing and opens no secret. */
    requireRefreshable: (connection: Connection) => requireRefreshable(options, connection),
    /**
     * Stops refreshing. Background refreshes are no longer begun. Refreshes for calls are no longer begun once `calls`
     * has settled or half of `graceMs` milliseconds has passed: a provider needs the rest to answer. Resolves when all
     * answers are stored or their tokens revoked. After `graceMs`, missing answers are given up, and answers in the spool
     * are left there; an answer that is kept nowhere is still waited for.
     *
     * @param calls settles when no call is in flight any more.
     */
    async close(graceMs: number, calls: Promise<unknown> = Promise.resolve()): Promise<void> {
      isStopping = true;
      const lastBegin = setTimeout(() => closing.abort(), graceMs / 2);
      const lastAnswer = setTimeout(() => {
        endingSince = performance.now();
        ending.abort();
      }, graceMs);
      await calls;
      closing.abort();
      await Promise.allSettled(flights.values());
      await pending.settled();
      clearTimeout(lastBegin);
      clearTimeout(lastAnswer);
    },
  };
}

/** The options of one flight: the refresher's, and what it adds. */
type FlightOptions = RefresherOptions & RefreshOptions & Required<Pick<RefresherOptions, "pause">>;

async function refreshOnce(
  options: FlightOptions & { readonly cause: RefreshCause },
  connection: Connection,
  closing: AbortSignal,
): Promise<void> {
  const { cause } = options;
  const isAsked = cause === "requested";
  const place = await options.placeFor(connection);
  if (!isAsked) requireDue(connection, place.client, options.now());
  if (!isAsked && options.clients.peekMs(place, options.now()) > 0) throw misconfigured();
  const target = await options.targetFor(connection);
  const leaveAt = performance.now() + WAIT_MS;
  let pollMs = POLL_MS.first;
  for (let current: Connection | undefined = connection; isSame(current, connection); ) {
    const now = options.now();
    if (performance.now() >= leaveAt || closing.aborted) throw refreshUnavailable();
    if (!isAhead(current.leaseUntil, now, MAX_LEASE_MS)) {
      if (!isAsked) requireDue(current, target.registration, now);
      if (options.clients.waitMs(placeOf(target), now) > 0 && !isAsked) throw misconfigured();
      requireNoWait(options.breaker.waitMs(placeOf(target), now));
      const skipsWait = isAsked || isOfChangedClient(current, target.registration);
      const isFresh = options.watchAge();
      const lease = await options.connections.takeLease(current, options.spool.owner, options.leaseMs, skipsWait);
      if (lease !== undefined) return refreshLeased(options, { ...lease, isFresh, cause, askedAt: now }, target);
    }
    await options.pause(pollMs);
    pollMs = Math.min(pollMs * 1.25, POLL_MS.last);
    current = await options.connections.find(connection);
  }
}

/** Whether the row still needs the refresh: it exists and is unchanged. */
function isSame(current: Connection | undefined, connection: Connection): current is Connection {
  return current !== undefined && current.id === connection.id && current.version === connection.version;
}

/** Measures by the wall clock, which jumps ahead after a suspend, and by the monotonic one, which is never set. */
function watchAge(now: () => number): HeldLease["isFresh"] {
  const [since, monotonicSince] = [now(), performance.now()];
  return () => now() - since < BEGIN_WITHIN_MS && performance.now() - monotonicSince < BEGIN_WITHIN_MS;
}

/** Revokes the tokens that a dead process left for a connection that is gone; the client may be gone, too. */
async function revokeLeft(options: RefresherOptions, answer: UnstoredAnswer): Promise<void> {
  const { sealer, targetFor, onRevocation, onFault } = options;
  try {
    const pair = openPair(sealer, answer.connection, answer.tokens);
    await revokeOrphans(options, answer.connection, pair, await targetFor(answer.connection));
  } catch (error) {
    onFault(error);
    onRevocation(answer.connection, "FAILED");
  }
}
