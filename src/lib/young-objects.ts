import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Keeps V8 from guessing where objects live long. What a call makes lives as long as the provider takes: with some hundred
 * calls in flight V8 sees it outlive its frequent collections, and from then on makes it where only the rare, long ones
 * look. To be called before calls are served.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}

/** V8's collection of young objects, which it keeps for those who ask with a flag: it is set and taken back here. */
export function createYoungCollection(): () => void {
  setFlagsFromString("--expose-gc");
  try {
    const collect = runInNewContext("gc") as NodeJS.GCFunction;
    return () => void collect({ type: "minor" });
  } finally {
    setFlagsFromString("--no-expose-gc");
  }
}
