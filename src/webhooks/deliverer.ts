import { setMaxListeners } from "node:events";
import { RelayError } from "../model/errors.js";
import { parseRetryAfter } from "../oauth/token-answer.js";
import type { Sealer } from "../sealing/seal.js";
import { headerValue } from "../upstream/exchange.js";
import type { Upstream } from "../upstream/request.js";
import { type DueEvent, openWebhookSecret, signatureFields, type WebhookStore } from "./webhook-store.js";

/** What a deliverer needs. */
export interface DelivererOptions {
  /** Should limit answers to a small size: only the status and Retry-After are used. */
  readonly upstream: Upstream;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default 15,000 ms: the minimum that the specification recommends, for receivers that work before they answer. */
  readonly deadlineMs?: number;
  readonly webhooks: Pick<WebhookStore, "claimDue" | "finish" | "putOff">;
  /** At least 0, less than 1. */
  readonly random: () => number;
  /** Called once per finished attempt; for logs. */
  readonly onDelivery: (delivery: Delivery) => void;
  /** Called for unexpected errors: an unusable store, a fault. */
  readonly onFault: (error: unknown) => void;
}

/** Default time for a receiver to answer, in milliseconds. */
const DELIVERY_DEADLINE_MS = 15_000;

const FIELDS = ["content-type", "application/json", "user-agent", "provider-call-relay", "accept-encoding", "identity"];

/**
 * Signs one event and sends it to its endpoint, through the same guarded client as every call: no private network, no
 * redirect. Rejects as `Upstream.send`, or with RelayError STORE_UNAVAILABLE when the secret cannot be opened.
 */
async function sendWebhook(
  { upstream, sealer, now, deadlineMs = DELIVERY_DEADLINE_MS }: DelivererOptions,
  event: DueEvent,
  signal: AbortSignal,
): Promise<ReceiverAnswer> {
  const { endpoint, payload } = event;
  const url = new URL(endpoint.uri);
  const secret = openWebhookSecret(sealer, endpoint);
  const answer = await upstream.send(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method: "POST",
      headers: [...FIELDS, ...signatureFields(event, secret, now())],
      body: Buffer.from(payload),
      applicationId: endpoint.applicationId,
      connectionId: `webhook ${endpoint.applicationId}`,
      allowPrivateNetwork: false,
    },
    { deadline: performance.now() + deadlineMs, signal },
  );
  return { statusCode: answer.statusCode, retryAfter: headerValue(answer.rawHeaders, "retry-after") };
}

/** How one attempt to deliver an event ended. */
export interface Delivery {
  readonly event: DueEvent;
  readonly outcome: DeliveryDecision["kind"];
  /** Undefined without an answer. */
  readonly statusCode: number | undefined;
  /** Why no answer came; must never be printed whole. */
  readonly error: unknown;
}

/** Delivers events until it is closed. */
export interface Deliverer {
  /** Starts no new deliveries; resolves when those in progress have ended. Aborts them after `graceMs` milliseconds. */
  close(graceMs: number): Promise<void>;
}

/**
 * How often the store is polled. Other processes write events too: commands, other relays. A poll costs one index
 * lookup, and a second is soon enough for events caused by people. Notifications from this process's own store would
 * save only part of that second, and only for some events.
 */
const POLL_MS = 1000;
/** Concurrent deliveries, enough that hanging endpoints do not hold up the others. */
const MAX_CONCURRENT = 32;
/** How long a claim is valid, in milliseconds: longer than a delivery and the update of its event may take. */
const CLAIM_MS = 2 * DELIVERY_DEADLINE_MS;

/**
 * Creates a deliverer, which starts at once with waiting events. Catches every error: no event and no receiver can
 * crash the process.
 */
export function createDeliverer(options: DelivererOptions): Deliverer {
  const { webhooks, now, onFault } = options;
  const stop = new AbortController();
  // Each delivery in progress adds a listener.
  setMaxListeners(MAX_CONCURRENT, stop.signal);
  const running = new Set<Promise<void>>();
  let claiming = Promise.resolve();
  let isClaiming = false;
  let isWanted = false;
  let isClosed = false;

  /** One at a time, so that two never compete for the same free slot. */
  async function claimAll(): Promise<void> {
    isClaiming = true;
    try {
      while (isWanted && !isClosed && running.size < MAX_CONCURRENT) {
        isWanted = false;
        const due = await webhooks.claimDue(MAX_CONCURRENT - running.size, now() + CLAIM_MS, now());
        for (const event of due) begin(event);
      }
    } catch (error) {
      onFault(error);
    } finally {
      isClaiming = false;
    }
  }

  function begin(event: DueEvent): void {
    const work = deliver(options, event, stop.signal)
      .catch(onFault)
      .finally(() => {
        running.delete(work);
        fill();
      });
    running.add(work);
  }

  /** Begins deliveries until no event is due or no slot is free. */
  function fill(): void {
    isWanted = true;
    if (!isClaiming) claiming = claimAll();
  }

  const poll = setInterval(fill, POLL_MS).unref();
  fill();
  return {
    async close(graceMs) {
      clearInterval(poll);
      isClosed = true;
      const end = setTimeout(() => stop.abort(stopping()), graceMs);
      await claiming;
      await Promise.all(running);
      clearTimeout(end);
    },
  };
}

async function deliver(options: DelivererOptions, event: DueEvent, signal: AbortSignal): Promise<void> {
  const { webhooks, now, random, onDelivery } = options;
  const { answer, error } = await sendWebhook(options, event, signal).then(
    (received) => ({ answer: received, error: undefined }),
    // Reported to onDelivery; whatever it is, the event is retried.
    (failure: unknown) => ({ answer: undefined, error: failure }),
  );
  const at = now();
  const isCutOff = answer === undefined && signal.aborted;
  // Whatever the receiver would have answered: the next process tries again, even after the last attempt.
  const decision: DeliveryDecision = isCutOff
    ? { kind: "retry", nextTryAt: at, freeAt: at }
    : decideDelivery(answer, event, { now: at, random: random() });
  onDelivery({ event, outcome: decision.kind, statusCode: answer?.statusCode, error });
  const outcome = { kind: decision.kind, statusCode: answer?.statusCode, at };
  if (decision.kind === "retry") await webhooks.putOff(event, decision.nextTryAt, decision.freeAt, outcome);
  else await webhooks.finish(event, decision.freeAt, outcome);
}

function stopping(): RelayError {
  return new RelayError("PROVIDER_UNREACHABLE", "The relay is stopping; the event will be retried later.");
}

/** A receiver's answer. */
interface ReceiverAnswer {
  readonly statusCode: number;
  /** Value of the Retry-After field; empty without one. */
  readonly retryAfter: string;
}

/**
 * What follows from one attempt: the event is delivered, retried or given up. The endpoint's next event may be sent at
 * `freeAt`. Times are milliseconds since the epoch.
 */
type DeliveryDecision =
  | { readonly kind: "delivered" | "givenUp"; readonly freeAt: number }
  | { readonly kind: "retry"; readonly nextTryAt: number; readonly freeAt: number };

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Delays after each attempt: the schedule of the Standard Webhooks specification, three days in total. */
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
/** Largest fraction added to a delay: events that failed together must not be retried together. */
const JITTER = 0.1;
/**
 * An older event gets no second retry: it has waited for its turn longer than the whole schedule. The first retry is
 * for any event, since one that was written while a clock was behind only looks old.
 */
const MAX_AGE_MS = 5 * 24 * HOUR_MS;
/**
 * Longest rest of an endpoint after a failure, unless Retry-After asks for more; shorter if that event's next try comes
 * first. So a short outage keeps the order of events, a receiver that is down is not hammered, and one refused event
 * does not hold up the others.
 */
const MAX_REST_MS = 10 * SECOND_MS;
/** 410 Gone: the receiver does not want this event any more. */
const GONE = 410;

/**
 * Decides what follows from an attempt. Pure.
 *
 * @param answer undefined if none came.
 * @param random at least 0, less than 1.
 */
export function decideDelivery(
  answer: ReceiverAnswer | undefined,
  { attempts, createdAt }: Pick<DueEvent, "attempts" | "createdAt">,
  { now, random }: { readonly now: number; readonly random: number },
): DeliveryDecision {
  const statusCode = answer?.statusCode ?? 0;
  if (statusCode >= 200 && statusCode < 300) return { kind: "delivered", freeAt: now };
  const delayMs = DELAYS_MS[attempts - 1];
  if (statusCode === GONE || delayMs === undefined || (attempts > 1 && now - createdAt > MAX_AGE_MS)) {
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
