import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

/** Counts calls by key, in windows of a minute that begin with a key's first call. */
export interface RateLimiter {
  /** Counts one call. Resolves to 0 when it is within the limit, else to the whole seconds until it would be. */
  take(key: string, callsPerMinute: number): Promise<number>;
  /** What `take()` would answer; counts nothing. */
  peek(key: string, callsPerMinute: number): Promise<number>;
}

const WINDOW_SECONDS = 60;

/**
 * One counter set for each limit in use: a key whose limit is changed starts afresh.
 *
 * @param shared makes a counter set that other processes count in, too; this process counts alone where it makes none.
 */
export function createRateLimiter(
  shared: (points: number, durationSeconds: number) => RateLimiterAbstract | undefined = () => undefined,
): RateLimiter {
  const limiters = new Map<number, RateLimiterAbstract>();
  const limiterOf = (points: number): RateLimiterAbstract => {
    let limiter = limiters.get(points);
    if (limiter === undefined) {
      limiter = shared(points, WINDOW_SECONDS) ?? new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
      limiters.set(points, limiter);
    }
    return limiter;
  };
  return {
    async take(key, callsPerMinute) {
      try {
        await limiterOf(callsPerMinute).consume(key);
        return 0;
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused;
        return secondsUntil(refused);
      }
    },
    async peek(key, callsPerMinute) {
      const taken = await limiterOf(callsPerMinute).get(key);
      return taken === null || taken.remainingPoints > 0 ? 0 : secondsUntil(taken);
    },
  };
}

function secondsUntil({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
