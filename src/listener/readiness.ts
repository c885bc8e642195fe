import { setMaxListeners } from "node:events";

/** Whether the service can take calls: the store answers and no stop has begun. */
export interface Readiness {
  isReady(): Promise<boolean>;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  stopped(signal: AbortSignal): Promise<void>;
  /** Marks the beginning of a stop: not ready from here on. */
  stop(): void;
}

/** @param probe rejects when something that every call needs is away. */
export function createReadiness(probe: () => Promise<void>): Readiness {
  const stopping = new AbortController();
  // Each Watch of the health service waits for it.
  setMaxListeners(0, stopping.signal);
  return {
    isReady: () =>
      probe().then(
        () => !stopping.signal.aborted,
        () => false,
      ),
    stopped: (signal) =>
      new Promise((resolve) => {
        if (signal.aborted || stopping.signal.aborted) return resolve();
        const done = () => {
          signal.removeEventListener("abort", done);
          stopping.signal.removeEventListener("abort", done);
          resolve();
        };
        signal.addEventListener("abort", done);
        stopping.signal.addEventListener("abort", done);
      }),
    stop: () => stopping.abort(),
  };
}
