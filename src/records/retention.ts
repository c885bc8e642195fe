import { setImmediate as nextTurn } from "node:timers/promises";
import { watchClock } from "../lib/process.js";
import { inBatches } from "../lib/turns.js";
import type { CallStore } from "./call-block.js";
import type { CaptureStore } from "./capture-store.js";
import { type FigureSpan, type FigureStore, SPAN_MS, settledBefore } from "./figures.js";

/** Options of {@link startRetention}. */
export interface RetentionOptions {
  readonly calls: Pick<CallStore, "deleteBefore">;
  readonly captures: Pick<CaptureStore, "deleteBefore">;
  /** Records of webhook deliveries. */
  readonly webhooks: Pick<CallStore, "deleteBefore">;
  readonly figures: Pick<FigureStore, "deleteBefore" | "merge">;
  /** How long records are kept, in days. */
  readonly days: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The store's clock; undefined if it has none of its own. */
  readonly clock: () => Promise<number | undefined>;
  readonly onFault: (error: unknown) => void;
}

/** Deletes expired records and merges figures. */
export interface Retention {
  /** Deletes everything that has expired by now, and merges the figures of settled spans. */
  sweep(): Promise<void>;
  close(): void;
}

const DAY_MS = 86_400_000;
/** Long enough to look into yesterday's fault. No longer, since captures may contain personal data. */
const CAPTURE_MS = DAY_MS;
const DELIVERY_MS = 7 * DAY_MS;
/** Covers the last hour and the last week as shown to operators, plus the span that is just leaving that window. */
const FIGURES_MS: Readonly<Record<FigureSpan, number>> = { MINUTE: 62 * 60_000, HOUR: 7 * DAY_MS + 3_600_000 };
const EVERY_MS = 60_000;
/** Rows deleted in one transaction: a few milliseconds. */
const BATCH = 20;

/**
 * Once a minute, deletes records and captures by age and merges the figures of all processes. Every process runs this:
 * when nothing has expired, it costs one index lookup.
 *
 * A clock that is days ahead would delete everything. So the process's own must have been steady for some minutes, and
 * of that and the store's the earlier one counts.
 */
export function startRetention(options: RetentionOptions): Retention {
  const { calls, captures, webhooks, figures, days, now, clock, onFault } = options;
  /** Spans that began before these times have been merged. */
  const merged: Record<FigureSpan, number> = { MINUTE: 0, HOUR: 0 };
  let isClosed = false;
  const forget = (remove: (time: number, limit: number) => Promise<number>, time: number) =>
    inBatches(BATCH, async () => (isClosed ? 0 : remove(time, BATCH)));
  const forgetFigures = (span: FigureSpan, now: number) =>
    forget((time, limit) => figures.deleteBefore(span, time, limit), now - FIGURES_MS[span]);
  const mergeFigures = async (span: FigureSpan, now: number) => {
    const oldest = now - FIGURES_MS[span];
    // The clock was ahead and has been set back.
    if (merged[span] > now) merged[span] = 0;
    let at = Math.max(merged[span], oldest - (oldest % SPAN_MS[span]));
    for (const end = settledBefore(span, now); at < end && !isClosed; at += SPAN_MS[span]) {
      await figures.merge(span, at);
      merged[span] = at + SPAN_MS[span];
      await nextTurn();
    }
  };
  const sweepFigures = async (now: number) => {
    // A failure on minute figures must not stop the work on hour figures.
    for (const tidy of [forgetFigures, mergeFigures])
      for (const span of ["MINUTE", "HOUR"] as const) await tidy(span, now).catch(onFault);
  };
  const sweep = async () => {
    const at = Math.min(now(), (await clock()) ?? now());
    // They are in different files, so a failure in one must not stop deletion in another.
    await Promise.all([
      forget(calls.deleteBefore, at - days * DAY_MS),
      sweepFigures(at),
      forget(captures.deleteBefore, at - CAPTURE_MS).then(() => forget(webhooks.deleteBefore, at - DELIVERY_MS)),
    ]);
  };
  const isSteady = watchClock(now);
  const timer = setInterval(() => isSteady() && void sweep().catch(onFault), EVERY_MS).unref();
  return {
    sweep,
    close() {
      isClosed = true;
      clearInterval(timer);
    },
  };
}
