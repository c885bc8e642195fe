import type { Compression } from "@connectrpc/connect/protocol";
import { createChunks } from "../../lib/chunks.js";
import { type BinaryParts, requireFewParts } from "./message-parts.js";
import { COMPRESSED_FLAG, PREFIX_BYTES, prefixOf } from "./row.js";

/** Stands for all further messages, so that connect refuses the request: it is decoded in no time. */
const EXTRA = { json: Buffer.concat([prefixOf(0, 2), Buffer.from("{}")]), binary: prefixOf(0, 0) };

/** The format of a body, from the fields of its request. */
interface MessageForm {
  readonly isJson: boolean;
  /** Whether its messages have prefixes. */
  readonly isEnveloped: boolean;
  /** Compression of the body, or of the messages in it; undefined for none or an unknown one. */
  readonly compression: Compression | undefined;
}

/** Reads the format of a body, in the spellings that connect accepts; it refuses any other. */
export function messageFormFrom(header: Headers, compressions: readonly Compression[]): MessageForm {
  const type = header.get("content-type") ?? "";
  const [, protocol = "", codec] = /^application\/(grpc|connect|)(?:-web)?\+?(json|proto|)/i.exec(type) ?? [];
  const field = `${ENCODING_PREFIXES.get(protocol.toLowerCase()) ?? ""}encoding`;
  return {
    isJson: codec?.toLowerCase() === "json",
    isEnveloped: protocol !== "",
    compression: compressions.find(({ name }) => name === header.get(field)),
  };
}

const ENCODING_PREFIXES: ReadonlyMap<string, string> = new Map([
  ["", "content-"],
  ["connect", "connect-content-"],
  ["grpc", "grpc-"],
]);

/**
 * Changes the fields of a request to describe the output of `inOnePiece()`: a body that was compressed as a whole is no
 * longer. The answer may still be compressed.
 */
export function describeAsPlain(header: Headers, { isEnveloped, compression }: MessageForm): void {
  if (isEnveloped || compression === undefined) return;
  header.delete("content-encoding");
  header.delete("content-length");
  if (!header.has("accept-encoding")) header.set("accept-encoding", compression.name);
}

/** How to read a message. */
export interface MessageOptions {
  readonly form: MessageForm;
  /** The counter for this message type. */
  readonly parts: BinaryParts;
  /** Largest message in bytes, compressed or not. */
  readonly maxBytes: number;
}

/**
 * The body of a request with one message, in one piece and decompressed. connect waits for all of it anyway, and joins
 * chunks in time quadratic in their number: 50,000 chunks of one byte would block the event loop for seconds
 * (threats I15). Of a body that is too long, connect gets enough to refuse it.
 *
 * @throws ConnectError INVALID_ARGUMENT for a message that would take long to decode.
 */
export async function* inOnePiece(
  body: AsyncIterable<Uint8Array>,
  options: MessageOptions,
): AsyncGenerator<Uint8Array, void> {
  const chunks = createChunks();
  for await (const chunk of body) {
    chunks.push(chunk);
    if (isTooLong(chunks, options)) break;
  }
  if (chunks.length === 0) return;
  const bytes = chunks.concat();
  if (options.form.isEnveloped) yield* firstMessage(bytes, options);
  else yield bytes.length > options.maxBytes ? bytes : await plainMessage(bytes, options, options.form.compression);
}

/**
 * The first message of a body, and one in place of all others: connect parses them all before it refuses the second.
 */
async function* firstMessage(bytes: Buffer, options: MessageOptions): AsyncGenerator<Uint8Array, void> {
  const { form } = options;
  const end = endOfMessage(bytes);
  if (end > bytes.length) {
    yield bytes;
    return;
  }
  const flags = bytes[0] as number;
  const compression = (flags & COMPRESSED_FLAG) === 0 ? undefined : form.compression;
  const message = await plainMessage(bytes.subarray(PREFIX_BYTES, end), options, compression);
  yield prefixOf(compression === undefined ? flags : flags & ~COMPRESSED_FLAG, message.length);
  yield message;
  const rest = bytes.subarray(end);
  if (rest.length === 0) return;
  const isMessage = endOfMessage(rest) <= rest.length || isTooLong(bytes, options);
  yield isMessage ? EXTRA[form.isJson ? "json" : "binary"] : rest;
}

/** Decompresses a message and counts its parts. JSON is checked where it is decoded. */
async function plainMessage(
  bytes: Buffer,
  { form, parts, maxBytes }: MessageOptions,
  compression: Compression | undefined,
): Promise<Uint8Array> {
  const message = compression === undefined ? bytes : await compression.decompress(bytes, maxBytes);
  if (!form.isJson) requireFewParts(parts, message);
  return message;
}

/** Whether it is longer than one message may be. */
function isTooLong({ length }: { readonly length: number }, { maxBytes }: MessageOptions): boolean {
  return length > maxBytes + PREFIX_BYTES;
}

/** Where the first message ends, prefix included; past the end of the bytes if it is incomplete. */
function endOfMessage(bytes: Buffer): number {
  return PREFIX_BYTES + (bytes.length < PREFIX_BYTES ? 0 : bytes.readUInt32BE(1));
}

/** Longest timeout that a client may set, in milliseconds: one day. A call ends at its own deadline long before. */
export const MAX_TIMEOUT_MS = 86_400_000;

/** Longest timer of Node.js; a longer one prints a warning and fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The longest timeout in milliseconds: eight digits. */
const LONGEST_GRPC = "99999999m";
/** Milliseconds per unit of grpc-timeout. */
export const UNITS_MS: ReadonlyMap<string | undefined, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);

/**
 * Shortens timeouts that exceed a timer. connect refuses them, since they are over its limit, but starts the timer
 * first. The shortened timeout is over the limit as well.
 *
 * @param header fields of a request; changed in place.
 */
export function shortenTimeout(header: Headers): void {
  if (Number(header.get("connect-timeout-ms")) > MAX_TIMER_MS) header.set("connect-timeout-ms", String(MAX_TIMER_MS));
  // The other units cannot exceed a timer.
  const [, value, unit] = /^(\d{1,8})([HMS])$/.exec(header.get("grpc-timeout") ?? "") ?? [];
  if (Number(value) * (UNITS_MS.get(unit) ?? 0) > MAX_TIMER_MS) header.set("grpc-timeout", LONGEST_GRPC);
}

/** Hooks that change a response while it is written. */
interface BodyChanges {
  readonly chunk?: (chunk: Uint8Array) => Uint8Array;
  /** Called before the end is reported. */
  readonly end?: () => void;
}

/**
 * Applies hooks to a response of connect. A hand-written iterator, since connect ends a failed write with `throw()`.
 */
export function withChanges(body: AsyncIterable<Uint8Array>, { chunk, end }: BodyChanges): AsyncIterable<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  const done = { done: true, value: undefined } as const;
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const next = await chunks.next();
        if (next.done === true) end?.();
        return next.done === true || chunk === undefined ? next : { done: false, value: chunk(next.value) };
      },
      throw: async (error) => (await chunks.throw?.(error)) ?? done,
      return: async (value) => (await chunks.return?.(value)) ?? done,
    }),
  };
}

/**
 * Changes the data of the envelope with `flag`, which is the last one. Each envelope is one chunk.
 *
 * @param change gets undefined for compressed data, and returns undefined to leave the envelope unchanged.
 */
export function changeLastEnvelope(
  flag: number,
  change: (data: Uint8Array | undefined) => Uint8Array | undefined,
): (envelope: Uint8Array) => Uint8Array {
  return (envelope) => {
    const flags = envelope[0] ?? 0;
    if ((flags & flag) === 0) return envelope;
    const data = change((flags & COMPRESSED_FLAG) === 0 ? envelope.subarray(PREFIX_BYTES) : undefined);
    return data === undefined ? envelope : Buffer.concat([prefixOf(flag, data.length), data]);
  };
}
