import type { Transform } from "node:stream";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { relayError } from "./failure.js";

/** Content codings that are undone (RFC 9110 section 8.4.1); `zstd` where Node.js can: from 24 on. */
export type ContentCoding = "gzip" | "deflate" | "br" | "zstd";

/** Nobody has a reason for more codings of one body; each makes a decompression bomb a thousand times as large. */
const MAX_CODINGS = 3;

/**
 * Labels that name no coding, though they stand in Content-Encoding: the body comes as it is. Charsets, transfer encodings
 * of mail, and what S3 keeps of an upload's framing.
 */
const NO_CODING =
  /^(?:|identity|none|null|binary|plain|text|[78]bit|chunked|aws-chunked|utf-?(?:8|16|32)(?:[bl]e)?|(?:us-)?ascii|latin-?1|iso-8859-\d{1,2}|windows-\d{3,4})$/;

/**
 * Reads a Content-Encoding value: the codings to undo, the last one applied first. Undefined when one of them is not known
 * here, or when there are more than three (threats P07): what cannot be decoded cannot be searched for a token. Pure.
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
 * Decodes a whole body off the event loop's thread. A gzip body may have several members and be padded with zeros
 * (RFC 1952 section 2.2); other bytes after its end make it corrupt.
 *
 * @param codings in the order in which they are undone.
 * @param maxBytes largest body after each of them; decoding stops there, so that a small body cannot fill the memory.
 * @throws RelayError RESPONSE_TOO_LARGE; PROVIDER_RESPONSE_INVALID for corrupt or truncated bytes.
 */
export async function decodeBody(body: Buffer, codings: readonly ContentCoding[], maxBytes: number): Promise<Buffer> {
  let decoded = body;
  try {
    for (const coding of codings) {
      const chunkSize = chunkSizeFor(decoded.length);
      decoded = await formatOf(coding, decoded).whole(decoded, { maxOutputLength: maxBytes, chunkSize });
    }
  } catch (error) {
    throw relayError(isOverflow(error) ? "tooLarge" : "corrupt", error);
  }
  return decoded;
}

/** What undoes a coding as the body comes; `start` has its first two bytes, if there are as many. */
export function createDecoder(coding: ContentCoding, start: Buffer, chunkSize: number): Transform {
  return formatOf(coding, start).stream({ chunkSize });
}

interface DecoderOptions {
  readonly chunkSize: number;
  readonly maxOutputLength?: number;
}

/** Compressed bytes of one kind. */
interface Format {
  readonly whole: (body: Buffer, options: DecoderOptions) => Promise<Buffer>;
  readonly stream: (options: DecoderOptions) => Transform;
}

const GZIP: Format = { whole: promisify(zlib.gunzip), stream: zlib.createGunzip };
const ZLIB: Format = { whole: promisify(zlib.inflate), stream: zlib.createInflate };
const RAW_DEFLATE: Format = { whole: promisify(zlib.inflateRaw), stream: zlib.createInflateRaw };
const BROTLI: Format = { whole: promisify(zlib.brotliDecompress), stream: zlib.createBrotliDecompress };
const ZSTD = zstdFormat(zlib as unknown as ZstdOfNode);

/** What node:zlib of Node.js 20 does not have. */
interface ZstdOfNode {
  readonly zstdDecompress?: typeof zlib.brotliDecompress;
  readonly zstdDecompressSync?: typeof zlib.brotliDecompressSync;
  readonly createZstdDecompress?: typeof zlib.createBrotliDecompress;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

/**
 * Its decoder keeps a window in memory that a body may choose: 8 MiB at most, as RFC 9659 says for HTTP. That of Node.js 22
 * takes half a body for a whole one, and is not used.
 */
function zstdFormat(node: ZstdOfNode): Format | undefined {
  const { zstdDecompress, createZstdDecompress, constants } = node;
  const windowLogMax = constants.ZSTD_d_windowLogMax;
  if (zstdDecompress === undefined || createZstdDecompress === undefined || windowLogMax === undefined)
    return undefined;
  if (!noticesTruncation(node)) return undefined;
  const decompress = promisify(zstdDecompress);
  const bounds = { params: { [windowLogMax]: 23 } };
  return {
    whole: (body, options) => decompress(body, { ...options, ...bounds }),
    stream: (options) => createZstdDecompress({ ...options, ...bounds }),
  };
}

/** Whether the first byte of a frame is refused as the whole of it. */
function noticesTruncation({ zstdDecompressSync }: ZstdOfNode): boolean {
  try {
    zstdDecompressSync?.(Buffer.of(0x28));
    return false;
  } catch {
    // Z_BUF_ERROR: the decoder knows that more must follow.
    return true;
  }
}

function isContentCoding(label: string): label is ContentCoding {
  return label === "gzip" || label === "deflate" || label === "br" || (label === "zstd" && ZSTD !== undefined);
}

function formatOf(coding: ContentCoding, start: Buffer): Format {
  if (coding === "gzip") return GZIP;
  if (coding === "br") return BROTLI;
  if (coding === "zstd" && ZSTD !== undefined) return ZSTD;
  return hasZlibHeader(start) ? ZLIB : RAW_DEFLATE;
}

/** `deflate` means the zlib format (RFC 9110 section 8.4.1.2), but some servers send bare deflate (RFC 1951). */
function hasZlibHeader(body: Buffer): boolean {
  const first = body[0] ?? 0;
  return (first & 0x0f) === 8 && ((first << 8) | (body[1] ?? 0)) % 31 === 0;
}

/** Every output chunk is one hop to a worker thread and back: few hops for a large body, little memory for a small one. */
function chunkSizeFor(length: number): number {
  return Math.min(Math.max(length * 4, 4096), 256 * 1024);
}

function isOverflow(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
}
