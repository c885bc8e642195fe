import { describe, expect, it } from "vitest";
import { answerFromUpstream } from "../../src/call/answer.js";
import { bytesOf } from "../../src/lib/chunks.js";
import { createTurns } from "../../src/lib/turns.js";
import { lateWork } from "../../src/model/errors.js";
import { createRedactor } from "../../src/redaction/redact.js";
import { REDACTED } from "../../src/redaction/redact-stream.js";
import { ENDLESS, ROOMY } from "../support/roomy.js";

const LARGE = { turns: createTurns(lateWork), ...ENDLESS, memory: ROOMY };
// Found by `npm run fuzz -- --only answers`: spellings of a token that real software makes went through.

const TOKEN = "CANARY_abcdefgh+/ij.kl-mn==";

describe("createRedactor()", () => {
  it.each([
    ["System.Text.Json", "CANARY_abcdefgh\\u002B/ij.kl-mn=="],
    ["Gson", "CANARY_abcdefgh+/ij.kl-mn\\u003d\\u003d"],
    ["a writer that escapes all it can", "CANARY_abcdefgh\\u002b\\u002fij\\u002ekl\\u002dmn\\u003d\\u003d"],
    ["the same in upper case", "CANARY_abcdefgh\\u002B\\u002Fij\\u002Ekl\\u002Dmn\\u003D\\u003D"],
    ["quote() of Python", "CANARY_abcdefgh%2B/ij.kl-mn%3D%3D"],
  ])("finds a token as %s writes it", (_, written) => {
    const redactor = createRedactor([TOKEN]);
    expect(redactor.text(`{"t":"${written}"}`)).toBe(`{"t":"${REDACTED}"}`);
    expect(redactor.bytes(Buffer.from(`{"t":"${written}"}`)).toString()).toBe(`{"t":"${REDACTED}"}`);
  });
});

describe("answerFromUpstream()", () => {
  it("finds a token in a media type, which is put in lower case", async () => {
    const token = "CANARY_abcdefghijkl";
    const rawHeaders = ["Content-Type", `text/${token}`];
    const upstream = { statusCode: 200, rawHeaders, body: bytesOf(Buffer.from("x")) };
    const answer = await answerFromUpstream(upstream, "auto", createRedactor([token]), LARGE);
    expect(answer.statusCode).toBe(200);
    expect(JSON.stringify(answer).toLowerCase()).not.toContain(token.toLowerCase());
  });
});
