import { setMaxListeners } from "node:events";

/** Whether the service can take calls: the store answers and no stop has begun. */
export interface Readiness {
  /** Resolves to why not, in a sentence that callers may see; undefined when it can. */
  problem(): Promise<string | undefined>;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  stopped(signal: AbortSignal): Promise<void>;
  /** Marks the beginning of a stop: not ready from here on. */
  stop(): void;
}

/** @param probe resolves to what every call needs and is away, in a sentence that callers may see. */
export function createReadiness(probe: () => Promise<string | undefined>): Readiness {
  const stopping = new AbortController();
  // Each Watch of the health service waits for it.
  setMaxListeners(0, stopping.signal);
  return {
    problem: async () => {
      const problem = await probe();
      return stopping.signal.aborted ? "The relay is stopping." : problem;
    },
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
