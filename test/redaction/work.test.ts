import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createRedactor, type Redactor } from "../../src/redaction/redact.js";

const KIB = 1024;

/** Each is the two before it. */
function fibonacci(length: number): string {
  let [one, other] = ["a", "ab"];
  while (other.length < length) [one, other] = [other, other + one];
  return other.slice(0, length);
}

/** Every run of `order` letters once (https://en.wikipedia.org/wiki/De_Bruijn_sequence). */
function deBruijn(order: number): string {
  const [seen, word] = [new Set<string>(), ["a".repeat(order - 1)]];
  for (let last = word[0] as string; ; ) {
    const next = ["b", "a"].find((letter) => !seen.has(last + letter));
    if (next === undefined) return word.join("");
    seen.add(last + next);
    word.push(next);
    last = (last + next).slice(1);
  }
}

const EVIL = `${"a".repeat(7000)}/${"a".repeat(6999)}`;

const CASES: ReadonlyArray<readonly [what: string, secret: string, text: string]> = [
  ["a letter, but for one in the middle", EVIL, "a"],
  ["two letters in turn", `${"ab".repeat(3000)}c`, "ab"],
  ["a word of Fibonacci", fibonacci(6765), fibonacci(4181)],
  ["a word of Fibonacci, cut elsewhere", fibonacci(6000), fibonacci(4180)],
  ["a sequence of de Bruijn", deBruijn(12), deBruijn(12).slice(1)],
  ["a letter that is percent-encoded", EVIL, "%61"],
  ["a letter that is escaped", EVIL, "\\u0061"],
  ["what ends as a text begins, in each escape", `a${"j".repeat(9000)}`, "%6a"],
  ["backslashes", EVIL, "\\"],
  ["percent signs", EVIL, "%"],
  ["escapes of escapes", EVIL, "%25"],
  ["escapes of escapes around a letter", EVIL, `${"%25".repeat(2)}25252561aaaa`],
  ["escapes that are not ended", EVIL, "\\u00%4"],
  ["escapes that the secret has as well", `${"%61".repeat(3000)}/`, "%61"],
  ["base64 of it in short lines", "a".repeat(9000), "YWFh\n"],
  ["ends of lines", EVIL, "a\r\n"],
  ["ends of lines that the secret has as well", `${"a".repeat(7000)}\\n${"a".repeat(6999)}`, "a\n"],
];

/**
 * How often a state of the automaton is looked at for each byte, and for each byte of the secret before any is read: at most
 * five ways go on from one escape.
 */
const MOST_LOOKS = 8;

/**
 * Of each text here at least every third byte is read closely. Fewer looks mean that some were not counted: the
 * automaton is held weakly, and a new one counts from 0.
 */
const LEAST_LOOKS = 0.25;

function expectFewLooks(redactor: Redactor, bytes: number, work: () => void): void {
  const before = redactor.looks();
  work();
  const looks = (redactor.looks() - before) / bytes;
  expect(looks).toBeGreaterThan(LEAST_LOOKS);
  expect(looks).toBeLessThan(MOST_LOOKS);
}

describe("the work of a redactor", () => {
  it.each(CASES)("is linear in the text: %s", (_what, secret, text) => {
    const redactor = createRedactor([secret]);
    for (const bytes of [64 * KIB, 256 * KIB]) {
      expectFewLooks(redactor, bytes, () => redactor.bytes(Buffer.alloc(bytes, text)));
    }
  });

  it.each(CASES)("is the same when it comes byte by byte: %s", (_what, secret, text) => {
    const redactor = createRedactor([secret]);
    const input = Buffer.alloc(16 * KIB, text);
    const stream = redactor.stream();
    const parts: Buffer[] = [];
    expectFewLooks(redactor, input.length, () => {
      for (let at = 0; at < input.length; at++) parts.push(...stream.push(input.subarray(at, at + 1)));
    });
    expect(Buffer.concat([...parts, ...stream.end()]).equals(redactor.bytes(input))).toBe(true);
  });

  it("is linear in ten mebibytes of the letter of the token", () => {
    const redactor = createRedactor([EVIL]);
    const text = Buffer.alloc(10 * KIB * KIB, "a");
    expectFewLooks(redactor, text.length, () => expect(redactor.bytes(text)).toBe(text));
    text.write(EVIL, text.length - 2 * EVIL.length);
    expect(redactor.bytes(text).length).toBe(text.length - EVIL.length + "[redacted]".length);
  });

  it.each(CASES)(
    "is little for each piece, also for the first of a secret that is not known yet: %s",
    (_what, secret, text) => {
      const redactor = createRedactor([secret]);
      const stream = redactor.stream();
      expect(redactor.looks()).toBeLessThan(MOST_LOOKS * secret.length);
      const input = Buffer.alloc(2 * KIB, text);
      for (let piece = 0; piece < 20; piece++) {
        expectFewLooks(redactor, input.length, () => stream.push(input));
      }
    },
  );

  it("is little for a secret of which nothing but the beginning is read", () => {
    for (const length of [1000, 4000, 16_000]) {
      const secret = randomBytes(length).toString("base64url").slice(0, length);
      const redactor = createRedactor([secret]);
      redactor.bytes(Buffer.alloc(KIB, secret));
      expect(redactor.looks()).toBeGreaterThan(LEAST_LOOKS * KIB);
      expect(redactor.looks()).toBeLessThan(MOST_LOOKS * KIB);
    }
  });

  it("keeps back no more than a few times the secret, however long it is spelled", () => {
    const redactor = createRedactor([EVIL.slice(0, 1000)]);
    const stream = redactor.stream();
    let given = 0;
    let kept = 0;
    for (const piece of [
      "%61".repeat(500),
      "%25".repeat(100_000),
      "\\\\".repeat(100_000),
      `${"a".repeat(20)}\n${" ".repeat(300_000)}`,
    ]) {
      for (const part of stream.push(Buffer.from(piece))) given += part.length;
      kept += piece.length;
      expect(kept - given).toBeLessThan(64 * KIB);
    }
  });
});
