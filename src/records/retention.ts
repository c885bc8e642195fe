import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallStore } from "./call-block.js";
import type { CaptureStore } from "./capture-store.js";
import { type FigureSpan, type FigureStore, SPAN_MS, settledBefore } from "./figures.js";

/** What forgetting needs. */
export interface RetentionOptions {
  readonly calls: Pick<CallStore, "deleteBefore">;
  readonly captures: Pick<CaptureStore, "deleteBefore">;
  /** What became of webhook events. */
  readonly webhooks: Pick<CallStore, "deleteBefore">;
  readonly figures: Pick<FigureStore, "deleteBefore" | "merge">;
  /** How long records are kept, in days. */
  readonly days: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onFault: (error: unknown) => void;
}

/** Deletes what has become too old, and merges figures. */
export interface Retention {
  /** Deletes all that is too old now, and merges what can be. */
  sweep(): Promise<void>;
  close(): void;
}

const DAY_MS = 86_400_000;
/** Long enough to look into yesterday's fault; what was captured may be personal. */
const CAPTURE_MS = DAY_MS;
const DELIVERY_MS = 7 * DAY_MS;
/** What the last hour and the last week are shown by, with the span that has just begun to leave them. */
const FIGURES_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 62 * 60_000, HOUR: 7 * DAY_MS + 3_600_000 };
const EVERY_MS = 60_000;
/** Deleted in one transaction: a few milliseconds. */
const BATCH = 20;

/**
 * Forgets records and captures by age, once a minute, whether calls come or not, and merges the figures of processes.
 * Every process does so: it is one look into an index where nothing is old.
 */
export function startRetention(options: RetentionOptions): Retention {
  const { calls, captures, webhooks, figures, days, now, onFault } = options;
  /** Spans that began before are merged. */
  const merged: Record<FigureSpan, number> = { MINUTE: 0, HOUR: 0 };
  let isClosed = false;
  const forget = async (store: Pick<CallStore, "deleteBefore">, time: number) => {
    while (!isClosed && (await store.deleteBefore(time, BATCH)) === BATCH) await nextTurn();
  };
  const oldestOf = (span: FigureSpan) => now() - FIGURES_MS[span];
  const forgetFigures = (span: FigureSpan) =>
    forget({ deleteBefore: (time, limit) => figures.deleteBefore(span, time, limit) }, oldestOf(span));
  const mergeFigures = async (span: FigureSpan) => {
    const oldest = oldestOf(span);
    // A clock that was ahead was set back.
    if (merged[span] > now()) merged[span] = 0;
    let at = Math.max(merged[span], oldest - (oldest % SPAN_MS[span]));
    for (const end = settledBefore(span, now()); at < end && !isClosed; at += SPAN_MS[span]) {
      await figures.merge(span, at);
      merged[span] = at + SPAN_MS[span];
      await nextTurn();
    }
  };
  const sweepFigures = async () => {
    // Figures of a minute that cannot be read must not keep those of hours.
    for (const tidy of [forgetFigures, mergeFigures])
      for (const span of ["MINUTE", "HOUR"] as const) await tidy(span).catch(onFault);
  };
  const sweep = async () => {
    // They are in different files: what keeps the one from being forgotten must not keep the other.
    await Promise.all([
      forget(calls, now() - days * DAY_MS),
      sweepFigures(),
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
