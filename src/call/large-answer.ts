import { escapeGrowth } from "../json/escape-growth.js";
import { createJsonChecker, type JsonChecker } from "../json/json-checker.js";
import { type Bytes, createChunks } from "../lib/chunks.js";
import { SLICE_BYTES, slicesOf } from "../lib/slices.js";
import type { Steps } from "../lib/turns.js";
import type { Redactor } from "../redaction/redact.js";
import { type Room, requireRoom } from "./budget.js";
import type { AnswerData } from "./outcome.js";
import { isTextType, isUtf8Charset, type MediaType, mayBeJson } from "./text.js";
import { utf8InSteps } from "./text-in-steps.js";

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
export interface LargeData {
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
