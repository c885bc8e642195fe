import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../../support/raw-provider.js";

/** More than is worked on in one go, several times. */
const MANY = 20_000;
const ODD = 'é☕😀"\\\u0001\ud800\u2028 &=+%';

const QUOTE = Buffer.from('"');

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
let body: Buffer;
let contentType: string;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    if (head.startsWith("GET")) socket.write(answer(body, `Content-Type: ${contentType}`));
    else socket.write(answer("{}", "Content-Type: application/json"));
  });
  harness = await startHarness({
    env: { RELAY_MAX_BUFFERED_BYTES: String(12 * 1024 * 1024) },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
  });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const target = () => `${harness.url}/oauth/method/raw/call?user_id=u&public_key=${application.publicKey}`;

/** What the provider gets of a call whose text is written by hand. */
async function sent(method: string, payload: string, headers: Record<string, string> = {}) {
  const text = `{"url":${JSON.stringify(provider.origin)},"method":"${method}","headers":${JSON.stringify(headers)},"payload":${payload}}`;
  const { statusCode, body: row } = await request(target(), { method: "POST", body: text });
  expect(statusCode).toBe(200);
  return { row: ((await row.json()) as { rows: Record<string, unknown>[] }).rows[0], last: provider.requests.at(-1) };
}

async function formOf({ last }: Awaited<ReturnType<typeof sent>>): Promise<[string, unknown][]> {
  const type = /^content-type: (.*)$/im.exec(last?.head ?? "")?.[1] ?? "";
  return [...(await new Response(last?.body, { headers: { "content-type": type } }).formData())];
}

describe("a large request", () => {
  it("goes on as it was written", async () => {
    const payload = `{"n": 1.0, "s":${JSON.stringify(ODD.repeat(MANY))}, "n": 9007199254740993 }`;
    expect((await sent("POST", payload)).last?.body.toString() === payload).toBe(true);
  });

  it("is a form", async () => {
    const text = ODD.repeat(MANY);
    const numbers = Array.from({ length: MANY }, (_, at) => at + 0.5);
    const payload = JSON.stringify({ a: text, "b c": numbers, d: [1, { e: text }], f: null, [ODD]: [text, text] });
    const well = (string: string) => string.toWellFormed();
    const form = new URLSearchParams([
      ["a", well(text)],
      ["b c", numbers.join(",")],
      ["d", JSON.stringify([1, { e: text }])],
      ["f", ""],
      [well(ODD), well(`${text},${text}`)],
    ]);
    expect((await sent("FORM", payload)).last?.body.toString() === form.toString()).toBe(true);
  });

  it("is a form of many fields", async () => {
    const fields = Object.fromEntries(Array.from({ length: 9000 }, (_, at) => [`k${at}`, `${at} ${"v".repeat(60)}`]));
    expect((await sent("FORM", JSON.stringify(fields))).last?.body.toString()).toBe(
      new URLSearchParams(fields).toString(),
    );
  });

  it("is multipart", async () => {
    const file = Buffer.from(Uint8Array.from({ length: 400_001 }, (_, at) => (at * 167) & 0xff));
    const text = 'é☕😀\\"\n'.repeat(MANY);
    const payload = { f: { content: file.toString("base64"), name: "p.png" }, t: text, n: [[text], 1] };
    const form = await formOf(await sent("MULTIFORM-POST", JSON.stringify(payload).replaceAll("/", "\\/")));
    expect(form.map(([name]) => name)).toEqual(["f", "t", "n"]);
    expect(Buffer.from(await (form[0] as [string, Blob])[1].arrayBuffer()).equals(file)).toBe(true);
    // A form parser makes CRLF of a line feed.
    expect(String(form[1]?.[1]).replaceAll("\r\n", "\n") === text).toBe(true);
    expect(String(form[2]?.[1]) === JSON.stringify([[text], 1])).toBe(true);
  });

  it("is a file", async () => {
    const file = Buffer.alloc(500_000, "\xff\x00abc", "latin1");
    const payload = JSON.stringify({ files: [{ content: file.toString("base64"), type: "image/png" }] });
    expect((await sent("POST", payload)).last?.body.equals(file)).toBe(true);
  });

  it.each([
    [
      "no base64",
      "MULTIFORM-POST",
      `{"f":{"content":"${"AAAA".repeat(100_000)}!"}}`,
      "payload.f.content is not base64.",
    ],
    ["no JSON at its end", "POST", `{"a":"${"x".repeat(400_000)}"`, "The request body is not a JSON object."],
    ["a field twice", "POST", `{"a":"${"x".repeat(400_000)}"},"payload":{}`, "payload is given more than once."],
    [
      "too many keys",
      "FORM",
      JSON.stringify(Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [at, 1]))),
      "The request body has more than 10000 keys.",
    ],
    [
      "too deep",
      "FORM",
      `{"a":"${"x".repeat(400_000)}","b":${"[".repeat(70)}${"]".repeat(70)}}`,
      "The request body is nested deeper than 64 levels.",
    ],
  ])("is refused like a small one: %s", async (_what, method, payload, message) => {
    const { row } = await sent(method, payload);
    expect(row).toMatchObject({ errorType: "CALL_FORMAT_ERROR", statusCode: 400 });
    expect(row?.["inernalError"]).toContain(message);
  });

  it("that becomes too large for the memory of all calls is refused, and the bytes are given back", async () => {
    const payload = JSON.stringify({ a: "☕".repeat(1_500_000) });
    const before = provider.requests.length;
    for (const _ of [1, 2]) expect((await sent("FORM", payload)).row).toMatchObject({ errorType: "OVERLOADED" });
    expect(provider.requests.length).toBe(before);
    expect((await sent("POST", payload)).row).toMatchObject({ pincStatus: "success" });
  });

  it("is given up when its caller goes, and so are its bytes", async () => {
    const text = JSON.stringify({ url: provider.origin, method: "FORM", payload: { a: "é ".repeat(1_000_000) } });
    const { port } = new URL(harness.url);
    const { pathname, search } = new URL(target());
    const before = provider.requests.length;
    for (let at = 0; at < 5; at++) {
      const socket = connect(Number(port), "127.0.0.1");
      const head = `POST ${pathname}${search} HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`;
      socket.end(head + text);
      await once(socket.resume(), "close");
    }
    // Five of them at once would not fit.
    const { row } = await sent("POST", JSON.stringify({ a: "x".repeat(8_000_000) }));
    expect(row).toMatchObject({ pincStatus: "success" });
    expect(provider.requests.length).toBe(before + 1);
    expect(harness.logLines.filter((line) => line.includes('"msg":"fault"'))).toEqual([]);
  });
});

describe("a large answer", () => {
  it("of text that becomes six times as long is refused where there is no room for it", async () => {
    contentType = "text/plain";
    for (const [text, errorType] of [
      ["\u0001", "OVERLOADED"],
      ["a", undefined],
      ["\n", undefined],
    ] as const) {
      body = Buffer.from(text.repeat(3_000_000));
      const call = JSON.stringify({ url: `${provider.origin}/`, method: "GET" });
      const answered = await request(target(), { method: "POST", body: call });
      const { rows } = (await answered.body.json()) as { rows: [{ errorType?: string; data?: string }] };
      expect(rows[0].errorType).toBe(errorType);
      expect(rows[0].data?.length).toBe(errorType === undefined ? 3_000_000 : undefined);
    }
  });

  it("whose characters become three times as long is refused where there is no room for it", async () => {
    for (const [type, text] of [
      ["text/plain; charset=windows-1252", Buffer.alloc(5_000_000, 0x80)],
      ["application/json; charset=windows-1252", Buffer.concat([QUOTE, Buffer.alloc(5_000_000, 0x80), QUOTE])],
    ] as const) {
      contentType = type;
      for (const [length, errorType] of [
        [text.length, "OVERLOADED"],
        [300_000, undefined],
      ] as const) {
        body = Buffer.concat([text.subarray(0, length - 1), text.subarray(-1)]);
        const call = JSON.stringify({ url: `${provider.origin}/`, method: "GET" });
        const answered = await request(target(), { method: "POST", body: call });
        const { rows } = (await answered.body.json()) as { rows: [{ errorType?: string }] };
        expect(rows[0].errorType).toBe(errorType);
      }
    }
  });

  it("is given up over HTTP/2 when its caller resets the stream", async () => {
    body = Buffer.from("é☕\n".repeat(700_000));
    contentType = "text/plain";
    const { pathname, search } = new URL(target());
    const session = http2.connect(harness.url);
    for (let at = 0; at < 5; at++) {
      const answered = provider.seen(provider.requests.length + 1);
      const stream = session.request({ ":method": "POST", ":path": pathname + search });
      stream.on("error", () => {
        // It is reset.
      });
      stream.end(JSON.stringify({ url: `${provider.origin}/x`, method: "GET" }));
      await answered;
      for (let turn = 0; turn < 3 * at; turn++) await new Promise((resolve) => setImmediate(resolve));
      stream.close(http2.constants.NGHTTP2_CANCEL);
    }
    session.close();
    await once(session, "close");
    expect((await sent("POST", JSON.stringify({ a: "x".repeat(8_000_000) }))).row).toMatchObject({
      pincStatus: "success",
    });
    expect(harness.logLines.filter((line) => line.includes('"msg":"fault"'))).toEqual([]);
  });

  const json = JSON.stringify({ a: Array.from({ length: MANY }, (_, at) => ({ at, s: "é☕😀" })) });

  it.each<[string, string, Buffer, unknown, string | undefined]>([
    ["text", "text/plain", Buffer.from('é☕😀"\\\u0001\n'.repeat(MANY)), 'é☕😀"\\\u0001\n'.repeat(MANY), undefined],
    ["latin1", "text/plain; charset=latin1", Buffer.alloc(500_000, 0xe9), "é".repeat(500_000), undefined],
    [
      "bytes",
      "image/png",
      Buffer.alloc(500_000, "ab\xff"),
      Buffer.alloc(500_000, "ab\xff").toString("base64"),
      "base64",
    ],
    ["JSON cut short", "application/json", Buffer.from(json.slice(0, -1)), json.slice(0, -1), undefined],
    ["JSON", "application/json", Buffer.from(json), json, "json"],
  ])("comes back over every surface: %s", async (_what, type, bytes, data, encoding) => {
    body = bytes;
    contentType = type;
    const call = { url: `${provider.origin}/x`, method: "GET" };
    for (const [protocol, caller] of createCallers(harness.url)) {
      const row = await caller({ providerName: "raw", userId: "u", publicKey: application.publicKey, call });
      const isExact = encoding === "json" && protocol === "REST";
      expect(isExact ? JSON.stringify(row["data"]) === data : row["data"] === data, protocol).toBe(true);
      expect(row["dataEncoding"], protocol).toBe(isExact ? undefined : encoding);
      const exact = await caller({
        ...{ providerName: "raw", userId: "u", publicKey: application.publicKey, call },
        responseMode: "RESPONSE_MODE_BODY",
      });
      expect(Buffer.from(String(exact["body"]), "base64").equals(bytes), protocol).toBe(true);
    }
  });

  it.each([
    ["rows.0.data.a.19999.s", '"é☕😀"'],
    ["rows.0.data.a", json.slice(5, -1)],
    ["rows.0.statusCode", "200"],
  ])("has a part of it at %s", async (path, part) => {
    body = Buffer.from(json);
    contentType = "application/json";
    const call = { url: `${provider.origin}/x`, method: "GET", headers: { "x-pinc-response-data-at": path } };
    const answered = await request(target(), { method: "POST", body: JSON.stringify(call) });
    expect((await answered.body.text()) === part).toBe(true);
  });
});
