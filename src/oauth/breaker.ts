import { isAhead } from "./connection.js";

/** Keeps a token endpoint that is in trouble from being asked by every connection at once (threats 3.8). */
export interface Breaker {
  /** Milliseconds until the endpoint may be asked again; 0 when it may be asked now. Counts as a probe when open. */
  waitMs(endpoint: string, now: number): number;
  /** The same for those who only want to know: no probe. */
  peekMs(endpoint: string, now: number): number;
  /** Whether the trouble is the endpoint's, and no connection's own. */
  isOpen(endpoint: string): boolean;
  recordFailure(endpoint: string, now: number): void;
  recordSuccess(endpoint: string): void;
}

/** This many failures within the window open it, and only a success closes it. */
const MAX_FAILURES = 10;
const WINDOW_MS = 30_000;
/** While it is open, one refresh in this time finds out whether the endpoint is back. */
const PROBE_EVERY_MS = 5000;

interface Trouble {
  /** Times of the failures within the window, until it opens. */
  failures: number[];
  isOpen: boolean;
  nextProbeAt: number;
}

/** One breaker for all endpoints; times are milliseconds since the epoch. */
export function createBreaker(): Breaker {
  const troubles = new Map<string, Trouble>();
  const openOf = (endpoint: string): Trouble | undefined => {
    const trouble = troubles.get(endpoint);
    return trouble?.isOpen ? trouble : undefined;
  };
  const peekMs = (endpoint: string, now: number) => {
    const nextProbeAt = openOf(endpoint)?.nextProbeAt;
    return nextProbeAt !== undefined && isAhead(nextProbeAt, now, PROBE_EVERY_MS) ? nextProbeAt - now : 0;
  };
  return {
    peekMs,
    isOpen: (endpoint) => openOf(endpoint) !== undefined,
    waitMs(endpoint, now) {
      const waitMs = peekMs(endpoint, now);
      const trouble = openOf(endpoint);
      if (waitMs === 0 && trouble !== undefined) trouble.nextProbeAt = now + PROBE_EVERY_MS;
      return waitMs;
    },
    recordFailure(endpoint, now) {
      const trouble = troubles.get(endpoint) ?? { failures: [], isOpen: false, nextProbeAt: 0 };
      troubles.set(endpoint, trouble);
      if (trouble.isOpen) return;
      // One of a clock that stood ahead is over as well.
      trouble.failures = trouble.failures.filter((at) => isAhead(at + WINDOW_MS, now, WINDOW_MS)).concat(now);
      if (trouble.failures.length < MAX_FAILURES) return;
      trouble.isOpen = true;
      trouble.nextProbeAt = now + PROBE_EVERY_MS;
    },
    recordSuccess: (endpoint) => void troubles.delete(endpoint),
  };
}
