import { isAscii } from "node:buffer";
import { createJsonChecker, createUtf8Checker, type JsonChecker, unfinishedLength } from "../json/json-validator.js";
import { escapeGrowth } from "../json/text-slices.js";
import { type Bytes, bytesOf, createChunks, LARGE_BYTES, NOTHING, SLICE_BYTES, slicesOf } from "../lib/chunks.js";
import { atOnce, type Steps, type Turns, type WorkLimits } from "../lib/turns.js";
import type { Redactor } from "../redaction/redact.js";
import { headerValue, listValue } from "../upstream/exchange.js";
import type { UpstreamAnswer } from "../upstream/request.js";
import { type Room, requireRoom } from "./budget.js";
import type { CheckedCall } from "./call.js";
import type { Answer, AnswerData, AnswerHead } from "./outcome.js";
import {
  BYTE_ORDER_MARK_BYTES,
  decoderForText,
  isTextByItself,
  isTextType,
  isUtf8Charset,
  type MediaType,
  mayBeJson,
  parseMediaType,
  type TextDecoding,
  textFromField,
} from "./text.js";

/** How to map the body: by its type, as base64 whatever its type (GETFILE), or not at all. */
export type AnswerForm = "auto" | "base64" | "body";

/** What mapping a large body needs in addition. */
export interface LargeAnswerOptions extends WorkLimits {
  readonly turns: Turns;
  readonly memory: Room & WorkLimits["memory"];
}

/** Hop-by-hop fields (RFC 9110 section 7.6.1), and cookies, which nobody may receive. */
const DROPPED = new Set(
  `connection http2-settings keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer
   transfer-encoding upgrade set-cookie set-cookie2`.split(/\s+/),
);

/**
 * Maps a provider's answer to what may leave the relay: fields filtered, body mapped, secrets redacted from both. No
 * input from a provider makes it fail, unless there is no room for it. A large body is processed over several turns of
 * the event loop and returned as a promise, which rejects as `Turns` describes; any other is returned directly.
 */
export function answerFromUpstream(
  upstream: UpstreamAnswer,
  form: AnswerForm,
  redactor: Redactor,
  large: LargeAnswerOptions,
): Answer | Promise<Answer> {
  const { body } = upstream;
  const mediaType = mediaTypeFromRaw(upstream.rawHeaders, redactor);
  const head = headFrom(upstream, mediaType, redactor, textFromField);
  const steps = dataFromBody(body, mediaType, form, redactor, large.memory);
  if (body.length <= LARGE_BYTES) return withData(head, atOnce(steps));
  return large.turns.take(steps, large).then((data) => withData(head, data));
}

/** The head of a provider's answer, filtered and redacted. Field values stay bytes, as latin1 text. Pure. */
export function headFromUpstream(upstream: Omit<UpstreamAnswer, "body">, redactor: Redactor): AnswerHead {
  return headFrom(upstream, mediaTypeFromRaw(upstream.rawHeaders, redactor), redactor, asItIs);
}

function asItIs(value: string): string {
  return value;
}

/**
 * Whether an answer is part of a text (RFC 9110 section 14). Either the answer says so, however the caller asked for it
 * (Request-Range, x-ms-range), or the request had a `Range` of bytes. Ranges in other units are mostly pages of lists.
 *
 * A caller could assemble a token from such parts, none of which contains the whole of it. Masking possible parts would
 * be worse: a caller could request ranges of its own text and learn for each guess whether it is part of the token.
 * An answer to HEAD has no text.
 */
export function isPartOfText(
  asked: Pick<CheckedCall, "method" | "headers">,
  { statusCode, rawHeaders }: Omit<UpstreamAnswer, "body">,
): boolean {
  if (asked.method === "HEAD") return false;
  const range = headerValue(rawHeaders, "content-range");
  if (statusCode > 299 || (statusCode !== 206 && range === "")) return false;
  const mediaType = parseMediaType(headerValue(rawHeaders, "content-type"));
  const ofBytes = mediaType.essence === "multipart/byteranges" || BYTES.test(range);
  if (!ofBytes && !asked.headers.some(([name, value]) => name.toLowerCase() === "range" && BYTES.test(value)))
    return false;
  return mayBeJson(mediaType) || isTextType(mediaType) || /^(?:multipart|message)\//.test(mediaType.essence);
}

const BYTES = /^\s*bytes\b/i;

function headFrom(
  upstream: Omit<UpstreamAnswer, "body">,
  { essence }: MediaType,
  redactor: Redactor,
  textOf: (value: string) => string,
): AnswerHead {
  return {
    statusCode: upstream.statusCode,
    isPossiblyTruncated: upstream.isPossiblyTruncated === true,
    contentType: essence,
    headers: headersFromRaw(upstream.rawHeaders, redactor, textOf),
  };
}

function withData(head: AnswerHead, data: AnswerData): Answer {
  const { statusCode, contentType, headers } = head;
  const isPossiblyTruncated = head.isPossiblyTruncated === true && !isKnownWhole(data);
  return { statusCode, isPossiblyTruncated, contentType, headers, data };
}

/** Whether the data is certainly complete: truncated JSON is never valid, except for a number. */
function isKnownWhole(data: AnswerData): boolean {
  if (data.kind !== "json") return false;
  const last = data.text.pieces.at(-1)?.at(-1) ?? 0;
  return last < 0x30 || last > 0x39;
}

/** Redacts before parsing: parsing lower-cases the media type, and a token in it could then no longer be found. */
function mediaTypeFromRaw(raw: readonly string[], redactor: Redactor): MediaType {
  return parseMediaType(redactor.text(headerValue(raw, "content-type")));
}

/** Maps the body. Reserves room where the result takes more than the two copies of the body already reserved. */
function* dataFromBody(
  body: Bytes,
  mediaType: MediaType,
  form: AnswerForm,
  redactor: Redactor,
  memory: Room,
): Steps<AnswerData> {
  const data = yield* dataWithoutSecrets(body, mediaType, form, redactor);
  if (body.length > SLICE_BYTES) requireRoom(memory, Math.max(0, (yield* writtenLength(data)) - 2 * body.length));
  return data;
}

/** Length of text once written: one byte may have become three. Other kinds grow to less than twice their length. */
function* writtenLength(data: AnswerData): Steps<number> {
  switch (data.kind) {
    case "utf8":
      return data.bytes.length + (yield* escapeGrowth(data.bytes));
    case "json":
      return data.text.length;
    default:
      return 0;
  }
}

function* dataWithoutSecrets(
  body: Bytes,
  mediaType: MediaType,
  form: AnswerForm,
  redactor: Redactor,
): Steps<AnswerData> {
  if (form === "body") return { kind: "body", bytes: yield* redacted(body, redactor) };
  if (body.length === 0) return { kind: "empty" };
  if (form === "auto" && mayBeJson(mediaType)) return yield* jsonOrOther(body, mediaType, redactor);
  if (form === "auto" && isTextType(mediaType)) {
    const text = yield* utf8InSteps(body, mediaType.charset, !isTextByItself(mediaType.essence));
    if (text !== undefined) return textData(yield* redacted(text, redactor), body);
  }
  return { kind: "binary", bytes: yield* redacted(body, redactor) };
}

/** Valid JSON keeps the provider's bytes. Invalid JSON becomes a string, or binary if it has no media type. */
function* jsonOrOther(body: Bytes, { essence, charset }: MediaType, redactor: Redactor): Steps<AnswerData> {
  if (isUtf8Charset(charset)) {
    const { bytes, isJson } = yield* judged(body, redactor);
    if (isJson) return { kind: "json", text: bytes };
    if (essence === "") return { kind: "binary", bytes };
  }
  // In another charset, after a byte order mark, or not JSON.
  const utf8 = (yield* utf8InSteps(body, charset, false)) ?? body;
  const { bytes, isJson } = yield* judged(utf8, redactor);
  return isJson ? { kind: "json", text: bytes } : textData(bytes, body);
}

/** A string for a short body, UTF-8 bytes for a long one. */
function textData(utf8: Bytes, body: Bytes): AnswerData {
  if (body.length > SLICE_BYTES) return { kind: "utf8", bytes: utf8 };
  return { kind: "text", text: utf8.concat().toString() };
}

/** Redacts the bytes; returns the same ones when there is no secret in them. */
function* redacted(bytes: Bytes, redactor: Redactor): Steps<Bytes> {
  return (yield* judged(bytes, redactor, NEVER_JSON)).bytes;
}

/**
 * Bytes per step: input that looks like a secret throughout is scanned byte by byte, which takes up to a millisecond.
 */
const STEP_BYTES = SLICE_BYTES / 4;

const NEVER_JSON = { push: () => false, end: () => false };

/** Redacts the body and checks whether the result is JSON. A body longer than a slice takes one pass for both. */
function* judged(
  body: Bytes,
  redactor: Redactor,
  checker: JsonChecker = createJsonChecker(),
): Steps<{ bytes: Bytes; isJson: boolean }> {
  if (body.length <= SLICE_BYTES) {
    const whole = body.concat();
    const clean = redactor.bytes(whole);
    checker.push(clean);
    return { bytes: clean === whole ? body : bytesOf(clean), isJson: checker.end() };
  }
  const clean = createChunks();
  const stream = redactor.stream();
  const take = (parts: readonly Buffer[]) => {
    for (const part of parts) {
      checker.push(part);
      clean.push(part);
    }
  };
  let step: Uint8Array = NOTHING;
  for (const next of stepsOf(body)) {
    take(stream.push(step, next));
    step = next;
    yield;
  }
  take(stream.push(step, NOTHING));
  take(stream.end());
  const isJson = checker.end();
  return { bytes: stream.hasFound() ? clean : body, isJson };
}

function* stepsOf(body: Bytes): Generator<Uint8Array, void, undefined> {
  for (const slice of slicesOf(body)) {
    for (let at = 0; at < slice.length; at += STEP_BYTES) yield slice.subarray(at, at + STEP_BYTES);
  }
}

/**
 * Converts text to UTF-8. Decodes by byte order mark, else by charset (any label of the Encoding standard), else as
 * UTF-8. Bytes that are not UTF-8 and name no known charset are decoded as windows-1252, as the standard decodes
 * latin1. Text that is already UTF-8 is not copied.
 *
 * @param isFatal whether to return undefined when the bytes are invalid in their charset.
 */
function* utf8InSteps(body: Bytes, charset: string | undefined, isFatal: boolean): Steps<Bytes | undefined> {
  const declared = decoderForText(startOf(body), charset, isFatal);
  if (declared !== undefined && declared.encoding !== "utf-8") return yield* decoded(body, declared);
  const found = yield* utf8Found(body);
  if (found === "whole") return withoutByteOrderMark(body);
  return yield* decoded(body, declared ?? new TextDecoder(found === "cut" ? "utf-8" : "windows-1252"));
}

/**
 * Whether bytes are UTF-8: `whole` if valid, `cut` if they end within their last character and contain other non-ASCII
 * characters before it. Without those they count as `none`: the last byte may just as well be a latin1 letter.
 */
function* utf8Found(body: Bytes): Steps<"whole" | "cut" | "none"> {
  const checker = createUtf8Checker();
  let isPlain = true;
  for (const slice of slicesOf(body)) {
    if (!checker.push(slice)) return "none";
    isPlain &&= isAscii(slice.subarray(0, slice.length - unfinishedLength(slice)));
    yield;
  }
  if (checker.end()) return "whole";
  return isPlain ? "none" : "cut";
}

/** Decodes the bytes; undefined when the decoder is fatal and they are invalid in its charset. */
function* decoded(body: Bytes, decoder: TextDecoding): Steps<Bytes | undefined> {
  const utf8 = createChunks();
  for (const slice of [...slicesOf(body), undefined]) {
    const text = textFrom(decoder, slice);
    if (text === undefined) return undefined;
    utf8.push(Buffer.from(text));
    yield;
  }
  return utf8;
}

/**
 * Decodes one slice; undefined flushes the decoder. A decoder holds back an incomplete character until the rest
 * arrives, so no text ends within a surrogate pair. Always in stream mode: in a single call Node.js 20 decodes
 * windows-1252 as latin1 (bytes 0x80 to 0x9f come out wrong).
 */
function textFrom(decoder: TextDecoding, slice: Buffer | undefined): string | undefined {
  try {
    return slice === undefined ? decoder.decode() : decoder.decode(slice, { stream: true });
  } catch {
    // TypeError of a fatal decoder: the bytes are not text in this charset.
    return undefined;
  }
}

function withoutByteOrderMark(body: Bytes): Bytes {
  if (!startOf(body).equals(UTF8_BYTE_ORDER_MARK)) return body;
  const rest = createChunks();
  let left = BYTE_ORDER_MARK_BYTES;
  for (const piece of body.pieces) {
    if (piece.length > left) rest.push(piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}

const UTF8_BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The first bytes, as many as the longest byte order mark has. */
function startOf({ pieces }: Bytes): Buffer {
  return Buffer.concat(pieces.slice(0, BYTE_ORDER_MARK_BYTES)).subarray(0, BYTE_ORDER_MARK_BYTES);
}

/** Filters and redacts the fields. Names stay as received; repeated fields are joined under their first spelling. */
function headersFromRaw(
  raw: readonly string[],
  redactor: Redactor,
  textOf: (value: string) => string,
): Array<readonly [string, string]> {
  const named = namedByConnection(raw);
  // Two arrays: with about five fields, a Map would cost more than comparing names.
  const keys: string[] = [];
  const fields: Array<[name: string, value: string]> = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    const key = name.toLowerCase();
    if (DROPPED.has(key) || named?.has(key)) continue;
    const value = textOf(raw[at + 1] as string);
    // Not fields[-1]: V8 looks that up by name, as a property.
    const before = keys.indexOf(key);
    const field = before === -1 ? undefined : fields[before];
    if (field === undefined) {
      keys.push(key);
      fields.push([name, value]);
    } else {
      field[1] += `, ${value}`;
    }
  }
  // After joining: each repetition would otherwise search the joined value again.
  return fields.map(([name, value]) => [redactor.text(name), redactor.text(value)]);
}

/** Fields that the Connection field declares hop-by-hop; undefined in the usual case of none. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  const value = listValue(raw, "connection").toLowerCase();
  if (value === "" || value === "keep-alive" || value === "close") return undefined;
  return new Set(value.split(",").map((name) => name.trim()));
}
