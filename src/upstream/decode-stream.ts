import { pipeline, type Readable } from "node:stream";
import { RelayError } from "../model/errors.js";
import { type ContentCoding, createDecoder } from "./decode.js";
import { relayError } from "./failure.js";

/** Times as large as it was sent; plain text becomes ten times as large, and a decompression bomb a thousand times. */
const MAX_EXPANSION = 100;
const CHUNK_BYTES = 64 * 1024;

/** Bytes of one body, before its codings are undone. */
interface Sent {
  bytes: number;
}

/**
 * The body without its content codings, as it comes. The source is read no faster than what is given back, and is
 * destroyed with it.
 *
 * @param codings in the order in which they are undone.
 * @param freeBytes decoded bytes that are not measured: a small answer may be as compressible as it likes.
 * @throws RelayError RESPONSE_TOO_LARGE for a decompression bomb, PROVIDER_RESPONSE_INVALID for corrupt or truncated
 * bytes, and whatever the source fails with.
 */
export function decodeStream(
  source: Readable,
  codings: readonly ContentCoding[],
  freeBytes: number,
): AsyncIterableIterator<Buffer> {
  const chunks = source.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  if (codings.length === 0) return chunks;
  const sent: Sent = { bytes: 0 };
  return codings.reduce((from, coding) => decoded(from, coding, sent, freeBytes), counted(chunks, sent));
}

async function* decoded(
  chunks: AsyncIterableIterator<Buffer>,
  coding: ContentCoding,
  sent: Sent,
  freeBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const start = await startOf(chunks);
  if (start.length === 0) return;
  let length = 0;
  try {
    // What it fails with is thrown where the decoder is read.
    const decoder = pipeline(startedWith(start, chunks), createDecoder(coding, start, CHUNK_BYTES), () => {});
    for await (const chunk of decoder as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > freeBytes && length > MAX_EXPANSION * sent.bytes) throw relayError("expansion");
      yield chunk;
    }
  } catch (error) {
    throw error instanceof RelayError ? error : relayError("corrupt", error);
  }
}

/** Two bytes show which kind of deflate it is. */
async function startOf(chunks: AsyncIterableIterator<Buffer>): Promise<Buffer> {
  const first = await chunks.next();
  if (first.done === true || first.value.length > 1) return first.done === true ? Buffer.alloc(0) : first.value;
  const second = await chunks.next();
  return second.done === true ? first.value : Buffer.concat([first.value, second.value]);
}

async function* startedWith(start: Buffer, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield start;
  yield* chunks;
}

async function* counted(chunks: AsyncIterable<Buffer>, sent: Sent): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of chunks) {
    sent.bytes += chunk.length;
    yield chunk;
  }
}
