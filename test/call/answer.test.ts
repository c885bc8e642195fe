import { describe, expect, it } from "vitest";
import { answerFromUpstream } from "../../src/call/answer.js";
import type { AnswerData } from "../../src/call/outcome.js";
import { bytesOf } from "../../src/lib/chunks.js";
import { createTurns } from "../../src/lib/turns.js";
import { lateWork } from "../../src/model/errors.js";
import { createRedactor } from "../../src/redaction/redact.js";
import { ENDLESS, ROOMY } from "../support/roomy.js";

const LARGE = { turns: createTurns(lateWork), ...ENDLESS, memory: ROOMY };

const TOKEN = "canary-token-0123456789";
const redactor = createRedactor([TOKEN]);

async function answer(
  contentType: string | undefined,
  body: Buffer | string,
  form: "auto" | "base64" | "body" = "auto",
) {
  const rawHeaders = contentType === undefined ? [] : ["Content-Type", contentType];
  return answerFromUpstream(
    { statusCode: 200, rawHeaders, body: bytesOf(Buffer.from(body as string)) },
    form,
    redactor,
    LARGE,
  );
}

/** In one piece. */
function plain(data: AnswerData) {
  switch (data.kind) {
    case "json":
      return { ...data, text: data.text.concat() };
    case "binary":
    case "body":
      return { ...data, bytes: data.bytes.concat() };
    case "utf8":
      return { kind: "text", text: data.bytes.concat().toString() };
    default:
      return data;
  }
}

async function headersOf(...rawHeaders: string[]) {
  return (
    await answerFromUpstream({ statusCode: 200, rawHeaders, body: bytesOf(Buffer.alloc(0)) }, "auto", redactor, LARGE)
  ).headers;
}

type Mapping = [what: string, contentType: string | undefined, body: string, data: object];
const jsonUnder = (type: string | undefined): Mapping => [
  `JSON is JSON under ${type}`,
  type,
  '{"b":1.0}',
  { kind: "json", text: Buffer.from('{"b":1.0}') },
];
const textUnder = (type: string): Mapping => [
  `text is text under ${type}`,
  type,
  "é;1\n",
  { kind: "text", text: "é;1\n" },
];

describe("answerFromUpstream(): data", () => {
  const utf16 = Buffer.from('{"a":"é"}', "utf16le");
  const half = Buffer.from("Grüße ä").subarray(0, -1);
  const oneWrong = Buffer.concat([Buffer.from("Gr"), Buffer.of(0xff), Buffer.from("ße")]);
  it.each([
    [
      "JSON stays its bytes",
      "application/json; charset=utf-8",
      '{"b":1.0,"a":2}',
      { kind: "json", text: Buffer.from('{"b":1.0,"a":2}') },
    ],
    ["+json is JSON", "application/vnd.api+json", "[1]", { kind: "json", text: Buffer.from("[1]") }],
    ["text/json is JSON", "text/json", "null", { kind: "json", text: Buffer.from("null") }],
    ["upper-case type is the same type", "APPLICATION/JSON", "1", { kind: "json", text: Buffer.from("1") }],
    ["broken JSON is a string", "application/json", '{"a":', { kind: "text", text: '{"a":' }],
    ["white space is no JSON", "application/json", "  ", { kind: "text", text: "  " }],
    ["JSON behind a byte order mark", "application/json", "\ufeff{}", { kind: "json", text: Buffer.from("{}") }],
    ["JSON in UTF-16", "application/json; charset=utf-16", utf16, { kind: "json", text: Buffer.from('{"a":"é"}') }],
    [
      "JSON type with bytes that are no UTF-8",
      "application/json",
      Buffer.from([0x22, 0xe9, 0x22]),
      { kind: "json", text: Buffer.from('"é"') },
    ],
    ["text by charset", "text/plain; charset=iso-8859-1", Buffer.from([0xe9]), { kind: "text", text: "é" }],
    [
      "windows-1252 beyond latin1",
      "text/plain; charset=windows-1252",
      Buffer.from([0x80, 0x9f]),
      { kind: "text", text: "€Ÿ" },
    ],
    [
      "text by quoted charset",
      'text/plain;charset="Shift_JIS"',
      Buffer.from([0x83, 0x65]),
      { kind: "text", text: "テ" },
    ],
    ["text without charset is UTF-8", "text/html", "é", { kind: "text", text: "é" }],
    ["text without charset that is no UTF-8", "text/html", Buffer.from([0xe9]), { kind: "text", text: "é" }],
    ["text of an unknown charset", "text/plain; charset=klingon", "é", { kind: "text", text: "é" }],
    ["a byte order mark outweighs the charset", "text/plain; charset=latin1", "\ufeffé", { kind: "text", text: "é" }],
    ["any type with a charset is text", "application/x-thing; charset=utf-8", "é", { kind: "text", text: "é" }],
    ...["image/png", "video/mp4", "font/woff2", "application/pdf", "application/zip", "application/octet-stream"].map(
      (type): Mapping => [
        `what is no text stays so with a charset: ${type}`,
        `${type}; charset=UTF-8`,
        "x",
        { kind: "binary", bytes: Buffer.from("x") },
      ],
    ),
    ["an image of text is text", "image/svg+xml; charset=utf-8", "<a/>", { kind: "text", text: "<a/>" }],
    ...["binary", "klingon"].map(
      (charset): Mapping => [
        `a charset that is none makes nothing text: ${charset}`,
        `application/x-thing; charset=${charset}`,
        "x",
        { kind: "binary", bytes: Buffer.from("x") },
      ],
    ),
    ...["utf-8", "utf-16", "shift_jis"].map((charset): [string, string, Buffer, object] => [
      `what is not of its charset is binary where that alone says text: ${charset}`,
      `multipart/mixed; charset=${charset}`,
      Buffer.from([0x41, 0xff, 0x00]),
      { kind: "binary", bytes: Buffer.from([0x41, 0xff, 0x00]) },
    ]),
    [
      "one wrong byte spoils one letter of UTF-8",
      "text/plain; charset=utf-8",
      oneWrong,
      { kind: "text", text: "Gr\ufffdße" },
    ],
    ["half a letter spoils one of UTF-8", "text/plain; charset=utf-8", half, { kind: "text", text: "Grüße \ufffd" }],
    ["half a letter does so without a charset", "text/plain", half, { kind: "text", text: "Grüße \ufffd" }],
    [
      "half a letter does so in an unknown charset",
      "text/plain; charset=x",
      half,
      { kind: "text", text: "Grüße \ufffd" },
    ],
    ["half a letter does so in broken JSON", "application/json", half, { kind: "text", text: "Grüße \ufffd" }],
    [
      "half a letter does so in broken JSON of UTF-8",
      "application/json; charset=utf-8",
      half,
      { kind: "text", text: "Grüße \ufffd" },
    ],
    [
      "half a letter is none where nothing else is UTF-8",
      "text/plain",
      Buffer.from("caf\xe9", "latin1"),
      { kind: "text", text: "café" },
    ],
    ["XML is text", "application/atom+xml", "<a/>", { kind: "text", text: "<a/>" }],
    ["anything else is binary", "image/png", "x", { kind: "binary", bytes: Buffer.from("x") }],
    ["no type is binary", undefined, "{", { kind: "binary", bytes: Buffer.from("{") }],
    ["a malformed type is binary", "json", "{", { kind: "binary", bytes: Buffer.from("{") }],
    ...["text/javascript", "application/x-javascript", "application/x-json", "text/x-json"].map(jsonUnder),
    ...["application/json charset=utf-8", "application/json, text/html", "json", "", undefined].map(jsonUnder),
    ["a script is text", "text/javascript", "f({})", { kind: "text", text: "f({})" }],
    [
      "JSON whose charset has no semicolon before it is decoded by it",
      "application/json charset=utf-16",
      utf16,
      { kind: "json", text: Buffer.from('{"a":"é"}') },
    ],
    ...["application/ndjson", "application/x-ndjson", "application/jsonl", "application/x-jsonlines"].map(textUnder),
    ...["application/json-seq", "application/csv", "application/x-yaml", "application/vnd.a+yaml"].map(textUnder),
    ...["text/plain, text/html", "text/csv,application/octet-stream", "text/plain text/html"].map(textUnder),
    ["an empty body is empty whatever its type", "image/png", "", { kind: "empty" }],
  ])("%s", async (_what, contentType, body, data) => {
    expect(plain((await answer(contentType, body)).data)).toEqual(data);
  });

  it("gives base64 whatever the type when asked to, and the bytes in body mode", async () => {
    expect(plain((await answer("application/json", "{}", "base64")).data)).toEqual({
      kind: "binary",
      bytes: Buffer.from("{}"),
    });
    expect(plain((await answer("application/json", "", "body")).data)).toEqual({
      kind: "body",
      bytes: Buffer.alloc(0),
    });
  });

  it("names the media type in lower case without parameters", async () => {
    expect((await answer("Text/HTML; charset=x", "")).contentType).toBe("text/html");
    expect((await answer(";;;", "")).contentType).toBe("");
  });

  it("takes the token out of every kind of body", async () => {
    expect(plain((await answer("application/json", `{"t":"${TOKEN}"}`)).data)).toEqual({
      kind: "json",
      text: Buffer.from('{"t":"[redacted]"}'),
    });
    expect(plain((await answer("text/plain; charset=utf-16le", Buffer.from(TOKEN, "utf16le"))).data)).toEqual({
      kind: "text",
      text: "[redacted]",
    });
    expect(plain((await answer("image/png", TOKEN)).data)).toEqual({
      kind: "binary",
      bytes: Buffer.from("[redacted]"),
    });
    expect(plain((await answer("image/png", TOKEN, "body")).data)).toEqual({
      kind: "body",
      bytes: Buffer.from("[redacted]"),
    });
  });

  it("takes the token out of a large body, also where two pieces of it meet", async () => {
    const pad = `"${"x".repeat(256 * 1024 - 20)}"`;
    const large = plain((await answer("application/json", `[${pad},"${TOKEN}",${pad},${pad}]`)).data);
    expect(large.kind).toBe("json");
    expect(`${(large as { text: Buffer }).text}` === `[${pad},"[redacted]",${pad},${pad}]`).toBe(true);
    const broken = await answer("application/json", `[${pad},${pad}`);
    expect(plain(broken.data)).toEqual({ kind: "text", text: `[${pad},${pad}` });
  });

  it("stays one valid JSON value when the token stood as a number", async () => {
    const numeric = createRedactor(["1234567890"]);
    const upstream = {
      statusCode: 200,
      rawHeaders: ["content-type", "application/json"],
      body: bytesOf(Buffer.from('{"n":1234567890}')),
    };
    expect((await answerFromUpstream(upstream, "auto", numeric, LARGE)).data).toEqual({
      kind: "text",
      text: '{"n":[redacted]}',
    });
  });
});

describe("answerFromUpstream(): headers", () => {
  it("keeps names as received and joins repeated ones", async () => {
    expect(await headersOf("Location", "/a", "X-Rate", "1", "x-rate", "2", "Link", "<a>", "Link", "<b>")).toEqual([
      ["Location", "/a"],
      ["X-Rate", "1, 2"],
      ["Link", "<a>, <b>"],
    ]);
  });

  it("drops cookies and what belongs to the connection, also what Connection names", async () => {
    expect(
      await headersOf(
        "Set-Cookie",
        "a=b",
        "Connection",
        "close, X-Hop",
        "Connection",
        "X-Other",
        "X-Hop",
        "1",
        "X-Other",
        "1",
        "Transfer-Encoding",
        "chunked",
        "Keep-Alive",
        "x",
        "A",
        "1",
      ),
    ).toEqual([["A", "1"]]);
  });

  it("is not confused by names of object members", async () => {
    expect(await headersOf("__proto__", "1", "constructor", "2")).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
    expect(({} as Record<string, unknown>)["1"]).toBeUndefined();
  });

  it("takes the token out of names and values, also where only joined values show it", async () => {
    const [first, second] = [TOKEN.slice(0, 8), TOKEN.slice(8)];
    expect(await headersOf("X", `Bearer ${TOKEN}`, `X-${TOKEN}`, "1")).toEqual([
      ["X", "Bearer [redacted]"],
      ["X-[redacted]", "1"],
    ]);
    expect(await headersOf("X", first, "X", second)).toEqual([["X", `${first}, ${second}`]]);
  });
});
