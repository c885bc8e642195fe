import { parseRetryAfter } from "../oauth/token-answer.js";
import type { DueEvent } from "./webhook-store.js";

/** What a receiver answered. */
export interface ReceiverAnswer {
  readonly statusCode: number;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
}

/**
 * What follows from one attempt: the event was delivered, is tried again, or is given up. The endpoint's next event may
 * be sent at `freeAt`. Times are milliseconds since the epoch.
 */
export type DeliveryDecision =
  | { readonly kind: "delivered" | "givenUp"; readonly freeAt: number }
  | { readonly kind: "retry"; readonly nextTryAt: number; readonly freeAt: number };

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Behind the first attempt, the second, …: the schedule of the Standard Webhooks specification, three days in all. */
const DELAYS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
/** Added to a delay at most, as a part of it: what failed at once must not come back at once. */
const JITTER = 0.1;
/** An event that waited for its turn longer than the whole schedule has no more than the attempt it is in. */
const MAX_AGE_MS = 5 * 24 * HOUR_MS;
/**
 * After a failure the endpoint rests until that event's next try, but not longer than this: a short outage keeps the
 * order of events, a receiver that is down is not hammered, and one event that it refuses does not hold up the others.
 */
const MAX_REST_MS = 10 * SECOND_MS;
/** The receiver wants no more of this event. */
const GONE = 410;

/**
 * Decides what follows from an attempt. Pure.
 *
 * @param answer undefined when none came.
 * @param random from 0 up to 1.
 */
export function decideDelivery(
  answer: ReceiverAnswer | undefined,
  { attempts, createdAt }: Pick<DueEvent, "attempts" | "createdAt">,
  { now, random }: { readonly now: number; readonly random: number },
): DeliveryDecision {
  const statusCode = answer?.statusCode ?? 0;
  if (statusCode >= 200 && statusCode < 300) return { kind: "delivered", freeAt: now };
  const delayMs = DELAYS_MS[attempts - 1];
  if (statusCode === GONE || delayMs === undefined || now - createdAt > MAX_AGE_MS) {
    return { kind: "givenUp", freeAt: now };
  }
  const retryAfterMs = parseRetryAfter(answer?.retryAfter ?? "", now);
  const waitMs = Math.ceil(Math.max(delayMs * (1 + JITTER * random), retryAfterMs));
  return {
    kind: "retry",
    nextTryAt: now + waitMs,
    freeAt: now + Math.max(Math.min(waitMs, MAX_REST_MS), retryAfterMs),
  };
}
