import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from "node:zlib";
import { relayError } from "./failure.js";

/** Content codings that are decoded (RFC 9110 section 8.4.1). */
export type ContentCoding = "identity" | "gzip" | "deflate" | "br";

/** Reads a Content-Encoding value; undefined when it is unknown or names more than one coding (threats P07). Pure. */
export function parseContentCoding(value: string): ContentCoding | undefined {
  const coding = value.trim().toLowerCase();
  if (coding === "" || coding === "identity") return "identity";
  if (coding === "gzip" || coding === "x-gzip") return "gzip";
  return coding === "deflate" || coding === "br" ? coding : undefined;
}

/**
 * Decodes a whole body off the event loop's thread. A gzip body may have several members and be padded with zeros
 * (RFC 1952 section 2.2); other bytes after its end make it corrupt.
 *
 * @param contentEncoding value of the Content-Encoding field.
 * @param maxBytes largest decoded body; decoding stops there, so that a small body cannot fill the memory.
 * @throws RelayError RESPONSE_TOO_LARGE; PROVIDER_RESPONSE_INVALID for corrupt or truncated bytes and other codings.
 */
export async function decodeBody(body: Buffer, contentEncoding: string, maxBytes: number): Promise<Buffer> {
  const coding = parseContentCoding(contentEncoding);
  if (coding === undefined) throw relayError("coding");
  if (coding === "identity") return body;
  try {
    return await decoderOf(coding, body)(body, { maxOutputLength: maxBytes, chunkSize: chunkSizeFor(body.length) });
  } catch (error) {
    throw relayError(isOverflow(error) ? "tooLarge" : "corrupt", error);
  }
}

type Decoder = (body: Buffer, options: ZlibOptions) => Promise<Buffer>;

const decodeGzip: Decoder = promisify(gunzip);
const decodeZlib: Decoder = promisify(inflate);
const decodeRawDeflate: Decoder = promisify(inflateRaw);
const decodeBrotli: Decoder = promisify(brotliDecompress);

function decoderOf(coding: Exclude<ContentCoding, "identity">, body: Buffer): Decoder {
  if (coding === "gzip") return decodeGzip;
  if (coding === "br") return decodeBrotli;
  return hasZlibHeader(body) ? decodeZlib : decodeRawDeflate;
}

/** `deflate` means the zlib format (RFC 9110 section 8.4.1.2), but some servers send bare deflate (RFC 1951). */
export function hasZlibHeader(body: Buffer): boolean {
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
