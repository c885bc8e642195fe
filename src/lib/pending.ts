/** Work that outlives the request that began it. */
export interface Pending {
  /** Keeps a promise in mind until it settles; resolves and rejects as it does. */
  track<T>(work: Promise<T>): Promise<T>;
  /** Resolves when all of it has settled. */
  settled(): Promise<void>;
}

/** Creates an empty list of pending work. */
export function createPending(): Pending {
  const pending = new Set<Promise<unknown>>();
  return {
    track(work) {
      pending.add(work);
      const forget = () => void pending.delete(work);
      work.then(forget, forget);
      return work;
    },
    async settled() {
      // What ends may have begun something else.
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
