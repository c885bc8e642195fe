import { pipeline, type Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { RelayError } from "../errors.js";
import { type ContentCoding, hasZlibHeader } from "./decode.js";
import { relayError } from "./failure.js";

/** Times as large as it was sent; plain text becomes ten times as large, and a decompression bomb a thousand times. */
const MAX_EXPANSION = 100;
const CHUNK_BYTES = 64 * 1024;

/** Bytes of one body, before its coding is undone. */
interface Sent {
  bytes: number;
}

/**
 * The body without its content coding, as it comes. The source is read no faster than what is given back, and is
 * destroyed with it.
 *
 * @param freeBytes decoded bytes that are not measured: a small answer may be as compressible as it likes.
 * @throws RelayError RESPONSE_TOO_LARGE for a decompression bomb, PROVIDER_RESPONSE_INVALID for corrupt or truncated
 * bytes, and whatever the source fails with.
 */
export function decodeStream(
  source: Readable,
  coding: ContentCoding,
  freeBytes: number,
): AsyncIterableIterator<Buffer> {
  const chunks = source.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  return coding === "identity" ? chunks : decoded(chunks, coding, freeBytes);
}

async function* decoded(
  chunks: AsyncIterableIterator<Buffer>,
  coding: Exclude<ContentCoding, "identity">,
  freeBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  const start = await startOf(chunks);
  if (start.length === 0) return;
  const sent: Sent = { bytes: 0 };
  let length = 0;
  try {
    // What it fails with is thrown where the decoder is read.
    const decoder = pipeline(counted(start, chunks, sent), decoderOf(coding, start), () => {});
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

async function* counted(start: Buffer, chunks: AsyncIterable<Buffer>, sent: Sent): AsyncGenerator<Buffer> {
  sent.bytes += start.length;
  yield start;
  for await (const chunk of chunks) {
    sent.bytes += chunk.length;
    yield chunk;
  }
}

function decoderOf(coding: Exclude<ContentCoding, "identity">, start: Buffer): Transform {
  const options = { chunkSize: CHUNK_BYTES };
  if (coding === "gzip") return createGunzip(options);
  if (coding === "br") return createBrotliDecompress(options);
  return hasZlibHeader(start) ? createInflate(options) : createInflateRaw(options);
}
