import { COMPRESSED_FLAG, PREFIX_BYTES, prefixOf } from "./row.js";

/** What may be changed of a response while it is written. */
export interface BodyChanges {
  readonly chunk?: (chunk: Uint8Array) => Uint8Array;
  /** Called before the end is told. */
  readonly end?: () => void;
}

/** A response of connect's, changed. By hand, since connect ends one that it cannot write with `throw()`. */
export function withChanges(body: AsyncIterable<Uint8Array>, { chunk, end }: BodyChanges): AsyncIterable<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  const done = { done: true, value: undefined } as const;
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const next = await chunks.next();
        if (next.done === true) end?.();
        return next.done === true || chunk === undefined ? next : { done: false, value: chunk(next.value) };
      },
      throw: async (error) => (await chunks.throw?.(error)) ?? done,
      return: async (value) => (await chunks.return?.(value)) ?? done,
    }),
  };
}

/**
 * Changes the data of the envelope that has `flag`, which is the last one. Each envelope is a chunk of its own.
 *
 * @param change gets undefined for data that is compressed, and returns undefined to leave it as it is.
 */
export function changeLastEnvelope(
  flag: number,
  change: (data: Uint8Array | undefined) => Uint8Array | undefined,
): (envelope: Uint8Array) => Uint8Array {
  return (envelope) => {
    const flags = envelope[0] ?? 0;
    if ((flags & flag) === 0) return envelope;
    const data = change((flags & COMPRESSED_FLAG) === 0 ? envelope.subarray(PREFIX_BYTES) : undefined);
    return data === undefined ? envelope : Buffer.concat([prefixOf(flag, data.length), data]);
  };
}
