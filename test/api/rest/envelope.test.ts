import { describe, expect, it } from "vitest";
import { type Body, bodyFromOutcome, bytesFromBody, envelopeFromOutcome } from "../../../src/api/rest/envelope.js";
import type { Answer, Outcome } from "../../../src/call/outcome.js";
import { bytesOf } from "../../../src/lib/chunks.js";

const answer = (data: Answer["data"]): Answer => ({
  statusCode: 200,
  contentType: "application/json",
  headers: [
    ["X-Quote", 'a"b\\'],
    ["__proto__", "é"],
  ],
  data,
});
const success = (data: Answer["data"]): Outcome => ({ result: "success", callId: "id-1", answer: answer(data) });
const textOf = (body: Body): string => bytesFromBody(body).toString();
const HEADERS = '"headers":{"X-Quote":"a\\"b\\\\","__proto__":"é"}';

describe("envelopeFromOutcome()", () => {
  it.each([
    [
      { kind: "json", text: bytesOf(Buffer.from('{"id":9007199254740993,"v":1.0}')) },
      '"data":{"id":9007199254740993,"v":1.0}',
    ],
    [{ kind: "text", text: 'é"\n' }, '"data":"é\\"\\n"'],
    [{ kind: "binary", bytes: bytesOf(Buffer.from([0xff])) }, '"data":"/w==","dataEncoding":"base64"'],
    [{ kind: "body", bytes: bytesOf(Buffer.from([0xff])) }, '"body":"/w=="'],
    [{ kind: "empty" }, '"data":{}'],
  ] as const)("splices %j", (data, member) => {
    expect(textOf(envelopeFromOutcome(success(data as Answer["data"])))).toBe(
      `{"rows":[{"pincStatus":"success","statusCode":200,"contentType":"application/json",${member},${HEADERS},"callId":"id-1"}]}`,
    );
  });

  it("has no contentType, data and headers on an error row when no provider answered", () => {
    const outcome: Outcome = {
      result: "error",
      callId: "id-2",
      errorType: "INVALID_OAUTHID",
      statusCode: 401,
      message: 'say "hi"',
      answer: undefined,
    };
    expect(textOf(envelopeFromOutcome(outcome))).toBe(
      '{"rows":[{"pincStatus":"error","statusCode":401,"errorType":"INVALID_OAUTHID","inernalError":"say \\"hi\\"","callId":"id-2"}]}',
    );
    expect(textOf(bodyFromOutcome(outcome, "rows.0.data"))).toEqual(textOf(envelopeFromOutcome(outcome)));
  });

  it.each([10, 100, 16_384, 16_385, 1_000_000])(
    "splices %i characters of two bytes each, behind any headers",
    (length) => {
      const json = JSON.stringify("é".repeat(length));
      for (const value of ["plain", "é", "\u0000", "\u20ac"]) {
        const outcome: Outcome = {
          result: "success",
          callId: "id-3",
          answer: { ...answer({ kind: "json", text: bytesOf(Buffer.from(json)) }), headers: [["x", value]] },
        };
        const body = envelopeFromOutcome(outcome);
        const text = textOf(body);
        expect(body.length).toBe(Buffer.byteLength(text));
        expect(text).toBe(
          `{"rows":[{"pincStatus":"success","statusCode":200,"contentType":"application/json","data":${json},"headers":{"x":${JSON.stringify(value)}},"callId":"id-3"}]}`,
        );
      }
    },
  );
});

describe("bodyFromOutcome()", () => {
  it.each([
    ["rows.0.data", '{"a":[{"b":1.0}]}'],
    ["rows.0.data.a.0", '{"b":1.0}'],
    ["rows.0.statusCode", "200"],
  ])("answers with just %s", (path, body) => {
    expect(
      textOf(bodyFromOutcome(success({ kind: "json", text: bytesOf(Buffer.from('{"a":[{"b":1.0}]}')) }), path)),
    ).toBe(body);
  });

  it.each(["rows.1", "rows.0.nope", "", "rows.0.data.__proto__", "rows..0", "x"])(
    "answers with the whole envelope when there is no %j",
    (path) => {
      const outcome = success({ kind: "empty" });
      expect(textOf(bodyFromOutcome(outcome, path))).toEqual(textOf(envelopeFromOutcome(outcome)));
    },
  );
});
