import { RelayError } from "../model/errors.js";
import { type DeliveryDecision, decideDelivery, type ReceiverAnswer } from "./retry.js";
import { DELIVERY_DEADLINE_MS, type SendWebhookOptions, sendWebhook } from "./send-webhook.js";
import { createSlots } from "./slots.js";
import type { DueEvent, WebhookStore } from "./webhook-store.js";

/** What delivering needs. */
export interface DelivererOptions extends SendWebhookOptions {
  readonly webhooks: Pick<WebhookStore, "claimDue" | "finish" | "putOff">;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Hears of each attempt that ended; for logs. */
  readonly onDelivery: (delivery: Delivery) => void;
  /** Hears of what no delivery should end with: a store that cannot be used, a fault. */
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
  if (decision.kind === "retry") await webhooks.putOff(event, decision.nextTryAt, decision.freeAt);
  else await webhooks.finish(event, decision.freeAt);
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
