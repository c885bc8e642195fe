import type { ChildProcess } from "node:child_process";
import { scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";

/** Slower than the fastest time seen by more than this: something else has the core, or its other half. */
const MAX_SLOWDOWN = 1.08;

/** Tells whether the measured core is free, by a fixed piece of work. */
export interface Yardstick {
  /** Milliseconds of the work now. */
  read(): Promise<number>;
  isDisturbed(ms: number): boolean;
  close(): Promise<void>;
}

/** Starts the process that does the work. */
export async function startYardstick(): Promise<Yardstick> {
  const child: ChildProcess = startPinned({ core: "measured", args: [scriptOf("yardstick")] });
  await nextMessage(child);
  let fastestMs = Number.POSITIVE_INFINITY;
  return {
    async read() {
      child.send("work");
      const { ms } = await nextMessage<{ ms: number }>(child);
      fastestMs = Math.min(fastestMs, ms);
      return ms;
    },
    isDisturbed: (ms) => ms > fastestMs * MAX_SLOWDOWN,
    close: () => stopPinned(child),
  };
}
