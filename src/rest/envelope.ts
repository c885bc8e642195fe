import { bufferOf } from "../buffer-of.js";
import { type Bytes, bytesOf, createChunks } from "../chunks.js";
import { slicePath } from "../json/json-path.js";
import type { Answer, AnswerData, Outcome } from "../relay/outcome.js";

const EMPTY_OBJECT = bytesOf(Buffer.from("{}"));

/** Up to here one copy costs less than pieces that are written one by one. */
const MAX_JOINED_BYTES = 16 * 1024;

/**
 * The envelope of an outcome as bytes: `{"rows":[{…}]}`, pincStatus and statusCode first. The provider's JSON is
 * spliced in byte for byte, and not copied when it is large.
 */
export function envelopeFromOutcome(outcome: Outcome): Bytes {
  return outcome.result === "success"
    ? spliced(
        `{"rows":[{"pincStatus":"success","statusCode":${outcome.answer.statusCode}`,
        outcome.answer,
        outcome.callId,
      )
    : spliced(errorHead(outcome), outcome.answer, outcome.callId);
}

/** The envelope, or the part of it that `x-pinc-response-data-at` asks for when there is one. */
export function bodyFromOutcome(outcome: Outcome, dataAt: string | undefined): Bytes {
  const data = outcome.answer?.data;
  // What nearly every client asks for that asks at all: there is nothing to put together and to search through.
  if (dataAt === "rows.0.data" && data?.kind === "json") return data.text;
  const envelope = envelopeFromOutcome(outcome);
  if (dataAt === undefined) return envelope;
  const text = envelope.concat();
  const part = slicePath(text, dataAt);
  return part === undefined ? envelope : bytesOf(text.subarray(part.start, part.end));
}

function errorHead(outcome: Outcome & { result: "error" }): string {
  return (
    `{"rows":[{"pincStatus":"error","statusCode":${outcome.statusCode},"errorType":"${outcome.errorType}",` +
    `"inernalError":${JSON.stringify(outcome.message)}`
  );
}

function spliced(head: string, answer: Answer | undefined, callId: string): Bytes {
  const tail = `,"callId":"${callId}"}]}`;
  if (answer === undefined) return bytesOf(Buffer.from(head + tail));
  const { name, value, encoding } = memberFrom(answer.data);
  const before = `${head},"contentType":${JSON.stringify(answer.contentType)},"${name}":`;
  const after = `${encoding},"headers":${headersJson(answer.headers)}${tail}`;
  if (typeof value === "string") return bytesOf(Buffer.from(before + value + after));
  return value.length > MAX_JOINED_BYTES
    ? around(before, value, after)
    : bytesOf(joined(before, value.concat(), after));
}

/** No copy of the value. */
function around(before: string, value: Bytes, after: string): Bytes {
  const all = createChunks();
  for (const piece of [Buffer.from(before), ...value.pieces, Buffer.from(after)]) all.push(piece);
  return all;
}

/** One allocation, one copy of each part. */
function joined(before: string, value: Uint8Array, after: string): Buffer {
  const beforeLength = Buffer.byteLength(before);
  const result = Buffer.allocUnsafe(beforeLength + value.length + Buffer.byteLength(after));
  result.write(before, 0);
  result.set(value, beforeLength);
  result.write(after, beforeLength + value.length);
  return result;
}

function memberFrom(data: AnswerData): { name: "data" | "body"; value: string | Bytes; encoding: string } {
  switch (data.kind) {
    case "json":
      return { name: "data", value: data.text, encoding: "" };
    case "text":
      return { name: "data", value: JSON.stringify(data.text), encoding: "" };
    case "binary":
      return { name: "data", value: base64Json(data.bytes), encoding: ',"dataEncoding":"base64"' };
    case "body":
      return { name: "body", value: base64Json(data.bytes), encoding: "" };
    case "empty":
      return { name: "data", value: EMPTY_OBJECT, encoding: "" };
  }
}

function base64Json(bytes: Uint8Array): string {
  return `"${bufferOf(bytes).toString("base64")}"`;
}

function headersJson(headers: Answer["headers"]): string {
  let json = "";
  for (const [name, value] of headers)
    json += `${json === "" ? "{" : ","}${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return json === "" ? "{}" : `${json}}`;
}
