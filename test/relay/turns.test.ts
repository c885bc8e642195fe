import { describe, expect, it } from "vitest";
import { bytesOf, createChunks } from "../../src/chunks.js";
import { judgedJson } from "../../src/relay/turns.js";
import { createRedactor } from "../../src/telemetry/redact.js";

const TOKEN = "canary-token-0123456789";
const SIZE = 4 * 1024 * 1024;
const redactor = createRedactor([TOKEN]);
/** Wherever a large body is cut into pieces, it is at one of these. */
const CUTS = Array.from({ length: 11 }, (_, at) => 2 ** (at + 11));

/** In pieces of so many bytes, the first one shorter. */
function inPieces(body: Buffer, first: number, size: number) {
  const chunks = createChunks();
  chunks.push(body.subarray(0, first));
  for (let at = first; at < body.length; at += size) chunks.push(body.subarray(at, at + size));
  return chunks;
}

describe("judgedJson()", () => {
  it.each(CUTS)("finds a token that lies across byte %d, raw and in base64", async (cut) => {
    for (const spelled of [TOKEN, Buffer.from(TOKEN).toString("base64")]) {
      for (const before of [1, 8, spelled.length - 1]) {
        const body = Buffer.alloc(SIZE, " ");
        body.write(spelled, cut - before);
        for (const bytes of [bytesOf(body), inPieces(body, cut, 64 * 1024)]) {
          const redacted = (await judgedJson(bytes, redactor)).bytes.concat().toString();
          expect(redacted.trim()).toMatch(/^\[redacted\]/);
          expect(redacted.length).toBeLessThan(SIZE);
        }
      }
    }
  });

  it("finds a token over pieces that are shorter than it", async () => {
    const body = Buffer.concat([Buffer.alloc(200_000, " "), Buffer.from(`"${TOKEN}"`)]);
    const chunks = inPieces(body, 200_003, 5);
    expect(chunks.pieces.length).toBeGreaterThan(1);
    const judged = await judgedJson(chunks, redactor);
    expect(judged.bytes.concat().toString().trim()).toBe('"[redacted]"');
    expect(judged.isJson).toBe(true);
  });

  it("gives a body without a token back as it is, in its pieces", async () => {
    const body = inPieces(Buffer.alloc(SIZE, "x"), 5, 100_000);
    const { bytes, isJson } = await judgedJson(body, redactor);
    expect(bytes).toBe(body);
    expect(bytes.pieces.length).toBeGreaterThan(1);
    expect(isJson).toBe(false);
  });

  it.each(CUTS)("reads on over byte %d", async (cut) => {
    const json = Buffer.from(`["${"a".repeat(cut)}",1]`.padEnd(SIZE));
    expect(await judgedJson(bytesOf(json), redactor)).toMatchObject({ isJson: true });
    json.write("}", cut + 4);
    expect(await judgedJson(bytesOf(json), redactor)).toMatchObject({ isJson: false });
  });

  it("judges what is left when a token stood as a number", async () => {
    const body = Buffer.from(`[${" ".repeat(SIZE)}1234567890]`);
    const judged = await judgedJson(bytesOf(body), createRedactor(["1234567890"]));
    expect(judged.isJson).toBe(false);
    expect(judged.bytes.concat().toString()).toContain("[redacted]");
  });
});
