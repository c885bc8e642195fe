/** What streams leave behind in memory. */
export interface StreamGarbage {
  /** So many bytes were read and handed on. */
  add(bytes: number): void;
}

/** A collection takes a fraction of a millisecond then, and what waits for it is a small part of a relay's memory. */
const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Has what streams have read collected before it adds up. V8 collects young objects when they fill its young space, and
 * does not count the buffers that they hold: without this, a fast download grows the process by fifty megabytes before a
 * buffer is freed.
 *
 * @param collect collects young objects, see `createYoungCollection()`.
 */
export function createStreamGarbage(collect: () => void): StreamGarbage {
  let waiting = 0;
  return {
    add(bytes) {
      waiting += bytes;
      if (waiting < MAX_BYTES) return;
      waiting = 0;
      collect();
    },
  };
}
