import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8 from guessing where objects live long. What a call makes lives as long as the provider takes: with some hundred
 * calls in flight V8 sees it outlive its frequent collections, and from then on makes it where only the rare, long ones
 * look. To be called before calls are served.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
