import { type Bytes, createChunks } from "../chunks.js";
import { escapeGrowth } from "../json/escape-growth.js";
import { createJsonChecker } from "../json/json-checker.js";
import { slicesOf } from "../slices.js";
import type { Redactor } from "../telemetry/redact.js";
import type { Steps } from "../turns.js";
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
    const judged = yield* judgedOnce(body, redactor);
    if (judged.isJson) return { kind: "json", text: judged.bytes };
    if (essence === "") return { kind: "binary", bytes: judged.bytes };
  }
  const bytes = yield* redacted(yield* utf8InSteps(body, charset), redactor);
  return (yield* isJsonInSteps(bytes)) ? { kind: "json", text: bytes } : { kind: "utf8", bytes };
}

/** Both ways of looking in one pass over the bytes; only where a secret is found they are gone through again. */
function* judgedOnce(body: Bytes, redactor: Redactor): Steps<{ bytes: Bytes; isJson: boolean }> {
  const checker = createJsonChecker();
  const hasSecret = createSearch(redactor);
  for (const slice of slicesOf(body)) {
    if (hasSecret(slice)) {
      checker.end();
      const bytes = yield* withoutSecrets(body, redactor);
      return { bytes, isJson: yield* isJsonInSteps(bytes) };
    }
    checker.push(slice);
    yield;
  }
  return { bytes: body, isJson: checker.end() };
}

function* isJsonInSteps(bytes: Bytes): Steps<boolean> {
  const checker = createJsonChecker();
  for (const slice of slicesOf(bytes)) {
    if (!checker.push(slice)) break;
    yield;
  }
  return checker.end();
}

/** The same bytes when there is no secret in them. */
function* redacted(bytes: Bytes, redactor: Redactor): Steps<Bytes> {
  const hasSecret = createSearch(redactor);
  for (const slice of slicesOf(bytes)) {
    if (hasSecret(slice)) return yield* withoutSecrets(bytes, redactor);
    yield;
  }
  return bytes;
}

function* withoutSecrets(bytes: Bytes, redactor: Redactor): Steps<Bytes> {
  const clean = createChunks();
  const stream = redactor.stream();
  for (const slice of slicesOf(bytes)) {
    clean.push(stream.push(slice));
    yield;
  }
  clean.push(stream.end());
  return clean;
}

/** Asked for one slice after the other, tells whether a secret may be in it, or across its beginning. */
function createSearch({ overlap: overlapOf, mayOccurIn }: Redactor): (slice: Buffer) => boolean {
  const overlap = overlapOf();
  let tail: Buffer | undefined;
  return (slice) => {
    const seam = tail === undefined ? undefined : Buffer.concat([tail, slice.subarray(0, overlap)]);
    tail = slice.length >= overlap ? slice.subarray(slice.length - overlap) : (seam ?? slice).subarray(-overlap);
    return mayOccurIn(slice) || (seam !== undefined && mayOccurIn(seam));
  };
}
