import { RelayError } from "../model/errors.js";
import { parseRetryAfter } from "../oauth/token-answer.js";
import type { Sealer } from "../sealing/seal.js";
import { headerValue } from "../upstream/exchange.js";
import type { Upstream } from "../upstream/request.js";
import { type DueEvent, openWebhookSecret, signatureFields, type WebhookStore } from "./webhook-store.js";

/** What sending needs. */
interface SendWebhookOptions {
  /** A way out whose answers are small: nothing is read of one but its status and Retry-After. */
  readonly upstream: Upstream;
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default 15,000 ms: the least that the specification recommends, for receivers that work before they answer. */
  readonly deadlineMs?: number;
}

/** How long a receiver has to answer, in milliseconds, when nothing else is said. */
const DELIVERY_DEADLINE_MS = 15_000;

const FIELDS = ["content-type", "application/json", "user-agent", "provider-call-relay", "accept-encoding", "identity"];

/**
 * Sends one event to its endpoint, signed now, through the same guarded way out as every call: no private network, no
 * redirect. Rejects as `Upstream.send`, or with RelayError STORE_UNAVAILABLE when the secret does not open.
 */
async function sendWebhook(
  { upstream, sealer, now, deadlineMs = DELIVERY_DEADLINE_MS }: SendWebhookOptions,
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

/** What delivering needs. */
export interface DelivererOptions extends SendWebhookOptions {
  readonly webhooks: Pick<WebhookStore, "claimDue" | "finish" | "putOff">;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Called once per finished attempt; for logs. */
  readonly onDelivery: (delivery: Delivery) => void;
  /** Called for what no delivery should end with: a store that cannot be used, a fault. */
  readonly onFault: (error: unknown) => void;
}

/** How one attempt to deliver an event ended. */
export interface Delivery {
  readonly event: DueEvent;
  readonly outcome: DeliveryDecision["kind"];
  /** Undefined when no answer came. */
  readonly statusCode: number | undefined;
  /** Why no answer came; never to be printed whole. */
  readonly error: unknown;
}

/** Delivers events for as long as it is open. */
export interface Deliverer {
  /** Looks for events that are due now. The deliverer does so by itself every second. */
  nudge(): void;
  /** Begins no more; resolves when what is under way has ended. After `graceMs` milliseconds it is ended. */
  close(graceMs: number): Promise<void>;
}

/**
 * Other processes write events, too: commands, other relays. So the store is asked, which costs one look into an index,
 * and a second is soon enough for what a person's doing caused. Being told by this process's own store would only save
 * a part of that second for a part of the events.
 */
const POLL_MS = 1000;
/** Endpoints that are delivered to at once: so many that hang do not hold up the others. */
const MAX_CONCURRENT = 32;
/** How long a claim outlives its owner, in milliseconds: longer than a delivery may take, and its event is written. */
const CLAIM_MS = 2 * DELIVERY_DEADLINE_MS;

/** Begins at once with what has waited. Everything is caught in here: no event and no receiver can end the process. */
export function createDeliverer(options: DelivererOptions): Deliverer {
  const { webhooks, now, onFault } = options;
  const stop = new AbortController();
  const slots = createSlots<DueEvent>({
    most: MAX_CONCURRENT,
    take: (count) => webhooks.claimDue(count, now() + CLAIM_MS, now()),
    run: (event) => deliver(options, event, stop.signal),
    onFault,
  });
  const poll = setInterval(slots.fill, POLL_MS).unref();
  slots.fill();
  return {
    nudge: slots.fill,
    async close(graceMs) {
      clearInterval(poll);
      const end = setTimeout(() => stop.abort(stopping()), graceMs);
      await slots.close();
      clearTimeout(end);
    },
  };
}

async function deliver(options: DelivererOptions, event: DueEvent, signal: AbortSignal): Promise<void> {
  const { webhooks, now, random, onDelivery } = options;
  const { answer, error } = await attempt(options, event, signal);
  const decision = decideDelivery(answer, event, { now: now(), random: random() });
  onDelivery({ event, outcome: decision.kind, statusCode: answer?.statusCode, error });
  const outcome = { kind: decision.kind, statusCode: answer?.statusCode, at: now() };
  if (decision.kind === "retry") await webhooks.putOff(event, decision.nextTryAt, decision.freeAt, outcome);
  else await webhooks.finish(event, decision.freeAt, outcome);
}

async function attempt(
  options: DelivererOptions,
  event: DueEvent,
  signal: AbortSignal,
): Promise<{ readonly answer: ReceiverAnswer | undefined; readonly error: unknown }> {
  try {
    return { answer: await sendWebhook(options, event, signal), error: undefined };
  } catch (error) {
    // Told to onDelivery; whatever it is, the event is tried again.
    return { answer: undefined, error };
  }
}

function stopping(): RelayError {
  return new RelayError("PROVIDER_UNREACHABLE", "The relay is stopping; the event is delivered by the next one.");
}

/** What is worked on, and how. */
interface SlotsOptions<Item> {
  /** Items at once. */
  readonly most: number;
  /** Takes at most so many items that nobody else works on; none when there are none. */
  readonly take: (count: number) => Promise<readonly Item[]>;
  readonly run: (item: Item) => Promise<void>;
  /** Called with what `take` or `run` rejects with; the item is left to whoever takes it next. */
  readonly onFault: (error: unknown) => void;
}

/** Work of which only so much is done at once. */
interface Slots {
  /** Takes items until there are none or no slot is free; a slot that becomes free does so by itself. Never throws. */
  fill(): void;
  /** Takes no more; resolves when what was taken is done. */
  close(): Promise<void>;
}

/** Takes items in one go at a time, so that two never ask for the same free slot. */
function createSlots<Item>({ most, take, run, onFault }: SlotsOptions<Item>): Slots {
  const running = new Set<Promise<void>>();
  let taking = Promise.resolve();
  let isTaking = false;
  let isWanted = false;
  let isClosed = false;

  async function takeAll(): Promise<void> {
    isTaking = true;
    try {
      while (isWanted && !isClosed && running.size < most) {
        isWanted = false;
        for (const item of await take(most - running.size)) start(item);
      }
    } catch (error) {
      onFault(error);
    } finally {
      isTaking = false;
    }
  }

  function start(item: Item): void {
    const work = run(item)
      .catch(onFault)
      .finally(() => {
        running.delete(work);
        fill();
      });
    running.add(work);
  }

  function fill(): void {
    isWanted = true;
    if (!isTaking) taking = takeAll();
  }

  return {
    fill,
    async close() {
      isClosed = true;
      await taking;
      await Promise.all(running);
    },
  };
}

/** What a receiver answered. */
interface ReceiverAnswer {
  readonly statusCode: number;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
}

/**
 * What follows from one attempt: the event was delivered, is tried again, or is given up. The endpoint's next event may
 * be sent at `freeAt`. Times are milliseconds since the epoch.
 */
type DeliveryDecision =
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
