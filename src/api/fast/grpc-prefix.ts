import { PREFIX_BYTES } from "../rpc/envelope.js";
import type { WireText } from "./wire-text.js";

/**
 * Reads what stands in front of a message of gRPC: a byte that says whether it is compressed, and its length in four.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 *
 * @returns the length of the message; undefined when it is compressed, or when the prefix came in pieces.
 */
export function lengthFromPrefix(chunk: Buffer): number | undefined {
  return chunk.length < PREFIX_BYTES || chunk[0] !== 0 ? undefined : chunk.readUInt32BE(1);
}

/** The prefix of a message that is not compressed. */
export function grpcPrefix(length: number): WireText {
  return String.fromCharCode(0, length >>> 24, (length >>> 16) & 0xff, (length >>> 8) & 0xff, length & 0xff);
}
