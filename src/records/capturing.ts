import { CallCapture, type RequestToCapture } from "./call-capture.js";

/** Decides which calls are captured. */
export interface Capturing {
  /** Begins to capture a call of an application, unless its capture has ended, or has enough calls of this process. */
  begin(
    application: { readonly id: string; readonly captureUntil: number },
    described: () => RequestToCapture,
  ): CallCapture | undefined;
}

/** Calls of one capture: enough to find the one in question, little enough to be kept beside the tokens. */
export const MAX_CAPTURED_CALLS = 100;

/** @param now milliseconds since the epoch. */
export function createCapturing(now: () => number): Capturing {
  const counts = new Map<string, { until: number; calls: number }>();
  return {
    begin({ id, captureUntil }, described) {
      if (captureUntil <= now()) {
        counts.delete(id);
        return undefined;
      }
      let count = counts.get(id);
      if (count?.until !== captureUntil) {
        count = { until: captureUntil, calls: 0 };
        counts.set(id, count);
      }
      if (count.calls >= MAX_CAPTURED_CALLS) return undefined;
      count.calls += 1;
      return new CallCapture(captureUntil, described());
    },
  };
}
