import { setTimeout as delay } from "node:timers/promises";

/** Looks again and again, for at most so long, until it holds; resolves with whether it did. */
export async function holdsWithin(timeoutMs: number, holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  for (; performance.now() < until; await delay(50)) if (await holds()) return true;
  return holds();
}
