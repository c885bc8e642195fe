/** A line of a stream. */
export interface Line {
  /** Counts from 1. */
  readonly number: number;
  /** Without its end; undefined: it is longer than it may be. */
  readonly bytes: Uint8Array | undefined;
}

const LINE_FEED = 0x0a;

/** Splits a stream at line feeds; the last line may have none. Of a line that is too long nothing is kept. */
export async function* linesOf(stream: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  let number = 1;
  let parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array) => {
    length += part.length;
    if (length > maxBytes) parts = [];
    else if (part.length > 0) parts.push(part);
  };
  const take = (): Line => {
    const bytes = length > maxBytes ? undefined : Buffer.concat(parts, length);
    [parts, length] = [[], 0];
    return { number: number++, bytes };
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield take();
}
