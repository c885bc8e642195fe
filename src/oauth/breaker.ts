import { keepNewest } from "../lib/keep-newest.js";
import {
  attemptOf,
  type BegunRefresh,
  type Connection,
  type ConnectionStore,
  isAhead,
  type Lease,
  MAX_BACKOFF_MS,
  type RefreshFailure,
} from "./connection.js";
import type { RefreshPlace } from "./oauth-client.js";
import { type Refusal, troubleAfter } from "./verdict.js";

/**
 * Circuit breaker: keeps the connections of an application from sending requests to a failing token endpoint all at once
 * (threats 3.8). Each application counts by itself: what one is refused, for its own rate, makes no other wait.
 */
export interface Breaker {
  /** Milliseconds until a request may be sent; 0 when it may be sent now, which counts as a probe while open. */
  waitMs(place: RefreshPlace, now: number): number;
  /** Like `waitMs`, but starts no probe. */
  peekMs(place: RefreshPlace, now: number): number;
  /** Whether the endpoint itself is failing, and not just one connection. */
  isOpen(place: RefreshPlace): boolean;
  recordFailure(place: RefreshPlace, now: number): void;
  recordSuccess(place: RefreshPlace): void;
}

/** This many failures within the window open the breaker; only a success closes it. */
const MAX_FAILURES = 10;
const WINDOW_MS = 30_000;
/** While the breaker is open, one refresh per interval probes whether the endpoint is back. */
const PROBE_EVERY_MS = 5000;
/** An endpoint may depend on a value that users choose, so that there is no end of them. */
const MAX_PLACES = 10_000;

interface Trouble {
  /** Times of the failures within the window, until it opens. */
  failures: number[];
  isOpen: boolean;
  nextProbeAt: number;
}

/** One breaker for all places; times are milliseconds since the epoch. */
export function createBreaker(): Breaker {
  const troubles = new Map<string, Trouble>();
  const openAt = (place: RefreshPlace): Trouble | undefined => {
    const trouble = troubles.get(keyOf(place));
    return trouble?.isOpen ? trouble : undefined;
  };
  const peekMs = (place: RefreshPlace, now: number) => {
    const nextProbeAt = openAt(place)?.nextProbeAt;
    return nextProbeAt !== undefined && isAhead(nextProbeAt, now, PROBE_EVERY_MS) ? nextProbeAt - now : 0;
  };
  return {
    peekMs,
    isOpen: (place) => openAt(place) !== undefined,
    waitMs(place, now) {
      const waitMs = peekMs(place, now);
      const trouble = openAt(place);
      if (waitMs === 0 && trouble !== undefined) trouble.nextProbeAt = now + PROBE_EVERY_MS;
      return waitMs;
    },
    recordFailure(place, now) {
      const trouble = troubles.get(keyOf(place)) ?? { failures: [], isOpen: false, nextProbeAt: 0 };
      keepNewest(troubles, keyOf(place), trouble, MAX_PLACES);
      if (trouble.isOpen) return;
      // Also drops failures that were recorded while the clock was ahead.
      trouble.failures = trouble.failures.filter((at) => isAhead(at + WINDOW_MS, now, WINDOW_MS)).concat(now);
      if (trouble.failures.length < MAX_FAILURES) return;
      trouble.isOpen = true;
      trouble.nextProbeAt = now + PROBE_EVERY_MS;
    },
    recordSuccess: (place) => void troubles.delete(keyOf(place)),
  };
}

function keyOf({ endpoint, client }: RefreshPlace): string {
  return `${client.applicationId} ${endpoint}`;
}

/** First backoff of a connection: doubles with each failure, up to MAX_BACKOFF_MS (threats 3.8). */
const FIRST_BACKOFF_MS = 1000;
/** The backoff is capped at a twentieth of the time that the trouble has lasted, but never below this. Milliseconds. */
const MIN_MAX_BACKOFF_MS = 30_000;
const BACKOFF_SHARE = 1 / 20;
/** First backoff after a refusal, which seldom goes away within minutes. */
const FIRST_REFUSED_BACKOFF_MS = 2 * 60_000;

/** What is known of a failure. */
interface Failure extends Pick<RefreshFailure, "isUnspent"> {
  readonly answer: string;
  /** Undefined: the provider did not refuse anything. */
  readonly refusal: Refusal | undefined;
  readonly retryAfterMs: number;
}

/** What recording a failure needs. */
interface FailureOptions {
  readonly connections: Pick<ConnectionStore, "recordFailure">;
  readonly breaker: Pick<Breaker, "isOpen">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Records a failed refresh: stores the trouble and the backoff, and releases the lease. Rejects as the store does. */
export async function recordFailure(
  options: FailureOptions,
  lease: Lease & BegunRefresh,
  place: RefreshPlace,
  { answer, refusal, retryAfterMs, isUnspent }: Failure,
): Promise<void> {
  const { connections, now, random, breaker } = options;
  const { connection } = lease;
  const trouble = troubleAfter(
    connection.trouble,
    { ...(refusal && { refusal }), clientUpdatedAt: place.client.updatedAt },
    now(),
  );
  const backoffMs =
    refusal === undefined
      ? Math.min(doubledMs(FIRST_BACKOFF_MS, connection), maxBackoffMs(breaker.isOpen(place), now() - trouble.since))
      : Math.min(doubledMs(FIRST_REFUSED_BACKOFF_MS, connection), MAX_BACKOFF_MS);
  const failure = {
    errorClass: answer,
    isUnspent,
    trouble,
    waitMs: Math.max(retryAfterMs, Math.ceil(backoffMs * (0.5 + random() / 2))),
    attempt: attemptOf(lease, "failed", answer, now()),
  };
  await connections.recordFailure(lease, failure, now());
}

function doubledMs(firstMs: number, { failCount }: Connection): number {
  return firstMs * 2 ** Math.min(failCount, 16);
}

/** A failing endpoint says nothing about the connection, which must be refreshed soon after the endpoint recovers. */
function maxBackoffMs(isEndpointDown: boolean, lastedMs: number): number {
  if (isEndpointDown) return MIN_MAX_BACKOFF_MS;
  return Math.min(MAX_BACKOFF_MS, Math.max(MIN_MAX_BACKOFF_MS, lastedMs * BACKOFF_SHARE));
}
