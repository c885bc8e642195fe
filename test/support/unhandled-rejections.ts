import { setImmediate } from "node:timers/promises";

/** What was rejected during some work, or right after it, with nobody to handle it. The relay ends on such a rejection. */
export async function unhandledRejectionsOf(work: () => Promise<unknown>): Promise<unknown[]> {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    await work();
    await setImmediate();
  } finally {
    process.off("unhandledRejection", note);
  }
  return unhandled;
}
