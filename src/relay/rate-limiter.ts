import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

/** Counts calls by key, in windows of a minute that begin with a key's first call. */
export interface RateLimiter {
  /** Counts one call. Resolves to 0 when it is within the limit, else to the whole seconds until it would be. */
  take(key: string, callsPerMinute: number): Promise<number>;
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
  return {
    async take(key, callsPerMinute) {
      let limiter = limiters.get(callsPerMinute);
      if (limiter === undefined) {
        const own = () => new RateLimiterMemory({ points: callsPerMinute, duration: WINDOW_SECONDS });
        limiter = shared(callsPerMinute, WINDOW_SECONDS) ?? own();
        limiters.set(callsPerMinute, limiter);
      }
      try {
        await limiter.consume(key);
        return 0;
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused;
        return Math.max(1, Math.ceil(refused.msBeforeNext / 1000));
      }
    },
  };
}
