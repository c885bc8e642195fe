import { isAscii } from "node:buffer";
import { createJsonChecker, createUtf8Checker, type JsonChecker, unfinishedLength } from "../json/json-validator.js";
import { escapeGrowth } from "../json/text-slices.js";
import { type Bytes, bytesOf, createChunks, LARGE_BYTES, NOTHING, SLICE_BYTES, slicesOf } from "../lib/chunks.js";
import { atOnce, type Steps, type Turns, type WorkLimits } from "../lib/turns.js";
import type { Redactor } from "../redaction/redact.js";
import { headerValue } from "../upstream/exchange.js";
import type { UpstreamAnswer } from "../upstream/request.js";
import { type Room, requireRoom } from "./budget.js";
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

/** How the body is to be mapped: by its type, as base64 whatever its type (GETFILE), or not at all. */
export type AnswerForm = "auto" | "base64" | "body";

/** What a large body needs besides. */
export interface LargeAnswerOptions extends WorkLimits {
  readonly turns: Turns;
  readonly memory: Room & WorkLimits["memory"];
}

/** Fields that belong to the connection, not to the answer (RFC 9110 section 7.6.1), and cookies, which are nobody's. */
const DROPPED = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "set-cookie",
  "set-cookie2",
]);

/**
 * Maps a provider's answer to what may leave the relay: fields filtered, body mapped, the token taken out of both.
 * Fails for nothing that a provider can send, unless there is no room for it. A large body is worked on in turns of the
 * event loop, which rejects as `Turns` says; there is no promise for the others.
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

/** The head of a provider's answer as far as it may leave the relay; its fields stay bytes, as latin1 text. Pure. */
export function headFromUpstream(upstream: Omit<UpstreamAnswer, "body">, redactor: Redactor): AnswerHead {
  return headFrom(upstream, mediaTypeFromRaw(upstream.rawHeaders, redactor), redactor, asItIs);
}

function asItIs(value: string): string {
  return value;
}

/**
 * Whether an answer is a part of a text (RFC 9110 section 14): it says so itself, whatever the caller's way to ask for it
 * was (Request-Range, x-ms-range), or follows a `Range` of bytes. Of other units a provider makes what it likes: lists,
 * mostly. A caller could put a token together of such parts, none of which holds it. To mask what may be a part of it would
 * be worse: a caller who has text of his own cut so would learn of each guess whether it is a part of the token.
 */
export function isPartOfText(
  asked: ReadonlyArray<readonly [name: string, value: string]>,
  { statusCode, rawHeaders }: Omit<UpstreamAnswer, "body">,
): boolean {
  const range = headerValue(rawHeaders, "content-range");
  if (statusCode > 299 || (statusCode !== 206 && range === "")) return false;
  const mediaType = parseMediaType(headerValue(rawHeaders, "content-type"));
  const ofBytes = mediaType.essence === "multipart/byteranges" || BYTES.test(range);
  if (!ofBytes && !asked.some(([name, value]) => name.toLowerCase() === "range" && BYTES.test(value))) return false;
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

/** No JSON is still JSON without its end, but a number. */
function isKnownWhole(data: AnswerData): boolean {
  if (data.kind !== "json") return false;
  const last = data.text.pieces.at(-1)?.at(-1) ?? 0;
  return last < 0x30 || last > 0x39;
}

/** Redacted before it is read: a media type is put in lower case, and a token with it. */
function mediaTypeFromRaw(raw: readonly string[], redactor: Redactor): MediaType {
  return parseMediaType(redactor.text(headerValue(raw, "content-type")));
}

/** In steps; what is short takes one. */
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

/** How long a text becomes, also where a character was one byte and is three. All else is less than twice as long. */
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

/** JSON stays the provider's bytes; what only claims to be JSON becomes a string, and what claims nothing is binary. */
function* jsonOrOther(body: Bytes, { essence, charset }: MediaType, redactor: Redactor): Steps<AnswerData> {
  if (isUtf8Charset(charset)) {
    const { bytes, isJson } = yield* judged(body, redactor);
    if (isJson) return { kind: "json", text: bytes };
    if (essence === "") return { kind: "binary", bytes };
  }
  // In another charset, behind a byte order mark, or no JSON at all.
  const utf8 = (yield* utf8InSteps(body, charset, false)) ?? body;
  const { bytes, isJson } = yield* judged(utf8, redactor);
  return isJson ? { kind: "json", text: bytes } : textData(bytes, body);
}

/** That of a short body is a string. */
function textData(utf8: Bytes, body: Bytes): AnswerData {
  if (body.length > SLICE_BYTES) return { kind: "utf8", bytes: utf8 };
  return { kind: "text", text: utf8.concat().toString() };
}

/** The same bytes when there is no secret in them. */
function* redacted(bytes: Bytes, redactor: Redactor): Steps<Bytes> {
  return (yield* judged(bytes, redactor, NEVER_JSON)).bytes;
}

/** What looks like a secret all along is read byte by byte, which takes up to a millisecond for so many. */
const STEP_BYTES = SLICE_BYTES / 4;

const NEVER_JSON = { push: () => false, end: () => false };

/** Without secrets, and whether that is JSON: of what is longer than a slice both in one pass over the bytes. */
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
 * Text as UTF-8: decoded by byte order mark, then by charset (every label of the Encoding standard), then as UTF-8; bytes
 * that are not UTF-8 and name no known charset are read as windows-1252, as the standard reads latin1. What is UTF-8
 * already is not copied.
 *
 * @param isFatal whether it is undefined when the bytes are not of their charset.
 */
function* utf8InSteps(body: Bytes, charset: string | undefined, isFatal: boolean): Steps<Bytes | undefined> {
  const declared = decoderForText(startOf(body), charset, isFatal);
  if (declared !== undefined && declared.encoding !== "utf-8") return yield* decoded(body, declared);
  const found = yield* utf8Found(body);
  if (found === "whole") return withoutByteOrderMark(body);
  return yield* decoded(body, declared ?? new TextDecoder(found === "cut" ? "utf-8" : "windows-1252"));
}

/**
 * What of UTF-8 bytes are: `cut` within their last character, behind others beyond ASCII. Without those, the last byte may
 * as well be a letter of latin1.
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

/** Undefined when the decoder is fatal and the bytes are not of its charset. */
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
 * A decoder keeps what is cut of a character until the rest comes, so no slice of its text ends in half a pair. Never in
 * one step: Node.js 20 then reads windows-1252 as latin1 (bytes 0x80 to 0x9f come out wrong).
 */
function textFrom(decoder: TextDecoding, slice: Buffer | undefined): string | undefined {
  try {
    return slice === undefined ? decoder.decode() : decoder.decode(slice, { stream: true });
  } catch {
    // TypeError of a fatal decoder, which is asked whether it is text.
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

/** As many bytes as a byte order mark may have. */
function startOf({ pieces }: Bytes): Buffer {
  return Buffer.concat(pieces.slice(0, BYTE_ORDER_MARK_BYTES)).subarray(0, BYTE_ORDER_MARK_BYTES);
}

/** Names as received; fields that repeat are joined under the first spelling of their name. */
function headersFromRaw(
  raw: readonly string[],
  redactor: Redactor,
  textOf: (value: string) => string,
): Array<readonly [string, string]> {
  const named = namedByConnection(raw);
  // Two lists: there are some five fields, of which a Map would cost more than comparing their names.
  const keys: string[] = [];
  const fields: Array<[name: string, value: string]> = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    const key = name.toLowerCase();
    if (DROPPED.has(key) || named?.has(key)) continue;
    const value = textOf(raw[at + 1] as string);
    // V8 looks up what is at -1 by name.
    const before = keys.indexOf(key);
    const field = before === -1 ? undefined : fields[before];
    if (field === undefined) {
      keys.push(key);
      fields.push([name, value]);
    } else {
      field[1] += `, ${value}`;
    }
  }
  // Once all are joined: a value that repeats would be searched again for each.
  return fields.map(([name, value]) => [redactor.text(name), redactor.text(value)]);
}

/** Fields that the Connection field declares hop-by-hop; undefined in the ordinary case of none. */
function namedByConnection(raw: readonly string[]): Set<string> | undefined {
  const value = headerValue(raw, "connection").toLowerCase();
  if (value === "" || value === "keep-alive" || value === "close") return undefined;
  return new Set(value.split(",").map((name) => name.trim()));
}
