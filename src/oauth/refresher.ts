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
import { revokeOrphans } from "./token-request.js";

/** What refreshing needs beside one refresh's own. */
interface RefresherOptions
  extends Omit<RefreshOptions, "track" | "persistence" | "leaseMs" | "watchAge" | "ending">,
    Pick<RefreshableOptions, "placeFor"> {
  /** Names this process in leases. */
  readonly spool: Spool;
  /** How long `send` waits for an answer at most, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Resolves after so many milliseconds; tests replace it. */
  readonly pause?: (ms: number) => Promise<void>;
  /** Called for what no refresh should end with: a store that cannot be used, a value that does not open, a fault. */
  readonly onFault: (error: unknown) => void;
}

/** Refreshes tokens, each at most once at a time over all processes (threats 3.2, 3.3). */
export interface Refresher {
  /**
   * Resolves when the connection's row is worth reading again: refreshed by us, by another process, or gone. Not tied to
   * any caller. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
   *
   * @param cause why; "requested": the wait after a failure, or after the client was refused, is not kept.
   */
  refresh(connection: Connection, cause?: RefreshCause): Promise<void>;
  /** The same for nobody who waits: how it ends is for the log alone. Not begun once the process stops. */
  refreshBeside(connection: Connection, cause: RefreshCause): void;
  /** Stores an answer that a process which is gone could not store. Rejects as `storeLeftAnswer()` does. */
  storeLeft(answer: UnstoredAnswer): Promise<CommitOutcome>;
  /** Rejects as `refresh()` would before the provider is asked; refreshes nothing, opens nothing. */
  requireRefreshable(connection: Connection): Promise<void>;
  /**
   * Begins no refresh beside calls any more, and none for a call either when `calls` has settled, or half of `graceMs`
   * milliseconds have passed: a provider needs the rest to answer. Resolves when what has begun is stored, or revoked;
   * after `graceMs` answers that have not come are given up, and those that are kept in the spool are left to it. One
   * that is nowhere is still waited for.
   *
   * @param calls settles when no call is in flight any more.
   */
  close(graceMs: number, calls?: Promise<unknown>): Promise<void>;
}

/** From the asking for a lease to the first byte of the request, at most, in milliseconds. */
const BEGIN_WITHIN_MS = 60_000;
/** For storing an answer, in milliseconds: longer than a database takes to be restarted, or replaced by its standby. */
const STORE_FOR_MS = 180_000;
/** As long as a caller may wait; one of another process waits no shorter than those of this one. Milliseconds. */
const WAIT_MS = 120_000;
/** How soon, and how seldom, the row is looked at while another process has the lease, in milliseconds. */
const POLL_MS = { first: 100, last: 1000 };

/** One flight per connection; whoever comes meanwhile waits for it. */
export function createRefresher(options: RefresherOptions): Refresher {
  const { pause = (ms) => delay(ms) } = options;
  const pending = createPending();
  const flights = new Map<string, Promise<void>>();
  /** Connections whose lease was to be given back, and is not yet. */
  const unsettled = new Set<string>();
  let isStopping = false;
  const closing = new AbortController();
  const ending = new AbortController();
  // Each request that is on its way listens: they are as many as connections that are refreshed.
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

  function refresh(connection: Connection, cause: RefreshCause = "expired"): Promise<void> {
    const known = flights.get(connection.id);
    if (known !== undefined) return known;
    const flight = fly(connection, cause).finally(() => flights.delete(connection.id));
    flights.set(connection.id, flight);
    return flight;
  }

  return {
    refresh,
    refreshBeside(connection, cause) {
      if (!isStopping) refresh(connection, cause).catch(() => {});
    },
    async storeLeft(answer) {
      const outcome = await storeLeftAnswer(flying, answer);
      if (outcome === "gone") pending.track(revokeLeft(options, answer));
      return outcome;
    },
    requireRefreshable: (connection) => requireRefreshable(options, connection),
    async close(graceMs, calls = Promise.resolve()) {
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

/** A refresher's options, with what it adds. */
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
      requireNoWait(options.breaker.waitMs(target.tokenEndpoint, now));
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

/** Whether the row is still the one that has to be refreshed. */
function isSame(current: Connection | undefined, connection: Connection): current is Connection {
  return current !== undefined && current.id === connection.id && current.version === connection.version;
}

/** By the clock, which a suspended machine sets ahead, and by the one that is never set. */
function watchAge(now: () => number): HeldLease["isFresh"] {
  const [since, monotonicSince] = [now(), performance.now()];
  return () => now() - since < BEGIN_WITHIN_MS && performance.now() - monotonicSince < BEGIN_WITHIN_MS;
}

/** Of what an answer brought whose connection is gone; its client may be gone, too. */
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
