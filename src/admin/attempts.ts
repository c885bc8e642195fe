/** What is counted of each, in windows of a minute that begin with the first. */
export interface Attempts {
  /** Whole seconds until there is room for another one; 0 when there is now. */
  waitSeconds(whose: string): number;
  add(whose: string): void;
}

const WINDOW_MS = 60_000;
/** Counted at once, some hundred bytes each: whoever has more addresses than this makes the oldest forgotten. */
const MAX_KEPT = 10_000;

/**
 * Nothing counted yet. By hand, since it has to be known before a body is read, and bounded whoever comes: the limiter of
 * calls answers later, and keeps every key for its minute. Each process counts alone.
 *
 * @param max of each in a minute.
 * @param now milliseconds of a clock that never goes back.
 */
export function createAttempts(max: number, now: () => number): Attempts {
  const kept = new Map<string, { count: number; readonly endsAt: number }>();
  return {
    waitSeconds(whose) {
      const attempts = kept.get(whose);
      if (attempts === undefined || attempts.count < max) return 0;
      return Math.max(0, Math.ceil((attempts.endsAt - now()) / 1000));
    },
    add(whose) {
      const attempts = kept.get(whose);
      if (attempts !== undefined && now() < attempts.endsAt) {
        attempts.count += 1;
        return;
      }
      kept.delete(whose);
      kept.set(whose, { count: 1, endsAt: now() + WINDOW_MS });
      const [oldest = ""] = kept.keys();
      if (kept.size > MAX_KEPT) kept.delete(oldest);
    },
  };
}
