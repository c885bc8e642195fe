import { pipeline, type Readable, type Transform } from "node:stream";
import * as zlib from "node:zlib";
import { type Bytes, createChunks, NOTHING, slicesOf } from "../lib/chunks.js";
import { RelayError } from "../model/errors.js";
import { relayError } from "./failure.js";
import type { MemoryShare } from "./request.js";

/** Content codings that the relay decodes (RFC 9110 section 8.4.1); `zstd` from Node.js 24 on. */
export type ContentCoding = "gzip" | "deflate" | "br" | "zstd";

/** Nobody needs more codings of one body, and each makes a decompression bomb a thousand times as large. */
const MAX_CODINGS = 3;

/**
 * Values seen in Content-Encoding that are not codings; the body is not encoded. Charsets, transfer encodings of mail,
 * and what S3 keeps of an upload's framing.
 */
const NO_CODING =
  /^(?:|identity|none|null|binary|plain|text|[78]bit|chunked|aws-chunked|utf-?(?:8|16|32)(?:[bl]e)?|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-\d{3,4})$/;

/**
 * Parses a Content-Encoding value into the codings to undo, the last applied first. Undefined when one is unknown or
 * there are more than three (threats P07): a body that cannot be decoded cannot be searched for a token. Pure.
 */
export function parseContentCodings(value: string): readonly ContentCoding[] | undefined {
  const codings: ContentCoding[] = [];
  for (const listed of value.toLowerCase().split(",")) {
    const label = listed.trim();
    if (NO_CODING.test(label)) continue;
    const coding = label === "x-gzip" ? "gzip" : label;
    if (!isContentCoding(coding) || codings.length === MAX_CODINGS) return undefined;
    codings.unshift(coding);
  }
  return codings;
}

/**
 * Decodes a whole body on worker threads. Bytes after its end make it corrupt; a gzip body may have several members and
 * be padded with zeros (RFC 1952 section 2.2).
 *
 * @param codings in the order in which to undo them.
 * @param maxBytes largest body after each coding; decoding stops there, so that a small body cannot fill the memory.
 * @param mayGrowTo called before each piece of `body` with 0, and with the bytes decoded so far; decoding stops when it
 *   returns false.
 * @param memory charged for the windows of the decoders; without it, they are not counted.
 * @throws RelayError RESPONSE_TOO_LARGE; PROVIDER_RESPONSE_INVALID for corrupt or truncated bytes; OVERLOADED.
 */
export async function decodeBody(
  body: Bytes,
  codings: readonly ContentCoding[],
  maxBytes: number,
  mayGrowTo: (length: number) => boolean,
  memory?: MemoryShare,
): Promise<Bytes> {
  const judge = (length: number) => {
    if (length > maxBytes) throw relayError("tooLarge");
    if (!mayGrowTo(length)) throw relayError("noMemory");
  };
  async function* pieces(): Pieces {
    for (const slice of slicesOf(body)) {
      judge(0);
      yield slice;
    }
  }
  const whole = createChunks();
  const options = { chunkBytes: chunkBytesFor(body.length), judge, memory };
  for await (const chunk of undone(pieces(), codings, options)) whole.push(chunk);
  return whole;
}

/**
 * Each output chunk costs a round trip to a worker thread: few trips for a large body, little memory for a small one.
 */
function chunkBytesFor(length: number): number {
  return Math.min(Math.max(length * 4, 4096), 256 * 1024);
}

/** Largest ratio of decoded to sent bytes; plain text expands tenfold, a decompression bomb a thousandfold. */
const MAX_EXPANSION = 100;

/**
 * Decodes a streamed body, with backpressure to the source.
 *
 * @param codings in the order in which to undo them.
 * @param freeBytes decoded bytes up to which the ratio is not checked: a small answer may compress arbitrarily well.
 * @throws RelayError RESPONSE_TOO_LARGE for a decompression bomb, otherwise as `decodeBody()`; also any error of the
 *   source.
 */
export function decodeStream(
  source: Readable,
  codings: readonly ContentCoding[],
  freeBytes: number,
  memory?: MemoryShare,
): AsyncIterableIterator<Buffer> {
  const chunks = source.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  if (codings.length === 0) return chunks;
  let sentBytes = 0;
  async function* counted(): Pieces {
    for await (const chunk of chunks) {
      sentBytes += chunk.length;
      yield chunk;
    }
  }
  const judge = (length: number) => {
    if (length > freeBytes && length > MAX_EXPANSION * sentBytes) throw relayError("expansion");
  };
  return undone(counted(), codings, { chunkBytes: 64 * 1024, judge, memory });
}

/** A body, piece by piece. */
type Pieces = AsyncGenerator<Buffer, void, undefined>;

interface DecodingOptions {
  readonly chunkBytes: number;
  /** Throws when a decoder has returned too many bytes. */
  readonly judge: (length: number) => void;
  readonly memory: MemoryShare | undefined;
}

function undone(pieces: Pieces, codings: readonly ContentCoding[], options: DecodingOptions): Pieces {
  return codings.reduce((from, coding) => decoded(from, coding, options), pieces);
}

async function* decoded(pieces: Pieces, coding: ContentCoding, { chunkBytes, judge, memory }: DecodingOptions): Pieces {
  const start = await startOf(pieces);
  if (start.length === 0) return;
  const windowBytes = windowBytesOf(coding, start);
  if (memory?.reserve(windowBytes) === false) throw relayError("noMemory");
  const feed = new Feed(pieces, coding, createDecoder(coding, start, chunkBytes));
  let length = 0;
  try {
    // Errors are thrown to the loop that reads the decoder.
    for await (const chunk of pipeline(feed.from(start), feed.decoder, () => {}) as AsyncIterable<Buffer>) {
      length += chunk.length;
      judge(length);
      yield chunk;
    }
    if (!(await feed.endsWithDecoder())) throw relayError("corrupt");
  } catch (error) {
    throw error instanceof RelayError ? error : relayError("corrupt", error);
  } finally {
    memory?.giveBack(windowBytes);
    void pieces.return();
  }
}

/** Reads at least two bytes, which show the kind of deflate. */
async function startOf(pieces: Pieces): Promise<Buffer> {
  const first = await pieces.next();
  if (first.done === true || first.value.length > 1) return first.done === true ? NOTHING : first.value;
  const second = await pieces.next();
  return second.done === true ? first.value : Buffer.concat([first.value, second.value]);
}

/**
 * Feeds a decoder, which reaches the end of the body when it consumes no more. It gets one piece at a time, so that
 * anything it leaves is part of the last piece.
 */
class Feed {
  readonly decoder: Transform & { readonly bytesWritten: number };
  readonly #pieces: Pieces;
  readonly #coding: ContentCoding;
  #last: Buffer = NOTHING;
  #givenBytes = 0;

  constructor(pieces: Pieces, coding: ContentCoding, decoder: Feed["decoder"]) {
    this.#pieces = pieces;
    this.#coding = coding;
    this.decoder = decoder;
  }

  async *from(start: Buffer): AsyncGenerator<Buffer> {
    let tail = "";
    for (let piece: Buffer | undefined = start; piece !== undefined; piece = await this.#next()) {
      this.#last = piece;
      this.#givenBytes += piece.length;
      tail = (tail + piece.toString("latin1", Math.max(0, piece.length - 3))).slice(-3);
      yield piece;
      if (this.decoder.bytesWritten < this.#givenBytes) return;
    }
    if (this.#coding === "zstd") yield* restOfFrame(tail);
  }

  /** Whether no bytes follow the end of the decoded body, except zeros that pad gzip. */
  async endsWithDecoder(): Promise<boolean> {
    const leftBytes = this.#givenBytes - this.decoder.bytesWritten;
    if (leftBytes < 0) return false;
    let rest: Buffer | undefined = this.#last.subarray(this.#last.length - leftBytes);
    for (; rest !== undefined; rest = await this.#next()) {
      if (rest.length > 0 && (this.#coding !== "gzip" || rest.some((byte) => byte !== 0))) return false;
    }
    return true;
  }

  async #next(): Promise<Buffer | undefined> {
    const next = await this.#pieces.next();
    return next.done === true ? undefined : next.value;
  }
}

/** Bytes at the end that may begin a zstd frame, either of data or skippable (RFC 8878 section 3.1). */
const FRAME_START = /(?:\(\xb5?\/?|[P-_]\*?M?)$/;
const EMPTY_FRAME = Buffer.from("28b52ffd2000010000", "hex");
const EMPTY_SKIPPED_FRAME = Buffer.from("502a4d1800000000", "hex");

/**
 * Completes a possibly truncated frame to an empty one. Node.js does not notice that a second frame is cut within its
 * first four bytes. A decoder that waits for more consumes these bytes; one at the end of a frame leaves them.
 */
function* restOfFrame(tail: string): Generator<Buffer> {
  const begun = FRAME_START.exec(tail)?.[0];
  if (begun !== undefined) yield (begun.startsWith("(") ? EMPTY_FRAME : EMPTY_SKIPPED_FRAME).subarray(begun.length);
}

const ZLIB_WINDOW_BYTES = 32 * 1024;
/** Largest zstd window, 8 MiB (RFC 9659 section 3). */
const ZSTD_WINDOW_LOG = 23;

/** Largest window of decoded bytes that a decoder keeps. */
function windowBytesOf(coding: ContentCoding, start: Buffer): number {
  if (coding === "zstd") return 2 ** ZSTD_WINDOW_LOG;
  return coding === "br" ? brotliWindowBytes(start[0] ?? 0) : ZLIB_WINDOW_BYTES;
}

/** Window size by RFC 7932 section 9.1. Windows below 64 KiB count as 128 KiB. */
function brotliWindowBytes(firstByte: number): number {
  return 2 ** ((firstByte & 1) === 0 ? 16 : 17 + ((firstByte >> 1) & 7));
}

interface DecoderOptions {
  readonly chunkSize: number;
  readonly writableHighWaterMark: number;
}

type CreateDecoder = (options: DecoderOptions) => Feed["decoder"];

const createZstd = zstdDecoder(zlib as unknown as ZstdOfNode);

/** Members of node:zlib that Node.js 20 lacks. */
interface ZstdOfNode {
  readonly zstdDecompressSync?: typeof zlib.brotliDecompressSync;
  readonly createZstdDecompress?: typeof zlib.createBrotliDecompress;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

/**
 * The zstd decoder, if Node.js has a usable one. The body chooses the decoder's window: 8 MiB at most, as RFC 9659 says
 * for HTTP. The decoder of Node.js 22 accepts a truncated body and is not used.
 */
function zstdDecoder(node: ZstdOfNode): CreateDecoder | undefined {
  const { createZstdDecompress, constants } = node;
  const windowLogMax = constants.ZSTD_d_windowLogMax;
  if (createZstdDecompress === undefined || windowLogMax === undefined || !noticesTruncation(node)) return undefined;
  return (options) => createZstdDecompress({ ...options, params: { [windowLogMax]: ZSTD_WINDOW_LOG } });
}

/** Whether the decoder rejects a frame that is cut after its first byte. */
function noticesTruncation({ zstdDecompressSync }: ZstdOfNode): boolean {
  try {
    zstdDecompressSync?.(Buffer.of(0x28));
    return false;
  } catch {
    // Z_BUF_ERROR: the decoder expects more input.
    return true;
  }
}

function isContentCoding(label: string): label is ContentCoding {
  return label === "gzip" || label === "deflate" || label === "br" || (label === "zstd" && createZstd !== undefined);
}

/** @param start the body's first two bytes, or fewer if it is shorter. */
function createDecoder(coding: ContentCoding, start: Buffer, chunkSize: number): Feed["decoder"] {
  const options = { chunkSize, writableHighWaterMark: 1 };
  if (coding === "gzip") return zlib.createGunzip(options);
  if (coding === "br") return zlib.createBrotliDecompress(options);
  if (coding === "zstd" && createZstd !== undefined) return createZstd(options);
  return hasZlibHeader(start) ? zlib.createInflate(options) : zlib.createInflateRaw(options);
}

/** `deflate` means the zlib format (RFC 9110 section 8.4.1.2), but some servers send bare deflate (RFC 1951). */
function hasZlibHeader(body: Buffer): boolean {
  const first = body[0] ?? 0;
  return (first & 0x0f) === 8 && ((first << 8) | (body[1] ?? 0)) % 31 === 0;
}
