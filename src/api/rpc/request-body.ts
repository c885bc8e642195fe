import type { HttpRequest } from "../../http/exchange.js";

/** The body of one request, of which the reader may leave a rest. */
export interface RequestBody extends AsyncIterable<Uint8Array> {
  /** Reads the rest and throws it away. Gives up above `maxBytes`, at once when so many are announced. */
  drain(maxBytes: number): Promise<void>;
}

/**
 * A body that a reader can leave without ending it. connect leaves a message that is over the limit, which ends the
 * stream of a request; an HTTP/1.1 connection with an ended, unread request answers nothing more and stays open.
 *
 * @param readAhead what was read of it before, and comes first.
 */
export function createRequestBody(request: HttpRequest, readAhead?: Uint8Array): RequestBody {
  const rest: AsyncIterator<Uint8Array> = request[Symbol.asyncIterator]();
  const chunks = readAhead === undefined ? rest : after(readAhead, rest);
  return {
    // Without a return(): that is what ends the stream.
    [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }),
    drain: (maxBytes) => drain(chunks, Number(request.headers["content-length"] ?? 0), maxBytes),
  };
}

async function* after(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (let chunk = await rest.next(); chunk.done !== true; chunk = await rest.next()) yield chunk.value;
}

async function drain(chunks: AsyncIterator<Uint8Array>, announced: number, maxBytes: number): Promise<void> {
  let length = 0;
  while (announced <= maxBytes && length <= maxBytes) {
    const chunk = await chunks.next();
    if (chunk.done) return;
    length += chunk.value.length;
  }
}
