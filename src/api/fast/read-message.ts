import type { Reservation } from "../../call/budget.js";
import type { HttpRequest } from "../../http/exchange.js";
import { createChunks } from "../../lib/chunks.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { PREFIX_BYTES } from "../rpc/row.js";
import type { WireText } from "./wire-text.js";

/** The body of a request. */
export interface Reading {
  /** All of it, or the beginning when it is not plain. */
  readonly bytes: Buffer;
  /** Whether it is one whole message that is not compressed, within the limit. */
  readonly isPlain: boolean;
}

/**
 * Reads the body of a request until it ends or is seen not to be plain: then the rest of it is still to be read from the
 * request. Undefined when the caller leaves before that, or the request has to give way to others.
 *
 * @param isPrefixed whether the message stands behind a prefix, as in gRPC.
 * @param maxBytes largest message.
 */
export function readMessage(
  request: HttpRequest,
  isPrefixed: boolean,
  maxBytes: number,
  memory: Reservation,
  signal: CallerSignal,
): Promise<Reading | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const chunks = createChunks();
    const left = { handleEvent: () => resolve(undefined) };
    let most = isPrefixed ? undefined : maxBytes;
    const settle = (isPlain: boolean) => {
      signal.removeEventListener("abort", left);
      resolve({ bytes: chunks.concat(), isPlain });
    };
    function onData(chunk: Buffer): void {
      chunks.push(chunk);
      most ??= wholeLength(chunk, maxBytes);
      if (chunks.length <= most && memory.reserve(chunk.length)) return;
      request.pause();
      request.off("data", onData).off("end", onEnd);
      settle(false);
    }
    function onEnd(): void {
      settle(!isPrefixed || chunks.length === most);
    }
    request.on("data", onData).on("end", onEnd);
    signal.addEventListener("abort", left);
  });
}

/** Bytes of the whole body; 0 when its first chunk shows that it is not plain, so that no body is that long. */
function wholeLength(chunk: Buffer, maxBytes: number): number {
  const length = lengthFromPrefix(chunk);
  return length === undefined || length > maxBytes ? 0 : PREFIX_BYTES + length;
}

/**
 * Reads what stands in front of a message of gRPC: a byte that says whether it is compressed, and its length in four.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 *
 * @returns the length of the message; undefined when it is compressed, or when the prefix came in pieces.
 */
function lengthFromPrefix(chunk: Buffer): number | undefined {
  return chunk.length < PREFIX_BYTES || chunk[0] !== 0 ? undefined : chunk.readUInt32BE(1);
}

/** The prefix of a message that is not compressed. */
export function grpcPrefix(length: number): WireText {
  return String.fromCharCode(0, length >>> 24, (length >>> 16) & 0xff, (length >>> 8) & 0xff, length & 0xff);
}
