import type { Answer, AnswerData, Outcome } from "../../call/outcome.js";
import { pathInSteps, slicePath } from "../../json/json-path.js";
import {
  type Bytes,
  base64Json,
  base64StringInSteps,
  between,
  bytesOf,
  joinedInSteps,
  LARGE_BYTES,
  membersJson,
  stringInSteps,
} from "../../lib/chunks.js";
import { atOnce, type Steps } from "../../lib/turns.js";

const EMPTY_OBJECT = bytesOf(Buffer.from("{}"));

/** Up to this size one copy costs less than writing the pieces one by one. */
export const MAX_TEXT_BYTES = 16 * 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant
const ASCII = /^[\x00-\x7f]*$/;

/** An HTTP body: bytes, or latin1 text with one character per byte. */
export type Body = Bytes | string;

/**
 * The envelope of an outcome: `{"rows":[{…}]}`, pincStatus and statusCode first. The provider's JSON is spliced in byte
 * for byte, and not copied when it is large. A small envelope is text: node:http joins it with the head of the answer
 * faster than a buffer of the parts can be made.
 *
 * @param value the provider's body as JSON, if it was encoded in steps.
 */
export function envelopeFromOutcome(outcome: Outcome, value?: Bytes): Body {
  return outcome.result === "success"
    ? spliced(
        `{"rows":[{"pincStatus":"success","statusCode":${outcome.answer.statusCode}`,
        outcome.answer,
        outcome.callId,
        value,
      )
    : spliced(errorHead(outcome), outcome.answer, outcome.callId, value);
}

/** The envelope, or the part of it at the path in `x-pinc-response-data-at`, if there is one. */
export function bodyFromOutcome(outcome: Outcome, dataAt: string | undefined): Body {
  const data = outcome.answer?.data;
  // The path that nearly all clients of this field use: no envelope to build and search.
  if (dataAt === "rows.0.data" && data?.kind === "json") return data.text;
  const envelope = envelopeFromOutcome(outcome);
  if (dataAt === undefined) return envelope;
  const text = bytesFromBody(envelope);
  const part = slicePath(text, dataAt);
  return part === undefined ? envelope : bytesOf(text.subarray(part.start, part.end));
}

/**
 * {@link bodyFromOutcome} in steps, for a large body that has to be encoded or searched; undefined for all others.
 */
export function largeBodyOf(outcome: Outcome, dataAt: string | undefined): Steps<Body> | undefined {
  const data = outcome.answer?.data;
  if (data === undefined || data.kind === "empty" || data.kind === "text") return undefined;
  if (data.kind === "json") {
    const isSearched = dataAt !== undefined && dataAt !== "rows.0.data" && data.text.length > LARGE_BYTES;
    return isSearched ? largeBody(outcome, dataAt, undefined) : undefined;
  }
  if (data.bytes.length <= LARGE_BYTES) return undefined;
  return largeBody(outcome, dataAt, data.kind === "utf8" ? stringInSteps(data.bytes) : base64StringInSteps(data.bytes));
}

function* largeBody(outcome: Outcome, dataAt: string | undefined, encoding: Steps<Bytes> | undefined): Steps<Body> {
  const envelope = envelopeFromOutcome(outcome, encoding && (yield* encoding));
  if (dataAt === undefined || typeof envelope === "string") return envelope;
  const text = yield* joinedInSteps(envelope);
  const part = yield* pathInSteps(text, dataAt);
  return part === undefined ? envelope : bytesOf(text.subarray(part.start, part.end));
}

/** A body in one piece. */
export function bytesFromBody(body: Body): Buffer {
  return typeof body === "string" ? Buffer.from(body, "latin1") : body.concat();
}

function errorHead(outcome: Outcome & { result: "error" }): string {
  return (
    `{"rows":[{"pincStatus":"error","statusCode":${outcome.statusCode},"errorType":"${outcome.errorType}",` +
    `"inernalError":${JSON.stringify(outcome.message)}`
  );
}

function spliced(head: string, answer: Answer | undefined, callId: string, long: Bytes | undefined): Body {
  const tail = `,"callId":"${callId}"}]}`;
  if (answer === undefined) return utf8Body(head + tail);
  const { name, value, encoding } = memberFrom(answer.data, long);
  const before = `${head},"contentType":${JSON.stringify(answer.contentType)},"${name}":`;
  const truncated = answer.isPossiblyTruncated === true ? ',"possiblyTruncated":true' : "";
  const after = `${encoding}${truncated},"headers":{${membersJson(answer.headers)}}${tail}`;
  if (typeof value === "string") return utf8Body(before + value + after);
  if (value.length > MAX_TEXT_BYTES || !ASCII.test(before) || !ASCII.test(after)) {
    return between(Buffer.from(before), value, Buffer.from(after));
  }
  return before + value.concat().toString("latin1") + after;
}

function utf8Body(text: string): Body {
  return text.length <= MAX_TEXT_BYTES && ASCII.test(text) ? text : bytesOf(Buffer.from(text));
}

function memberFrom(data: AnswerData, long: Bytes | undefined) {
  switch (data.kind) {
    case "json":
      return { name: "data", value: data.text, encoding: "" };
    case "text":
      return { name: "data", value: JSON.stringify(data.text), encoding: "" };
    case "utf8":
      return { name: "data", value: long ?? atOnce(stringInSteps(data.bytes)), encoding: "" };
    case "binary":
      return { name: "data", value: long ?? base64Json(data.bytes), encoding: ',"dataEncoding":"base64"' };
    case "body":
      return { name: "body", value: long ?? base64Json(data.bytes), encoding: "" };
    case "empty":
      return { name: "data", value: EMPTY_OBJECT, encoding: "" };
  }
}
