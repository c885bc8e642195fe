import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRedactor } from "../../src/redaction/redact.js";

const TOKEN = 'ya29.a0/AfB_by+C"eQ==';

/**
 * What comes out of a stream that is cut at these places.
 *
 * @param aheadBytes how many of those that follow are shown with each piece.
 */
function streamed(secrets: readonly string[], text: Buffer, cuts: readonly number[], aheadBytes?: number): string {
  const stream = createRedactor(secrets).stream();
  const places = [0, ...cuts, text.length].map((at) => Math.min(at, text.length)).sort((a, b) => a - b);
  const aheadOf = (end: number) => (aheadBytes === undefined ? undefined : text.subarray(end, end + aheadBytes));
  const pieces = places.slice(1).flatMap((end, index) => stream.push(text.subarray(places[index], end), aheadOf(end)));
  return Buffer.concat([...pieces, ...stream.end()]).toString("latin1");
}

describe("stream() of a redactor", () => {
  it.each([
    ["as it is", TOKEN],
    ["URL-encoded", encodeURIComponent(TOKEN)],
    ["JSON-escaped", JSON.stringify(TOKEN).slice(1, -1)],
    ["with every character escaped that can be", TOKEN.replace(/\W/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)],
    ["in base64", Buffer.from(`xyz${TOKEN}uvw`).toString("base64").slice(4, -4)],
  ])("takes out a token %s, wherever it is cut", (_form, spelled) => {
    const text = Buffer.from(`before ${spelled} between ${spelled}${spelled} behind`);
    const whole = createRedactor([TOKEN]).bytes(text).toString();
    expect(whole).toContain("[redacted]");
    const everywhere = Array.from({ length: text.length }, (_, at) => at);
    for (const aheadBytes of [undefined, 1, 30]) {
      for (const at of everywhere) expect(streamed([TOKEN], text, [at], aheadBytes)).toBe(whole);
      expect(streamed([TOKEN], text, everywhere, aheadBytes)).toBe(whole);
    }
  });

  it("gives a token that was only begun in the end", () => {
    expect(streamed([TOKEN], Buffer.from(`a ${TOKEN.slice(0, -1)}`), [5])).toBe(`a ${TOKEN.slice(0, -1)}`);
  });

  it("does not hold back an event that no token begins in", () => {
    const stream = createRedactor([TOKEN]).stream();
    expect(stream.push(Buffer.from("data: 1\n\n")).join("")).toBe("data: 1\n\n");
    expect(stream.push(Buffer.from("data: ya2")).join("")).toBe("data: ");
    expect(stream.push(Buffer.from("n\n\n")).join("")).toBe("ya2n\n\n");
  });

  it("never holds back as much as a whole token, though it consists of the same letter", () => {
    const secret = "a".repeat(20);
    const stream = createRedactor([secret]).stream();
    let given = "";
    for (let at = 0; at < 1000; at += 1) given += stream.push(Buffer.from("a")).join("");
    expect(given + stream.end().join("")).toBe("[redacted]");
    expect(given).toBe("[redacted]");
  });

  it("says the same about the whole and about any pieces of it, whatever the secrets", () => {
    // Few letters, so that beginnings, overlaps and repetitions are common.
    const letters = fc.constantFrom("a", "b", "+", "/");
    const secret = fc.array(letters, { minLength: 8, maxLength: 12 }).map((list) => list.join(""));
    const part = (known: readonly string[]) =>
      fc.oneof(
        fc.constantFrom(...known, ...known.map(encodeURIComponent)),
        fc.constantFrom(...known.map((one) => one.slice(0, -1))),
        fc.constantFrom(...known.map((one) => Buffer.from(one).toString("base64"))),
        fc.array(letters, { maxLength: 6 }).map((list) => list.join("")),
      );
    const inputs = fc
      .array(secret, { minLength: 1, maxLength: 2 })
      .chain((known) => fc.record({ known: fc.constant(known), parts: fc.array(part(known), { maxLength: 8 }) }));
    fc.assert(
      fc.property(
        inputs,
        fc.array(fc.nat(120), { maxLength: 12 }),
        fc.integer({ min: 1, max: 60 }),
        (given, cuts, ahead) => {
          const { known, parts } = given;
          const text = Buffer.from(parts.join(""));
          const redactor = createRedactor(known);
          const whole = redactor.bytes(text).toString("latin1");
          expect(streamed(known, text, cuts)).toBe(whole);
          expect(streamed(known, text, cuts, ahead)).toBe(whole);
          for (const one of known) expect(whole).not.toContain(one);
        },
      ),
      { numRuns: 600 },
    );
  });
});
