import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallStore } from "./call-block.js";
import type { CaptureStore } from "./capture-store.js";
import type { FigureSpan, FigureStore } from "./figures.js";

/** What forgetting needs. */
export interface RetentionOptions {
  readonly calls: Pick<CallStore, "deleteBefore">;
  readonly captures: Pick<CaptureStore, "deleteBefore">;
  /** What became of webhook events. */
  readonly webhooks: Pick<CallStore, "deleteBefore">;
  readonly figures: Pick<FigureStore, "deleteBefore">;
  /** How long records are kept, in days. */
  readonly days: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onFault: (error: unknown) => void;
}

/** Deletes what has become too old. */
export interface Retention {
  /** Deletes all that is too old now. */
  sweep(): Promise<void>;
  close(): void;
}

const DAY_MS = 86_400_000;
/** Long enough to look into yesterday's fault; what was captured may be personal. */
const CAPTURE_MS = DAY_MS;
const DELIVERY_MS = 7 * DAY_MS;
/** What the last hour and the last week are shown by, with the span that has just begun to leave them. */
const MINUTES_MS = 62 * 60_000;
const HOURS_MS = 7 * DAY_MS + 3_600_000;
const EVERY_MS = 60_000;
/** Deleted in one transaction: a few milliseconds. */
const BATCH = 20;

/**
 * Forgets records and captures by age, once a minute, whether calls come or not. Every process does so: it is one look
 * into an index where nothing is old.
 */
export function startRetention(options: RetentionOptions): Retention {
  const { calls, captures, webhooks, figures, days, now, onFault } = options;
  const figuresOf = (span: FigureSpan) => ({
    deleteBefore: (time: number, limit: number) => figures.deleteBefore(span, time, limit),
  });
  let isClosed = false;
  const forget = async (store: Pick<CallStore, "deleteBefore">, time: number) => {
    while (!isClosed && (await store.deleteBefore(time, BATCH)) === BATCH) await nextTurn();
  };
  const sweep = async () => {
    // They are in different files: what keeps the one from being forgotten must not keep the other.
    await Promise.all([
      forget(calls, now() - days * DAY_MS),
      forget(figuresOf("MINUTE"), now() - MINUTES_MS).then(() => forget(figuresOf("HOUR"), now() - HOURS_MS)),
      forget(captures, now() - CAPTURE_MS).then(() => forget(webhooks, now() - DELIVERY_MS)),
    ]);
  };
  const timer = setInterval(() => void sweep().catch(onFault), EVERY_MS).unref();
  return {
    sweep,
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };
}
