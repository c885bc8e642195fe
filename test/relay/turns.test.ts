import { describe, expect, it } from "vitest";
import { isJsonInTurns, redactedInTurns } from "../../src/relay/turns.js";
import { createRedactor } from "../../src/telemetry/redact.js";

const TOKEN = "canary-token-0123456789";
const SIZE = 1024 * 1024;
/** Wherever a large body is cut into pieces, it is at one of these. */
const CUTS = Array.from({ length: 9 }, (_, at) => 2 ** (at + 11));

describe("redactedInTurns()", () => {
  it.each(CUTS)("finds a token that lies across byte %d, raw and in base64", async (cut) => {
    const redactor = createRedactor([TOKEN]);
    for (const spelled of [TOKEN, Buffer.from(TOKEN).toString("base64")]) {
      for (const before of [1, 8, spelled.length - 1]) {
        const body = Buffer.alloc(SIZE, " ");
        body.write(spelled, cut - before);
        const redacted = (await redactedInTurns(body, redactor)).toString();
        expect(redacted.trim()).toMatch(/^\[redacted\]/);
        expect(redacted.length).toBeLessThan(SIZE);
      }
    }
  });

  it("gives a body without a token back as it is", async () => {
    const body = Buffer.alloc(SIZE, "x");
    expect(await redactedInTurns(body, createRedactor([TOKEN]))).toBe(body);
  });
});

describe("isJsonInTurns()", () => {
  it.each(CUTS)("reads on over byte %d", async (cut) => {
    const json = Buffer.from(`["${"a".repeat(cut)}",1]`.padEnd(SIZE));
    expect(await isJsonInTurns(json)).toBe(true);
    json.write("}", cut + 4);
    expect(await isJsonInTurns(json)).toBe(false);
  });
});
