import { describe, expect, it } from "vitest";
import { answerFromUpstream } from "../../src/call/answer.js";
import { bytesOf } from "../../src/lib/chunks.js";
import { createTurns } from "../../src/lib/turns.js";
import { lateWork } from "../../src/model/errors.js";
import { createRedactor } from "../../src/redaction/redact.js";
import { ENDLESS, ROOMY } from "../support/roomy.js";

const LARGE = { turns: createTurns(lateWork), ...ENDLESS, memory: ROOMY };

const TOKEN = "canary-token-0123456789";

async function headersOf(...rawHeaders: string[]) {
  const upstream = { statusCode: 200, rawHeaders, body: bytesOf(Buffer.alloc(0)) };
  return (await answerFromUpstream(upstream, "auto", createRedactor([TOKEN]), LARGE)).headers;
}

describe("a token echoed in repeated fields", () => {
  it.each([
    ["first", [TOKEN, "a", "b"], "[redacted], a, b"],
    ["second", ["a", TOKEN, "b"], "a, [redacted], b"],
    ["last", ["a", "b", `Bearer ${TOKEN}`], "a, b, Bearer [redacted]"],
    ["each", [TOKEN, TOKEN], "[redacted], [redacted]"],
  ])("is taken out of the %s", async (_which, values, expected) => {
    expect(await headersOf(...values.flatMap((value) => ["X-Echo", value]))).toEqual([["X-Echo", expected]]);
  });

  it("is taken out where its parts are joined to it again", async () => {
    const parts = TOKEN.replace("-", ", ").split(", ");
    const echoed = createRedactor([parts.join(", ")]);
    const rawHeaders = parts.flatMap((part) => ["X-Echo", part]);
    const answer = await answerFromUpstream(
      { statusCode: 200, rawHeaders, body: bytesOf(Buffer.alloc(0)) },
      "auto",
      echoed,
      LARGE,
    );
    expect(answer.headers).toEqual([["X-Echo", "[redacted]"]]);
  });
});
