import { isUtf8 } from "node:buffer";
import { describe, expect, it } from "vitest";
import { bodyFromOutcome, bytesFromBody, largeBodyOf } from "../../src/api/rest/envelope.js";
import { answerFromUpstream } from "../../src/call/answer.js";
import type { AnswerData, Outcome } from "../../src/call/outcome.js";
import { decoderForText } from "../../src/call/text.js";
import { isJson } from "../../src/json/json-validator.js";
import { type Bytes, bytesOf, createChunks } from "../../src/lib/chunks.js";
import { atOnce, createTurns } from "../../src/lib/turns.js";
import { lateWork } from "../../src/model/errors.js";
import { createRedactor } from "../../src/redaction/redact.js";
import { thin } from "../support/long.js";
import { ENDLESS, ROOMY } from "../support/roomy.js";

const TOKEN = "canary-token-0123456789";
const SIZE = 4 * 1024 * 1024;
const redactor = createRedactor([TOKEN]);
const turns = createTurns(lateWork);
/** Wherever a large body is cut into slices, it is at one of these; each with a body that goes on for long behind it. */
const CUTS = thin(
  Array.from({ length: 11 }, (_, at) => 2 ** (at + 11)).map((cut) => ({ cut, size: 2 * cut + SIZE / 8 })),
  5,
);

/** In pieces of so many bytes, the first one shorter. */
function inPieces(body: Buffer, first: number, size: number): Bytes {
  const chunks = createChunks();
  chunks.push(body.subarray(0, first));
  for (let at = first; at < body.length; at += size) chunks.push(body.subarray(at, at + size));
  return chunks;
}

async function dataOf(
  contentType: string,
  body: Bytes,
  form: "auto" | "base64" | "body" = "auto",
  secrets = redactor,
): Promise<AnswerData> {
  const upstream = { statusCode: 200, rawHeaders: ["content-type", contentType], body };
  return (await answerFromUpstream(upstream, form, secrets, { turns, ...ENDLESS, memory: ROOMY })).data;
}

/** Text in one go. */
function decodeText(bytes: Uint8Array, charset: string | undefined): string {
  const decoder =
    decoderForText(bytes, charset, false) ??
    new TextDecoder(
      [0, 1, 2, 3].some((cut) => isUtf8(bytes.subarray(0, bytes.length - cut))) ? "utf-8" : "windows-1252",
    );
  // In two steps: Node.js 20 reads windows-1252 as latin1 when it decodes in one (bytes 0x80 to 0x9f come out wrong).
  return decoder.decode(bytes, { stream: true }) + decoder.decode();
}

/** What the row of the JSON route says of it. */
function rowOf(data: AnswerData): { data?: unknown; body?: string } {
  const answer = { statusCode: 200, contentType: "", headers: [], data };
  const outcome: Outcome = { result: "success", callId: "id", answer };
  const long = largeBodyOf(outcome, undefined);
  return JSON.parse(bytesFromBody(long ? atOnce(long) : bodyFromOutcome(outcome, undefined)).toString()).rows[0];
}

function bytesFrom(data: AnswerData): Buffer {
  if (data.kind === "text" || data.kind === "empty") throw new Error(`not large: ${data.kind}`);
  return (data.kind === "json" ? data.text : data.bytes).concat();
}

describe("answerFromUpstream(): a token in a large body", () => {
  it.each(CUTS)("is found across byte $cut, raw and in base64", async ({ cut, size }) => {
    for (const spelled of [TOKEN, Buffer.from(TOKEN).toString("base64")]) {
      for (const before of thin([1, 8, spelled.length - 1], 2)) {
        const body = Buffer.alloc(size, " ");
        body.write(spelled, cut - before);
        for (const [type, bytes] of [
          ["application/json", bytesOf(body)],
          ["text/plain", inPieces(body, cut, 64 * 1024)],
          ["image/png", inPieces(body, cut, 100_000)],
        ] as const) {
          const redacted = bytesFrom(await dataOf(type, bytes)).toString("latin1");
          expect(redacted.trim()).toMatch(/^\[redacted\]/);
          expect(redacted.length).toBeLessThan(size);
        }
      }
    }
  });

  it.each([
    ["utf-16le", (text: string) => Buffer.from(text, "utf16le")],
    ["utf-16be", (text: string) => Buffer.from(text, "utf16le").swap16()],
  ])("is found across slices of %s", async (charset, encode) => {
    for (const shift of [0, 5, 11, 22]) {
      const text = `${"x".repeat(32 * 1024 - shift)}${TOKEN}${"x".repeat(SIZE / 8)}`;
      expect(rowOf(await dataOf(`text/plain; charset=${charset}`, bytesOf(encode(text)))).data).toBe(
        text.replace(TOKEN, "[redacted]"),
      );
    }
  });

  it("is found over pieces that are shorter than it", async () => {
    const body = Buffer.concat([Buffer.alloc(400_000, " "), Buffer.from(`"${TOKEN}"`)]);
    const chunks = inPieces(body, 400_003, 5);
    expect(chunks.pieces.length).toBeGreaterThan(1);
    const data = await dataOf("application/json", chunks);
    expect(data.kind).toBe("json");
    expect(bytesFrom(data).toString().trim()).toBe('"[redacted]"');
  });

  it("is taken out wherever it stands, as from a small body", async () => {
    const body = Buffer.from(`[${`"${TOKEN}",`.repeat(12_000)}"${encodeURIComponent(TOKEN)}"]`);
    for (const type of ["application/json", "text/html", "image/png"]) {
      expect(bytesFrom(await dataOf(type, inPieces(body, 7, 70_001))).equals(redactor.bytes(body))).toBe(true);
    }
  });

  it("leaves no JSON when it stood as a number", async () => {
    const body = Buffer.from(`[${" ".repeat(SIZE)}1234567890]`);
    const data = await dataOf("application/json", bytesOf(body), "auto", createRedactor(["1234567890"]));
    expect(data.kind).toBe("utf8");
    expect(bytesFrom(data).toString()).toContain("[redacted]");
  });
});

describe("answerFromUpstream(): a large body", () => {
  it("goes on in its pieces when there is nothing to take out", async () => {
    const body = inPieces(Buffer.alloc(SIZE, "1"), 5, 100_000);
    for (const [type, kind] of [
      ["application/json", "json"],
      ["text/plain", "utf8"],
      ["image/png", "binary"],
    ] as const) {
      const data = await dataOf(type, body);
      expect(data.kind).toBe(kind);
      expect(data.kind === "json" ? data.text : data.kind === "empty" || data.kind === "text" || data.bytes).toBe(body);
    }
    expect(body.pieces.length).toBeGreaterThan(1);
  });

  it.each(CUTS)("is read on over byte $cut", async ({ cut, size }) => {
    const json = Buffer.from(`["${"a".repeat(cut)}",1]`.padEnd(size));
    expect(await dataOf("application/json", bytesOf(json))).toMatchObject({ kind: "json" });
    json.write("}", cut + 4);
    expect(await dataOf("application/json", bytesOf(json))).toMatchObject({ kind: "utf8" });
  });

  // Each text is longer than four slices, and moved by a byte at a time, so that every kind of character is cut everywhere.
  it.each(
    thin(
      [
        ["utf-8", undefined, Buffer.from('é☕😀"\\\u0000\u001f\u007f\u2028 '.repeat(15_000))],
        ["utf-8 behind a byte order mark", undefined, Buffer.from(`\ufeff\ufeff${"é☕😀".repeat(30_000)}`)],
        [
          "latin1 whose last byte begins a character",
          undefined,
          Buffer.alloc(300_000, Buffer.from("ä,\xe2", "latin1")),
        ],
        ["utf-8 that ends within a character", undefined, Buffer.from("é☕😀".repeat(30_000)).subarray(0, -1)],
        ["utf-8 that ends within one, and says so", "utf-8", Buffer.from("é☕😀".repeat(30_000)).subarray(0, -1)],
        ["a surrogate in utf-8", "utf-8", Buffer.concat([Buffer.alloc(300_000, "x"), Buffer.from([0xed, 0xa0, 0x80])])],
        ["latin1 that claims to be utf-8", "utf-8", Buffer.alloc(300_000, Buffer.from("ä\x80\x9f\xfft", "latin1"))],
        ["windows-1252", "windows-1252", Buffer.alloc(300_000, Buffer.from("ä\x80\x9f\xfft", "latin1"))],
        ["an unknown charset", "klingon", Buffer.from("é☕😀".repeat(30_000))],
        ["utf-16le", "utf-16le", Buffer.from('a😀é\ud800☕\udc00"\n'.repeat(20_000), "utf16le")],
        ["utf-16le of odd length", "utf-16le", Buffer.from("a😀é".repeat(30_000), "utf16le").subarray(1)],
        [
          "utf-16be by its byte order mark",
          "latin1",
          Buffer.from(`\ufeff${"a😀é".repeat(30_000)}`, "utf16le").swap16(),
        ],
        ["shift_jis", "shift_jis", Buffer.alloc(300_000, Buffer.from([0x83, 0x65, 0x41, 0xb1, 0x83]))],
        ["gb18030", "gb18030", Buffer.alloc(300_000, Buffer.from("9439fc36c4e361", "hex"))],
        ["iso-2022-jp", "iso-2022-jp", Buffer.alloc(300_000, Buffer.from("1b244224221b284241", "hex"))],
      ],
      3,
    ),
  )("is decoded as a small one is: %s", async (_what, charset, body) => {
    const type = charset === undefined ? "text/plain" : `text/plain; charset=${charset}`;
    const json = charset === undefined ? "application/json" : `application/json; charset=${charset}`;
    for (const shift of thin([0, 1, 2, 3], 3)) {
      const shifted = Buffer.concat([body.subarray(0, 8), Buffer.alloc(shift, "x"), body.subarray(8)]);
      const text = decodeText(shifted, charset);
      const inBytes = shift === 0 ? [inPieces(shifted, 1, 1)] : [];
      for (const pieces of [bytesOf(shifted), inPieces(shifted, 2, 60_001), ...inBytes]) {
        const data = await dataOf(type, pieces);
        expect(rowOf(data).data === text).toBe(true);
        expect(bytesFrom(await dataOf(json, pieces)).equals(bytesFrom(data))).toBe(true);
      }
    }
  });

  it.each([
    ["in UTF-16", "application/json; charset=utf-16le", (text: string) => Buffer.from(text, "utf16le")],
    ["behind a byte order mark", "application/json", (text: string) => Buffer.from(`\ufeff${text}`)],
    ["in latin1 without saying so", "application/json", (text: string) => Buffer.from(text, "latin1")],
  ])("stays JSON %s", async (_what, type, encode) => {
    const text = JSON.stringify({ a: "é\ud800".repeat(100_000), b: 1 });
    const data = await dataOf(type, inPieces(encode(text), 2, 50_001));
    expect(data.kind).toBe("json");
    expect(bytesFrom(data).toString() === text).toBe(true);
    expect(isJson(bytesFrom(data))).toBe(true);
  });

  it("is JSON as a small one is, under a script's type and under none, and else text and binary", async () => {
    const json = Buffer.from(JSON.stringify({ a: "é".repeat(200_000) }));
    const script = Buffer.concat([Buffer.from("f("), json]);
    for (const [type, kind] of [
      ["text/javascript", "utf8"],
      ["", "binary"],
    ] as const) {
      const data = await dataOf(type, inPieces(json, 2, 50_001));
      expect(data.kind).toBe("json");
      expect(bytesFrom(data).equals(json)).toBe(true);
      const other = await dataOf(type, inPieces(script, 2, 50_001));
      expect(other.kind).toBe(kind);
      expect(bytesFrom(other).equals(script)).toBe(true);
    }
  });

  it.each([0, 1, 2, 3])("becomes the base64 of a small one, %d bytes over", async (over) => {
    const body = Buffer.from(Uint8Array.from({ length: 400_000 + over }, (_, at) => (at * 167) & 0xff));
    for (const pieces of [bytesOf(body), inPieces(body, 2, 65_537), inPieces(body, 1, 60_000)]) {
      expect(rowOf(await dataOf("image/png", pieces)).data === body.toString("base64")).toBe(true);
      expect(rowOf(await dataOf("application/json", pieces, "base64")).data === body.toString("base64")).toBe(true);
      expect(rowOf(await dataOf("application/json", pieces, "body")).body === body.toString("base64")).toBe(true);
    }
  });
});
