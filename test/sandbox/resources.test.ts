import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SAMPLE_TEXTS } from "../support/prepared-content.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { call, send } from "./call.js";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox.close());

const JSON_TYPE = "application/json";

describe("resource API", () => {
  it.each([
    ["/empty", 200, JSON_TYPE, ""],
    ["/no-content", 204, undefined, ""],
    ["/bigint", 200, JSON_TYPE, '{"id":9007199254740993,"v":1.0,"b":1,"a":2}'],
    ["/invalid-json", 200, JSON_TYPE, '{"id": 1, "name": "cut sho'],
    ["/html", 200, "text/html; charset=utf-8", /^<!doctype html>/],
    ["/items?count=2", 200, JSON_TYPE, '[{"id":1,"name":"Item 1"},{"id":2,"name":"Item 2"}]'],
    ["/items?count=0", 200, JSON_TYPE, "[]"],
    ["/items?count=-1", 400, JSON_TYPE, /count must be an integer from 0 to 10000/],
    ["/items?count=1e3", 400, JSON_TYPE, /count/],
    ["/me", 200, JSON_TYPE, /"login":"ada"/],
    ["/2/users/me", 200, JSON_TYPE, '{"data":{"id":"1001","name":"Ada Example","username":"ada"}}'],
    ["/youtube/v3/channels?part=id&mine=true", 200, JSON_TYPE, /"items":\[\{"kind":"youtube#channel"/],
    ["/youtube/v3/channels?part=id&mine=1", 200, JSON_TYPE, /"items":\[\]/],
    ["/youtube/v3/channels?mine=true", 400, JSON_TYPE, /Required parameter: part/],
    ["/status/204", 204, undefined, ""],
    ["/status/205", 205, undefined, ""],
    ["/status/304", 304, undefined, ""],
    ["/status/404", 404, JSON_TYPE, '{"status":404,"message":"Not Found"}'],
    ["/status/999?body=%7B%22a%22:1.0%7D", 999, JSON_TYPE, '{"a":1.0}'],
    ["/status/199", 400, JSON_TYPE, /status must be/],
    ["/status/1e3", 400, JSON_TYPE, /status must be/],
    ["/status", 400, JSON_TYPE, /status must be/],
    ["/text?charset=klingon", 400, JSON_TYPE, /charset must be one of utf-8/],
    ["/bytes?size=0", 200, "application/octet-stream", ""],
    ["/bytes?size=999999999", 400, JSON_TYPE, /size/],
    ["/json?size=1", 400, JSON_TYPE, /size must be an integer from 2/],
    ["/redirect", 400, JSON_TYPE, /to must be given/],
    ["/redirect?to=/me&status=200", 400, JSON_TYPE, /status/],
    ["/echo-token?as=rot13", 400, JSON_TYPE, /as must be one of raw/],
    ["/headers?Content-Length=1", 400, JSON_TYPE, /framing/],
    ["/slow?ms=1", 200, JSON_TYPE, '{"waitedMs":1}'],
    ["/nowhere", 404, JSON_TYPE, /not_found/],
    ["/mee", 404, JSON_TYPE, /not_found/],
    ["/echoes", 404, JSON_TYPE, /not_found/],
  ])("GET %s answers %i", async (target, statusCode, contentType, body) => {
    const answer = await call(sandbox, target);
    expect(answer).toMatchObject({ statusCode, text: typeof body === "string" ? body : expect.stringMatching(body) });
    expect(answer.headers["content-type"]).toBe(contentType);
  });

  it.each([
    "/me",
    "/json?size=500",
    "/bytes?size=9",
    "/gzip",
    "/drip",
    "/gzip-bomb?mib=1",
    "/echo",
    "/status/404",
    "/html",
  ])("HEAD %s answers as GET without content", async (target) => {
    const [head, get] = [await call(sandbox, target, { method: "HEAD" }), await call(sandbox, target)];
    expect(head.bytes.length).toBe(0);
    expect(head.statusCode).toBe(get.statusCode);
    expect(head.headers["content-type"]).toBe(get.headers["content-type"]);
    if (!target.startsWith("/echo")) expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  });

  it("names the methods a path takes", async () => {
    const answer = await call(sandbox, "/me", { method: "DELETE" });
    expect([answer.statusCode, answer.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    expect((await call(sandbox, "/upload")).headers["allow"]).toBe("PUT, POST");
  });

  it.each([
    ["no credential", {}, 401, 'Bearer realm="sandbox"'],
    ["an unknown token", { authorization: "Bearer x" }, 401, 'Bearer realm="sandbox", error="invalid_token"'],
    ["another scheme", { authorization: "Basic eDp5" }, 401, 'Bearer realm="sandbox", error="invalid_token"'],
    ["an empty token", { authorization: "Bearer " }, 401, 'Bearer realm="sandbox", error="invalid_token"'],
  ])("refuses %s", async (_, headers, statusCode, challenge) => {
    for (const target of ["/me", "/echo", "/nowhere", "/json?size=9"]) {
      const answer = await send(sandbox.origin + target, { headers: headers as Record<string, string> });
      expect([answer.statusCode, answer.headers["www-authenticate"]]).toEqual([statusCode, challenge]);
      expect(JSON.parse(answer.text)).toHaveProperty("error");
    }
  });
});

/** With `stream`, since Node 20.20.2 otherwise decodes windows-1252 as latin1. */
function decodeText(bytes: Buffer, charset: string): string {
  const decoder = new TextDecoder(charset, { fatal: true });
  return decoder.decode(bytes, { stream: true }) + decoder.decode();
}

describe("content", () => {
  it.each([...SAMPLE_TEXTS.values()])("/text?charset=$charset is that text in that charset", async (sample) => {
    const answer = await call(sandbox, `/text?charset=${sample.charset.toUpperCase()}`);
    expect(answer.headers["content-type"]).toBe(`text/plain; charset=${sample.charset}`);
    expect(decodeText(answer.bytes, sample.charset)).toBe(sample.text);
  });

  it.each([
    ["/gzip", "gzip", gunzipSync],
    ["/br", "br", brotliDecompressSync],
    ["/deflate", "deflate", inflateSync],
    ["/deflate-raw", "deflate", inflateRawSync],
  ])("%s is JSON under the content coding %s", async (target, coding, decode) => {
    const answer = await call(sandbox, target);
    expect(answer.headers["content-encoding"]).toBe(coding);
    expect(JSON.parse(decode(answer.bytes).toString())).toMatchObject({ path: target });
  });

  it("/gzip-bomb grows to a valid JSON text of the size asked for", async () => {
    for (const mib of [1, 3]) {
      const answer = await call(sandbox, `/gzip-bomb?mib=${mib}`);
      expect(answer.bytes.length).toBeLessThan(8000);
      const decoded = gunzipSync(answer.bytes);
      expect(decoded.length).toBe(mib * 1024 * 1024);
      expect(JSON.parse(decoded.toString())).toEqual([]);
    }
  });

  it("/json and /bytes have the size asked for and are the same each time", async () => {
    for (const target of ["/json?size=2", "/json?size=1024", "/json?size=102400", "/bytes?size=300"]) {
      const [first, second] = [await call(sandbox, target), await call(sandbox, target)];
      expect(first.bytes.length).toBe(Number(target.split("=")[1]));
      expect(first.headers["content-length"]).toBe(target.split("=")[1]);
      expect(first.bytes.equals(second.bytes)).toBe(true);
    }
  });

  it("/image is a PNG", async () => {
    const answer = await call(sandbox, "/image");
    expect(answer.headers["content-type"]).toBe("image/png");
    expect(answer.bytes.subarray(1, 4).toString()).toBe("PNG");
  });

  it("/drip sends its bytes one by one", async () => {
    const startedMs = performance.now();
    const answer = await call(sandbox, "/drip?bytes=4&ms=20");
    expect([answer.text, answer.headers["content-length"]]).toEqual(["aaaa", undefined]);
    expect(performance.now() - startedMs).toBeGreaterThan(50);
  });

  it("/slow waits as long as asked", async () => {
    const startedMs = performance.now();
    await call(sandbox, "/slow?ms=60");
    expect(performance.now() - startedMs).toBeGreaterThan(55);
  });
});

describe("fields", () => {
  it("/headers answers with the fields asked for, repeated ones apart", async () => {
    const target = "/headers?X-A=1&X-A=2&Retry-After=-1&__proto__=x&content-type=application/vnd.api%2Bjson";
    const { headers } = await call(sandbox, target);
    expect(headers).toMatchObject({ "x-a": ["1", "2"], "retry-after": "-1" });
    expect(headers["content-type"]).toBe("application/vnd.api+json");
  });

  it("/cookies sets two cookies and /multi sends three Link fields", async () => {
    expect((await call(sandbox, "/cookies")).headers["set-cookie"]).toHaveLength(2);
    expect((await call(sandbox, "/multi")).headers["link"]).toHaveLength(3);
  });

  it("/redirect sends Location as given", async () => {
    const answer = await call(sandbox, "/redirect?to=https://evil.test/%3Fa%3Db&status=307");
    expect([answer.statusCode, answer.headers["location"]]).toEqual([307, "https://evil.test/?a=b"]);
  });

  it("/upload takes content and says where it is, also for a second upload there", async () => {
    const first = await call(sandbox, "/upload", { method: "POST", body: Buffer.from([0, 255]) });
    expect([first.statusCode, first.bytes.length]).toEqual([201, 0]);
    const location = String(first.headers["location"]);
    expect(location).toMatch(new RegExp(`^${sandbox.origin}/upload/[0-9a-f]{16}$`));
    expect((await call(sandbox, new URL(location).pathname, { method: "PUT" })).statusCode).toBe(201);
  });
});

describe("/chat.postMessage", () => {
  const form = "application/x-www-form-urlencoded";
  it.each([
    [JSON_TYPE, '{"channel":"#general","text":"hi"}', { ok: true, channel: "#general" }],
    [form, "channel=C1&text=hi", { ok: true, message: { text: "hi" } }],
    [JSON_TYPE, '{"text":"hi"}', { ok: false, error: "channel_not_found" }],
    [form, "channel=C1", { ok: false, error: "no_text" }],
    [JSON_TYPE, "not json", { ok: false, error: "channel_not_found" }],
    [JSON_TYPE, "null", { ok: false, error: "channel_not_found" }],
  ])("answers %s %s in Slack's way", async (contentType, body, expected) => {
    const headers = { "content-type": contentType };
    const answer = await call(sandbox, "/chat.postMessage", { method: "POST", headers, body });
    expect(answer.statusCode).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject(expected);
  });
});
