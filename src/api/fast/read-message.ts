import type { Reservation } from "../../call/budget.js";
import type { HttpRequest } from "../../http/exchange.js";
import { createChunks } from "../../lib/chunks.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { PREFIX_BYTES } from "../rpc/row.js";
import type { WireText } from "./wire-text.js";

/** The body of a request, as far as it was read. */
export interface Reading {
  /** The whole body, or its beginning when it is not plain. */
  readonly bytes: Buffer;
  /** Whether it is one complete, uncompressed message within the limit. */
  readonly isPlain: boolean;
}

/**
 * Reads the body of a request until it ends or turns out not to be plain; then the rest can still be read from the
 * request. Undefined when the caller disconnects first, or the request is evicted in favour of others.
 *
 * @param isPrefixed whether the message has a prefix, as in gRPC.
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
    // The listeners keep the bytes, and an idle connection keeps the listeners.
    const settle = (isPlain: boolean) => {
      signal.removeEventListener("abort", left);
      request.off("data", onData).off("end", onEnd);
      resolve({ bytes: chunks.concat(), isPlain });
    };
    function onData(chunk: Buffer): void {
      chunks.push(chunk);
      most ??= wholeLength(chunk, maxBytes);
      if (chunks.length <= most && memory.reserve(chunk.length)) return;
      request.pause();
      settle(false);
    }
    function onEnd(): void {
      settle(!isPrefixed || chunks.length === most);
    }
    request.on("data", onData).on("end", onEnd);
    signal.addEventListener("abort", left);
  });
}

/**
 * Length of the whole body, from the prefix of a gRPC message: one byte that says whether it is compressed, then its
 * length in four bytes. 0, which is less than any body, when it is not plain or its prefix is split across chunks.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 */
function wholeLength(chunk: Buffer, maxBytes: number): number {
  if (chunk.length < PREFIX_BYTES || chunk[0] !== 0) return 0;
  const length = chunk.readUInt32BE(1);
  return length > maxBytes ? 0 : PREFIX_BYTES + length;
}

/** The prefix of an uncompressed message. */
export function grpcPrefix(length: number): WireText {
  return String.fromCharCode(0, length >>> 24, (length >>> 16) & 0xff, (length >>> 8) & 0xff, length & 0xff);
}
