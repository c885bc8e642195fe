import { isJson } from "../json/json-validator.js";
import { type Bytes, bytesOf, LARGE_BYTES, SLICE_BYTES } from "../lib/chunks.js";
import { atOnce, type Turns, type WorkLimits } from "../lib/turns.js";
import type { Redactor } from "../redaction/redact.js";
import { headerValue } from "../upstream/exchange.js";
import type { UpstreamAnswer } from "../upstream/request.js";
import type { Room } from "./budget.js";
import { largeData } from "./large-answer.js";
import type { Answer, AnswerData, AnswerHead } from "./outcome.js";
import {
  decodeText,
  isTextType,
  isUtf8Charset,
  type MediaType,
  mayBeJson,
  parseMediaType,
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
  if (body.length <= SLICE_BYTES) return withData(head, dataFromBody(body, mediaType, form, redactor));
  const steps = largeData(body, mediaType, form, { redactor, memory: large.memory });
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
 * Whether an answer is a part of a text that the caller's `Range` asked for (RFC 9110 section 14). A caller could put a
 * token together of such parts, none of which holds it. To mask what may be a part of it would be worse: a caller who has
 * text of his own cut so would learn of each guess whether it is a part of the token.
 */
export function isPartOfText(
  asked: ReadonlyArray<readonly [name: string, value: string]>,
  { statusCode, rawHeaders }: Omit<UpstreamAnswer, "body">,
): boolean {
  if (!asked.some(([name, value]) => name.toLowerCase() === "range" && /^bytes\b/i.test(value))) return false;
  if (statusCode !== 206 && (statusCode > 299 || headerValue(rawHeaders, "content-range") === "")) return false;
  const mediaType = parseMediaType(headerValue(rawHeaders, "content-type"));
  return mayBeJson(mediaType) || isTextType(mediaType) || /^(?:multipart|message)\//.test(mediaType.essence);
}

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

function dataFromBody(body: Bytes, mediaType: MediaType, form: AnswerForm, redactor: Redactor): AnswerData {
  if (form === "body") return { kind: "body", bytes: redacted(body, redactor) };
  if (body.length === 0) return { kind: "empty" };
  if (form === "auto" && mayBeJson(mediaType)) return jsonOrOther(body, mediaType, redactor);
  if (form === "auto" && isTextType(mediaType)) {
    return { kind: "text", text: redactor.text(decodeText(body.concat(), mediaType.charset)) };
  }
  return { kind: "binary", bytes: redacted(body, redactor) };
}

function redacted(body: Bytes, redactor: Redactor): Bytes {
  const bytes = body.concat();
  const clean = redactor.bytes(bytes);
  return clean === bytes ? body : bytesOf(clean);
}

/** JSON stays the provider's bytes; what only claims to be JSON becomes a string, and what claims nothing is binary. */
function jsonOrOther(body: Bytes, { essence, charset }: MediaType, redactor: Redactor): AnswerData {
  if (!isUtf8Charset(charset)) return recoded(body, charset, redactor);
  const text = redacted(body, redactor);
  if (isJson(text.concat())) return { kind: "json", text };
  return essence === "" ? { kind: "binary", bytes: text } : recoded(body, charset, redactor);
}

/** In another charset, behind a byte order mark, or no JSON at all. */
function recoded(body: Bytes, charset: string | undefined, redactor: Redactor): AnswerData {
  const text = redactor.text(decodeText(body.concat(), charset));
  const bytes = Buffer.from(text, "utf8");
  return isJson(bytes) ? { kind: "json", text: bytesOf(bytes) } : { kind: "text", text };
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
    const field = fields[keys.indexOf(key)];
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
