import { collectGarbage } from "../support/collect-garbage.js";

/** Memory of this process in MiB after a collection, and its TCP sockets, listening ones too. */
export interface Usage {
  readonly rssMib: number;
  /** Heap and buffers. */
  readonly usedMib: number;
  readonly sockets: number;
}

/** Collects garbage and measures. */
export async function measureUsage(): Promise<Usage> {
  // Handles that were closed just now go in the loop's close phase, which comes after the one of immediates.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  // Twice: what the first one finalises, the second one frees.
  collectGarbage();
  collectGarbage();
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  return {
    rssMib: mib(rss),
    usedMib: mib(heapUsed + arrayBuffers),
    sockets: process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP")).length,
  };
}

/** One line for a report. */
export function textFromUsage(before: Usage, after: Usage): string {
  return (
    `RSS ${before.rssMib} → ${after.rssMib} MiB, heap and buffers ${before.usedMib} → ${after.usedMib} MiB, ` +
    `sockets ${before.sockets} → ${after.sockets}`
  );
}

function mib(bytes: number): number {
  return Math.round((bytes / 1_048_576) * 10) / 10;
}
