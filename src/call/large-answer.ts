import { createJsonChecker, createUtf8Checker, type JsonChecker } from "../json/json-validator.js";
import { escapeGrowth } from "../json/text-slices.js";
import { type Bytes, createChunks, SLICE_BYTES, slicesOf } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import type { Redactor } from "../redaction/redact.js";
import { type Room, requireRoom } from "./budget.js";
import type { AnswerData } from "./outcome.js";
import {
  BYTE_ORDER_MARK_BYTES,
  decoderForText,
  isTextType,
  isUtf8Charset,
  type MediaType,
  mayBeJson,
  type TextDecoding,
  windows1252,
} from "./text.js";

/**
 * The data of a body that is too large to be looked at in one go: what `answerFromUpstream()` makes of a small one, in
 * steps, with nothing put into one piece.
 */
export function* largeData(
  body: Bytes,
  mediaType: MediaType,
  form: "auto" | "base64" | "body",
  { redactor, memory }: LargeData,
): Steps<AnswerData> {
  const data = yield* dataInSteps(body, mediaType, form, redactor);
  requireRoom(memory, Math.max(0, (yield* writtenLength(data)) - 2 * body.length));
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

/** What it takes. */
interface LargeData {
  readonly redactor: Redactor;
  /** For what the data becomes longer than twice the body. */
  readonly memory: Room;
}

function* dataInSteps(
  body: Bytes,
  mediaType: MediaType,
  form: "auto" | "base64" | "body",
  redactor: Redactor,
): Steps<AnswerData> {
  if (form === "auto" && mayBeJson(mediaType)) return yield* jsonOrOther(body, mediaType, redactor);
  if (form === "auto" && isTextType(mediaType)) {
    return { kind: "utf8", bytes: yield* redacted(yield* utf8InSteps(body, mediaType.charset), redactor) };
  }
  return { kind: form === "body" ? "body" : "binary", bytes: yield* redacted(body, redactor) };
}

/** JSON stays the provider's bytes; what only claims to be JSON becomes a string, and what claims nothing is binary. */
function* jsonOrOther(body: Bytes, { essence, charset }: MediaType, redactor: Redactor): Steps<AnswerData> {
  if (isUtf8Charset(charset)) {
    const { bytes, isJson } = yield* judged(body, redactor);
    if (isJson) return { kind: "json", text: bytes };
    if (essence === "") return { kind: "binary", bytes };
  }
  const { bytes, isJson } = yield* judged(yield* utf8InSteps(body, charset), redactor);
  return isJson ? { kind: "json", text: bytes } : { kind: "utf8", bytes };
}

/** The same bytes when there is no secret in them. */
function* redacted(bytes: Bytes, redactor: Redactor): Steps<Bytes> {
  return (yield* judged(bytes, redactor, NEVER_JSON)).bytes;
}

/** What looks like a secret all along is read byte by byte, which takes up to a millisecond for so many. */
const STEP_BYTES = SLICE_BYTES / 4;

const NEVER_JSON = { push: () => false, end: () => false };

/** Without secrets, and whether that is JSON: both in one pass over the bytes. */
function* judged(
  body: Bytes,
  redactor: Redactor,
  checker: JsonChecker = createJsonChecker(),
): Steps<{ bytes: Bytes; isJson: boolean }> {
  const clean = createChunks();
  const stream = redactor.stream();
  const take = (parts: readonly Buffer[]) => {
    for (const part of parts) {
      checker.push(part);
      clean.push(part);
    }
  };
  for (const slice of slicesOf(body)) {
    for (let at = 0; at < slice.length; at += STEP_BYTES) {
      take(stream.push(slice.subarray(at, at + STEP_BYTES)));
      yield;
    }
  }
  take(stream.end());
  const isJson = checker.end();
  return { bytes: stream.hasFound ? clean : body, isJson };
}

/** Text as UTF-8: what `decodeText()` makes of it, in steps. What is UTF-8 already is not copied. */
function* utf8InSteps(body: Bytes, charset: string | undefined): Steps<Bytes> {
  const declared = decoderForText(startOf(body), charset);
  if (declared.encoding !== "utf-8") return yield* decoded(body, declared);
  return (yield* isUtf8InSteps(body)) ? withoutByteOrderMark(body) : yield* decoded(body, windows1252());
}

function* isUtf8InSteps(body: Bytes): Steps<boolean> {
  const checker = createUtf8Checker();
  for (const slice of slicesOf(body)) {
    if (!checker.push(slice)) return false;
    yield;
  }
  return checker.end();
}

/** A decoder keeps what is cut of a character until the rest comes, so no slice of its text ends in half a pair. */
function* decoded(body: Bytes, decoder: TextDecoding): Steps<Bytes> {
  const utf8 = createChunks();
  for (const slice of slicesOf(body)) {
    utf8.push(Buffer.from(decoder.decode(slice, { stream: true })));
    yield;
  }
  utf8.push(Buffer.from(decoder.decode()));
  return utf8;
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
