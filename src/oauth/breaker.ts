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
 * Lets one request per `everyMs` milliseconds probe whether a trouble is over.
 *
 * @param troubleAt the trouble of a place; undefined when requests to it are not held back.
 */
function createProbes(troubleAt: (place: RefreshPlace) => Trouble | undefined, everyMs: number) {
  const peekMs = (place: RefreshPlace, now: number): number => {
    const nextProbeAt = troubleAt(place)?.nextProbeAt ?? now;
    return isAhead(nextProbeAt, now, everyMs) ? nextProbeAt - now : 0;
  };
  return {
    /** Like `waitMs`, but starts no probe. */
    peekMs,
    /** Milliseconds until a request may be sent; 0 when it may be sent now, which counts as a probe during a trouble. */
    waitMs(place: RefreshPlace, now: number): number {
      const waitMs = peekMs(place, now);
      const trouble = troubleAt(place);
      if (waitMs === 0 && trouble !== undefined) trouble.nextProbeAt = now + everyMs;
      return waitMs;
    },
  };
}

interface Trouble {
  nextProbeAt: number;
}

/** This many failures within the window open the breaker; only a success closes it. */
const MAX_FAILURES = 10;
const WINDOW_MS = 30_000;
/** While the breaker is open, one refresh per interval probes whether the endpoint is back. */
const PROBE_EVERY_MS = 5000;
/** An endpoint may depend on a value that users choose, so that there is no end of them. */
const MAX_PLACES = 10_000;

interface Failing extends Trouble {
  /** Times of the failures within the window, until it opens. */
  failures: number[];
  isOpen: boolean;
}

/**
 * Circuit breaker: keeps the connections of an application from sending requests to a failing token endpoint all at once
 * (threats 3.8). Each application counts by itself: what one is refused, for its own rate, makes no other wait.
 */
export type Breaker = ReturnType<typeof createBreaker>;

/** One breaker for all places; times are milliseconds since the epoch. */
export function createBreaker() {
  const known = new Map<string, Failing>();
  const openAt = (place: RefreshPlace) => {
    const failing = known.get(keyOf(place));
    return failing?.isOpen ? failing : undefined;
  };
  return {
    ...createProbes(openAt, PROBE_EVERY_MS),
    /** Whether the endpoint itself is failing, and not just one connection. */
    isOpen: (place: RefreshPlace): boolean => openAt(place) !== undefined,
    recordFailure(place: RefreshPlace, now: number): void {
      const failing = known.get(keyOf(place)) ?? { failures: [], isOpen: false, nextProbeAt: 0 };
      keepNewest(known, keyOf(place), failing, MAX_PLACES);
      if (failing.isOpen) return;
      // Also drops failures that were recorded while the clock was ahead.
      failing.failures = failing.failures.filter((at) => isAhead(at + WINDOW_MS, now, WINDOW_MS)).concat(now);
      if (failing.failures.length < MAX_FAILURES) return;
      failing.isOpen = true;
      failing.nextProbeAt = now + PROBE_EVERY_MS;
    },
    recordSuccess: (place: RefreshPlace): void => void known.delete(keyOf(place)),
  };
}

function keyOf({ endpoint, client }: RefreshPlace): string {
  return `${client.applicationId} ${endpoint}`;
}

/** While a client is held, one connection per interval probes whether it is still refused. Milliseconds. */
const CLIENT_PROBE_EVERY_MS = 30_000;
/** Most clients, and most endpoints of each, that are remembered; the one that was used longest ago is evicted. */
const MAX_CLIENTS = 10_000;
const MAX_ENDPOINTS = 1000;

interface KnownClient extends Trouble {
  /** The last connection it was refused for; undefined: not refused since it was last accepted. */
  refusedFor: string | undefined;
  isHeld: boolean;
}

/**
 * Holds back a client that the provider refuses (`invalid_client`), so that not every connection sends it. Each
 * endpoint counts by itself: an address with a part that one user chose says nothing about those of other users.
 */
export type ClientHolds = ReturnType<typeof createClientHolds>;

/** Remembers for each client what this process has seen; times are milliseconds since the epoch. */
export function createClientHolds() {
  const clients = new Map<string, { readonly updatedAt: number; readonly endpoints: Map<string, KnownClient> }>();
  const endpointsOf = ({ client }: RefreshPlace) => {
    const known = clients.get(client.id);
    return known?.updatedAt === client.updatedAt ? known.endpoints : undefined;
  };
  const knownOf = (place: RefreshPlace) => endpointsOf(place)?.get(place.endpoint);
  /** Undefined, and nothing changes, for a client that has been replaced. */
  const record = (place: RefreshPlace, known: KnownClient) => {
    const { client, endpoint } = place;
    const newest = clients.get(client.id);
    if (newest !== undefined && newest.updatedAt > client.updatedAt) return undefined;
    const endpoints = endpointsOf(place) ?? new Map<string, KnownClient>();
    keepNewest(clients, client.id, { updatedAt: client.updatedAt, endpoints }, MAX_CLIENTS);
    keepNewest(endpoints, endpoint, known, MAX_ENDPOINTS);
    return endpoints;
  };
  const heldAt = (place: RefreshPlace) => {
    const known = knownOf(place);
    return known?.isHeld ? known : undefined;
  };
  return {
    ...createProbes(heldAt, CLIENT_PROBE_EVERY_MS),
    /**
     * The provider refused the client for this connection. The client is held from now on; if the endpoint has accepted
     * it before, only once it is refused for a second connection. Returns whether the client is held at every known
     * endpoint; false, and nothing changes, if a newer one is known: the verdict is on the old one.
     */
    recordRefused(place: RefreshPlace, connectionId: string, now: number): boolean {
      const known = knownOf(place);
      const isFirstOfGood = known !== undefined && !known.isHeld && (known.refusedFor ?? connectionId) === connectionId;
      const nextProbeAt = now + CLIENT_PROBE_EVERY_MS;
      const endpoints = record(place, { refusedFor: connectionId, isHeld: !isFirstOfGood, nextProbeAt });
      return endpoints !== undefined && [...endpoints.values()].every(({ isHeld }) => isHeld);
    },
    /** The provider accepted the client. Does nothing if a newer one is known. */
    recordTaken: (place: RefreshPlace): void =>
      void record(place, { refusedFor: undefined, isHeld: false, nextProbeAt: 0 }),
  };
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
