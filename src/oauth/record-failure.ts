import type { Breaker } from "./breaker.js";
import type { RegisteredClient } from "./client-holds.js";
import {
  type Connection,
  type ConnectionStore,
  type Lease,
  MAX_BACKOFF_MS,
  type RefreshFailure,
} from "./connection.js";
import { type Refusal, troubleAfter } from "./verdict.js";

/** Backoff of one connection: doubled with each failure, at most MAX_BACKOFF_MS (threats 3.8). */
const FIRST_BACKOFF_MS = 1000;
/** What passes by itself is tried again after a twentieth of the time it has lasted, but within this. Milliseconds. */
const MIN_MAX_BACKOFF_MS = 30_000;
const BACKOFF_SHARE = 1 / 20;
/** A refusal seldom passes within minutes. */
const FIRST_REFUSED_BACKOFF_MS = 2 * 60_000;

/** What is known of a failure. */
interface Failure extends Pick<RefreshFailure, "isUnspent"> {
  readonly answer: string;
  /** Undefined: the provider did not refuse anything. */
  readonly refusal: Refusal | undefined;
  readonly retryAfterMs: number;
}

/** What writing a failure down needs. */
interface FailureOptions {
  readonly connections: Pick<ConnectionStore, "recordFailure">;
  readonly breaker: Pick<Breaker, "isOpen">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Where a refresh failed, and as whom. */
interface FailedPlace {
  readonly tokenEndpoint: string;
  readonly registration: RegisteredClient;
}

/** Gives the lease back with what is known now, and when it may be tried again. Rejects as the store does. */
export async function recordFailure(
  options: FailureOptions,
  lease: Lease,
  target: FailedPlace,
  { answer, refusal, retryAfterMs, isUnspent }: Failure,
): Promise<void> {
  const { connections, now, random, breaker } = options;
  const { connection } = lease;
  const trouble = troubleAfter(
    connection.trouble,
    { ...(refusal && { refusal }), clientUpdatedAt: target.registration.updatedAt },
    now(),
  );
  const backoffMs =
    refusal === undefined
      ? Math.min(
          doubledMs(FIRST_BACKOFF_MS, connection),
          maxBackoffMs(breaker.isOpen(target.tokenEndpoint), now() - trouble.since),
        )
      : Math.min(doubledMs(FIRST_REFUSED_BACKOFF_MS, connection), MAX_BACKOFF_MS);
  const failure = {
    errorClass: answer,
    isUnspent,
    trouble,
    waitMs: Math.max(retryAfterMs, Math.ceil(backoffMs * (0.5 + random() / 2))),
  };
  await connections.recordFailure(lease, failure, now());
}

function doubledMs(firstMs: number, { failCount }: Connection): number {
  return firstMs * 2 ** Math.min(failCount, 16);
}

/** What is the endpoint's trouble says nothing of the connection: it must be soon when the endpoint is back. */
function maxBackoffMs(isEndpointDown: boolean, lastedMs: number): number {
  if (isEndpointDown) return MIN_MAX_BACKOFF_MS;
  return Math.min(MAX_BACKOFF_MS, Math.max(MIN_MAX_BACKOFF_MS, lastedMs * BACKOFF_SHARE));
}
