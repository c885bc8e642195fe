import { type JsonValue, toBinary, toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallResponseSchema } from "../../../gen/relay/v1/relay_pb.js";
import { type FastForm, largeValueOf } from "../../../src/api/fast/answer.js";
import { encodeBinary } from "../../../src/api/fast/encode-binary.js";
import { encodeJson } from "../../../src/api/fast/encode-json.js";
import { grpcPrefix } from "../../../src/api/fast/read-message.js";
import { decideRowData, type RowData, responseFromOutcome } from "../../../src/api/rpc/row.js";
import type { Answer, AnswerData, Outcome } from "../../../src/call/outcome.js";
import { type Bytes, bytesOf, createChunks } from "../../../src/lib/chunks.js";
import { atOnce } from "../../../src/lib/turns.js";

const callId = "0c9ba41b-8d2a-4a7a-9d1c-0c5a3f6f4a57";

function success(data: AnswerData, answer: Partial<Answer> = {}): Outcome {
  const headers = [
    ["Content-Type", "application/json"],
    ["X-Empty", ""],
  ] as const;
  return {
    result: "success",
    callId,
    answer: { statusCode: 200, contentType: "application/json", headers, data, ...answer },
  };
}

const json = (text: string): AnswerData => ({ kind: "json", text: bytesOf(Buffer.from(text)) });
const failed = { result: "error", callId, errorType: "API_ERROR", statusCode: 404, message: "See data." } as const;

/** Cut within characters, and where no three bytes end. */
function inPieces(bytes: Buffer): Bytes {
  const chunks = createChunks();
  for (let at = 0, length = 1; at < bytes.length; at += length, length = length * 3 + 10_001) {
    chunks.push(bytes.subarray(at, at + length));
  }
  return chunks;
}

/** The bytes that protobuf-es writes, and the text. */
function expectSame(outcome: Outcome): void {
  const message = responseFromOutcome(outcome);
  const data = outcome.answer && decideRowData(outcome.answer.data);
  expect(binaryOf(outcome).equals(toBinary(CallResponseSchema, message))).toBe(true);
  const json = encodeJson(outcome, data, madeInSteps("json", data)).concat();
  expect(json.equals(Buffer.from(toJsonString(CallResponseSchema, message)))).toBe(true);
}

function binaryOf(outcome: Outcome, prefixFor?: typeof grpcPrefix): Buffer {
  const data = outcome.answer && decideRowData(outcome.answer.data);
  return encodeBinary(outcome, { data, value: madeInSteps("proto", data), ...(prefixFor && { prefixFor }) }).concat();
}

function madeInSteps(form: FastForm, data: RowData | undefined) {
  const long = largeValueOf(form, data);
  return long && atOnce(long);
}

describe("the row of an outcome", () => {
  it.each<[string, Outcome]>([
    ["bytes", success({ kind: "body", bytes: bytesOf(Uint8Array.from({ length: 256 }, (_, at) => at)) })],
    ["no bytes", success({ kind: "body", bytes: bytesOf(new Uint8Array()) })],
    [
      "bytes that are a part of others",
      success({ kind: "body", bytes: bytesOf(new Uint8Array(Buffer.from("abcdef")).subarray(2, 4)) }),
    ],
    ["100 KB of bytes", success({ kind: "body", bytes: bytesOf(new Uint8Array(100_000).fill(0xff)) })],
    ["text", success({ kind: "text", text: "läser ☕ 😀" })],
    ["no text", success({ kind: "text", text: "" })],
    ["binary content", success({ kind: "binary", bytes: bytesOf(Buffer.from([0, 255, 1])) })],
    ["100 KB of binary content", success({ kind: "binary", bytes: bytesOf(Buffer.alloc(100_000, "\xff\x00a")) })],
    ["long text", success({ kind: "utf8", bytes: inPieces(Buffer.from('é"\\\u0000☕😀\u2028'.repeat(20_000))) })],
    ["long text of one piece", success({ kind: "utf8", bytes: bytesOf(Buffer.from("é".repeat(70_000))) })],
    ["binary content in odd pieces", success({ kind: "binary", bytes: inPieces(Buffer.alloc(300_001, "abcd")) })],
    ["bytes in odd pieces", success({ kind: "body", bytes: inPieces(Buffer.alloc(300_001, "abcd")) })],
    ["an empty body", success({ kind: "empty" })],
    ["JSON", success(json('{"a":[1,-0.5,1e21,"x",true,false,null,{},[]],"":{"ä":"☕"},"2":0,"1":-0}'))],
    ["JSON beyond ASCII", success(json('["\u00e9","\u20ac","\u{1f600}","\\ud800","\\u0000"]'))],
    ["JSON with a number that is rounded", success(json('{"id":9007199254740993}'))],
    ["JSON with a number beyond a double", success(json("[1e999]"))],
    ["JSON with a key twice", success(json('{"a":1,"a":2}'))],
    ["JSON that is nested too deep", success(json(`${"[".repeat(40)}${"]".repeat(40)}`))],
    ["JSON that is too long", success(json(`"${"x".repeat(300_000)}"`))],
    ["JSON with a member named __proto__", success(json('{"__proto__":1}'))],
    ["a string, a number, a literal", success(json('"a"'))],
    ["no content type and no headers", success({ kind: "empty" }, { contentType: "", headers: [] })],
    [
      "headers beyond ASCII",
      success(
        { kind: "empty" },
        {
          headers: [
            ["X-A", "\u00e9\u{1f600}"],
            ["x-\u00e9", '"\\'],
          ],
        },
      ),
    ],
    ["a status of three digits", success({ kind: "empty" }, { statusCode: 999 })],
    ["an error without an answer", { ...failed, errorType: "URL_NOT_ALLOWED", answer: undefined }],
    ["an error without a message", { ...failed, message: "", answer: undefined }],
    [
      "an error with an answer",
      { ...failed, answer: (success(json('{"m":"x"}')) as Outcome & { result: "success" }).answer },
    ],
    [
      "an error with bytes",
      {
        ...failed,
        message: 'say "é"',
        answer: (success({ kind: "body", bytes: bytesOf(Buffer.from("x")) }) as Outcome & { result: "success" }).answer,
      },
    ],
  ])("is what protobuf-es makes of it: %s", (_what, outcome) => expectSame(outcome));

  it("is what protobuf-es makes of it, whatever JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }), (value) => {
        expectSame(success(json(JSON.stringify(value as JsonValue))));
      }),
      { numRuns: 300 },
    );
  });

  it.each([0, 1, 127, 128, 16_383, 16_384, 2_097_152])("has the right lengths around %d bytes", (length) => {
    expectSame(success({ kind: "body", bytes: bytesOf(new Uint8Array(length)) }));
    expectSame(success({ kind: "text", text: "x".repeat(length) }, { contentType: "c".repeat(length % 20_000) }));
  });

  it("stands behind the prefix of gRPC", () => {
    const outcome = success({ kind: "body", bytes: bytesOf(new Uint8Array(70_000)) });
    const bytes = binaryOf(outcome, grpcPrefix);
    expect(bytes[0]).toBe(0);
    expect(bytes.readUInt32BE(1)).toBe(bytes.length - 5);
    expect(bytes.subarray(5).equals(binaryOf(outcome))).toBe(true);
  });
});
