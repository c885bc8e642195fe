import type { ChildProcess } from "node:child_process";
import { nextMessage } from "./pinned-process.js";
import { cpuOf, forgetPeak, peakMibOf } from "./process-figures.js";
import type { LoadNotice, LoadOrder } from "./processes/load-order.js";
import type { Subject } from "./subject.js";
import type { Yardstick } from "./yardstick.js";

/** What one subject did at one point. */
export interface Figures {
  /** CPU microseconds of the subject's process for one call. */
  readonly cpuUs: number;
  /** The same of the process that makes the calls. */
  readonly callersCpuUs: number;
  readonly callsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly peakMib: number;
  /** Whether the machine was disturbed in each of the tries. */
  readonly disturbed: boolean;
}

/** A disturbed point is measured again so often; then its quietest try is taken. */
const MAX_TRIES = 3;
/** Ready to run but kept waiting for a larger part of the time: another process was on the core. */
const MAX_WAITED = 0.05;

/** Measures, again when the machine was disturbed meanwhile. */
export async function measure(
  subject: Subject,
  order: LoadOrder,
  load: ChildProcess,
  yardstick: Yardstick,
): Promise<Figures> {
  let best: (Figures & { readonly waited: number }) | undefined;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const beforeMs = await yardstick.read();
    const figures = await measureOnce(subject, order, load);
    const slowest = Math.max(beforeMs, await yardstick.read());
    const disturbed = yardstick.isDisturbed(slowest) || figures.waited > MAX_WAITED;
    if (best === undefined || figures.waited < best.waited || !disturbed) best = { ...figures, disturbed };
    if (!disturbed) break;
  }
  const { waited: _, ...figures } = best as NonNullable<typeof best>;
  return figures;
}

/** One try, whatever the machine does meanwhile. */
export async function measureOnce({ pid }: Subject, order: LoadOrder, load: ChildProcess) {
  forgetPeak(pid);
  load.send(order);
  await nextNotice(load);
  const before = cpuOf(pid);
  const beforeOfCallers = cpuOf(load.pid as number);
  const ended = await nextNotice(load);
  const after = cpuOf(pid);
  const afterOfCallers = cpuOf(load.pid as number);
  if (ended.notice !== "ended") throw new Error("the load process told nothing of its end");
  return {
    cpuUs: (after.ranUs - before.ranUs) / ended.calls,
    callersCpuUs: (afterOfCallers.ranUs - beforeOfCallers.ranUs) / ended.calls,
    callsPerSecond: ended.calls / ended.seconds,
    p50Us: ended.p50Us,
    p99Us: ended.p99Us,
    peakMib: peakMibOf(pid),
    waited: (after.waitedUs - before.waitedUs) / 1e6 / ended.seconds,
  };
}

async function nextNotice(load: ChildProcess): Promise<Exclude<LoadNotice, { notice: "failed" }>> {
  const notice = await nextMessage<LoadNotice>(load);
  if (notice.notice === "failed") throw new Error(notice.problem);
  return notice;
}
