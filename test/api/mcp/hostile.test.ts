import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseExposition, totalOf } from "../../support/exposition.js";
import { ADMIN_TOKENS } from "../../support/harness.js";
import { answerWith, startViaBed, type ViaBed } from "../via/via-bed.js";
import { connectAgent, LIST_TOOLS, post } from "./agent.js";

const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_BODY_BYTES = 256 * 1024;

let bed: ViaBed;

beforeAll(async () => {
  const env = { RELAY_MCP: "on", RELAY_DEADLINE_MS: "1000", RELAY_MAX_RESPONSE_BYTES: String(MAX_RESPONSE_BYTES) };
  bed = await startViaBed({ env });
});

beforeEach(() => {
  bed.answer = answerWith(200, { "content-type": "application/json" }, "{}");
});

afterAll(() => bed.close());

const authorized = () => ({ authorization: `Bearer ${bed.callToken()}` });
const get = (path: string) => ({ provider: "plain", url: `http://${bed.host}${path}`, method: "GET" });
const call = (args: unknown, more: object = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "perform_call", arguments: args, ...more },
});

describe("a message that no client should send", () => {
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

  it.each<[string, () => string | Buffer, number, RegExp]>([
    ["nothing", () => "", 400, /must be one JSON-RPC message/],
    ["no JSON", () => "{", 400, /must be one JSON-RPC message/],
    ["a batch", () => JSON.stringify([LIST_TOOLS, call(get("/a"))]), 400, /not a batch/],
    [
      "a batch of thousands",
      () => JSON.stringify(Array(5000).fill({ jsonrpc: "2.0", method: "ping", id: 1 })),
      400,
      /not a batch/,
    ],
    ["JSON of 65 levels", () => JSON.stringify(call("X")).replace('"X"', nested(65)), 400, /64 levels/],
    ["JSON of 100,000 levels", () => nested(100_000), 400, /64 levels/],
    [
      "10,001 members",
      () => JSON.stringify(call(Object.fromEntries(Array.from({ length: 10_001 }, (_, at) => [`a${at}`, 1])))),
      400,
      /10,000 members/,
    ],
    [
      "501 members beside the arguments, each of which would be looked at several times",
      () =>
        JSON.stringify(
          call(get("/a"), { _meta: Object.fromEntries(Array.from({ length: 501 }, (_, at) => [`a${at}`, 1])) }),
        ),
      400,
      /500 of them outside/,
    ],
    [
      "bytes that are no UTF-8",
      () => Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', "latin1"),
      400,
      /JSON-RPC message/,
    ],
    ["a byte order mark", () => `\ufeff${JSON.stringify(LIST_TOOLS)}`, 400, /JSON-RPC message/],
    ["another version of JSON-RPC", () => JSON.stringify({ ...LIST_TOOLS, jsonrpc: "1.0" }), 400, /JSON-RPC/],
    ["an id that is an object", () => JSON.stringify({ ...LIST_TOOLS, id: {} }), 400, /JSON-RPC/],
    [
      "two urls",
      () => JSON.stringify(call(get("/a"))).replace('"url"', '"url":"http://evil.test/","url"'),
      400,
      /the same member twice/,
    ],
    [
      "two providers, one of them escaped",
      () => JSON.stringify(call(get("/a"))).replace('"provider"', '"pr\\u006fvider":"keyed","provider"'),
      400,
      /twice/,
    ],
    [
      "arguments twice",
      () => JSON.stringify(call(get("/a"))).replace('"arguments"', '"arguments":{},"arguments"'),
      400,
      /twice/,
    ],
    ["params twice", () => JSON.stringify(call(get("/a"))).replace('"params"', '"params":{},"params"'), 400, /twice/],
    [
      "a body above the limit",
      () => JSON.stringify(call({ ...get("/a"), body: "a".repeat(MAX_BODY_BYTES) })),
      413,
      /over the limit of 262144 bytes/,
    ],
    ["a body far above the limit", () => "a".repeat(8 * MAX_BODY_BYTES), 413, /over the limit/],
  ])("is refused: %s", async (_what, body, status, message) => {
    const before = bed.received.length;
    expect(await post(bed, authorized(), body())).toMatchObject({ status, message: expect.stringMatching(message) });
    expect(bed.received.length).toBe(before);
  });

  it.each<[string, Record<string, string>, number]>([
    ["another content type", { "content-type": "text/plain" }, 415],
    ["a content type that only looks like JSON", { "content-type": "text/plain; a=application/json" }, 415],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["JSON alone accepted", { accept: "application/json" }, 406],
    ["a protocol version that is none", { "mcp-protocol-version": "1999-01-01" }, 400],
    ["a compressed body", { "content-encoding": "gzip" }, 200],
  ])("is answered as the specification says: %s", async (_what, fields, status) => {
    const before = bed.received.length;
    const answered = await post(bed, { ...authorized(), ...fields });
    expect(answered.status).toBe(status);
    expect(bed.received.length).toBe(before);
  });

  it("that is a notification or a response is taken with 202", async () => {
    for (const message of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1, reason: "a".repeat(65_536) } },
      { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "__proto__", progress: 1 } },
      { jsonrpc: "2.0", id: "constructor", result: {} },
    ]) {
      expect(await post(bed, authorized(), JSON.stringify(message))).toMatchObject({ status: 202, text: "" });
    }
  });

  it.each<[string, () => object, number]>([
    ["a method that is not there", () => ({ jsonrpc: "2.0", id: 1, method: "resources/list" }), -32601],
    ["a method that every object has", () => ({ jsonrpc: "2.0", id: 1, method: "constructor" }), -32601],
    ["a tool that is not there", () => call(get("/a"), { name: "delete_everything" }), -32602],
    ["a tool that every object has", () => call(get("/a"), { name: "__proto__" }), -32602],
    ["arguments that are no object", () => call([get("/a")]), -32603],
    ["a task, which outlives the request", () => call(get("/a"), { task: { ttl: 1000 } }), -32603],
  ])("asks for %s and gets an error of JSON-RPC", async (_what, message, code) => {
    const before = bed.received.length;
    const { status, text } = await post(bed, authorized(), JSON.stringify(message()));
    expect([status, JSON.parse(text).error.code]).toEqual([200, code]);
    expect(bed.received.length).toBe(before);
  });
});

describe("arguments that are hostile", () => {
  const long = "a".repeat(65_536);
  it.each<[string, () => unknown]>([
    ["none", () => undefined],
    ["a provider that is an object", () => ({ ...get("/a"), provider: { name: "plain" } })],
    ["a provider of 64 KiB", () => ({ ...get("/a"), provider: long })],
    ["a url of 64 KiB", () => get(`/${long}`)],
    ["a url that is a list", () => ({ ...get("/a"), url: [get("/a").url] })],
    ["a method of 64 KiB", () => ({ ...get("/a"), method: long })],
    ["a method that names two requests", () => ({ ...get("/a"), method: "GET /b HTTP/1.1\r\nX: " })],
    ["a header of 64 KiB", () => ({ ...get("/a"), headers: { "x-a": long } })],
    ["a header's name of 64 KiB", () => ({ ...get("/a"), headers: { [long]: "a" } })],
    ["a header that ends the head", () => ({ ...get("/a"), headers: { "x-a": "a\r\nAuthorization: Bearer x" } })],
    ["a header that every object has", () => ({ ...get("/a"), headers: JSON.parse('{"__proto__":"x"}') })],
    [
      "100 headers",
      () => ({ ...get("/a"), headers: Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x-${at}`, "a"])) }),
    ],
    ["a header that is an object", () => ({ ...get("/a"), headers: { "x-a": {} } })],
    ["a query of 64 KiB", () => ({ ...get("/a"), queryString: { a: long } })],
    ["a payload of a GET of 64 KiB", () => ({ ...get("/a"), payload: { a: long } })],
    ["a payload that is text", () => ({ ...get("/a"), method: "POST", payload: '{"a":1}' })],
    ["a body that is no base64", () => ({ ...get("/a"), method: "POST", body: "***" })],
    ["a body and a payload", () => ({ ...get("/a"), method: "POST", body: "YQ==", payload: { a: 1 } })],
    ["a member that every object has", () => ({ ...get("/a"), ...JSON.parse('{"constructor":{}}') })],
    ["a member of 64 KiB", () => ({ ...get("/a"), [long]: 1 })],
  ])("are refused in short, and the provider is not asked: %s", async (_what, args) => {
    const agent = await connectAgent(bed);
    const before = bed.received.length;
    const { isError, told, text } = await agent.use("perform_call", args() as Record<string, unknown>);
    expect([isError, told.errorType]).toEqual([
      true,
      expect.stringMatching(/^(?:CALL_FORMAT_ERROR|URL_NOT_ALLOWED|INVALID_PROVIDER)$/),
    ]);
    expect(text.length).toBeLessThan(600);
    expect(bed.received.length).toBe(before);
  });
});

/** Everything that calls hold, as the metrics tell it. */
async function heldByCalls(): Promise<readonly number[]> {
  const headers = { authorization: `Bearer ${ADMIN_TOKENS.operator}` };
  const samples = parseExposition(await (await fetch(`${bed.harness.adminUrl}/metrics`, { headers })).text());
  return [totalOf(samples, "relay_calls_in_flight"), totalOf(samples, "relay_buffered_bytes")];
}

describe("a provider or a client that is hostile", () => {
  it("gets no more than the largest answer read", async () => {
    bed.answer = answerWith(200, { "content-type": "application/json" }, `"${"a".repeat(MAX_RESPONSE_BYTES)}"`);
    const agent = await connectAgent(bed);
    expect((await agent.use("perform_call", get("/a"))).told).toMatchObject({
      errorType: "RESPONSE_TOO_LARGE",
      next: expect.stringMatching(/^Ask for less/),
    });
  });

  it("ends at the deadline", async () => {
    bed.answer = () => {};
    const agent = await connectAgent(bed);
    const { told } = await agent.use("perform_call", { ...get("/a"), method: "POST" });
    expect(told).toMatchObject({
      errorType: "PROVIDER_TIMEOUT",
      next: expect.stringMatching(/check whether it was done/),
    });
  });

  it("has its call ended when it leaves, and holds nothing then", async () => {
    const asked = new Promise<ServerResponse>((resolve) => {
      bed.answer = (_incoming, response) => resolve(response);
    });
    const { hostname, port } = new URL(bed.harness.url);
    const socket = connect(Number(port), hostname);
    const body = JSON.stringify(call(get("/slow")));
    const fields = ["Host: relay", `Authorization: Bearer ${bed.callToken()}`, "Content-Type: application/json"];
    fields.push("Accept: application/json, text/event-stream", `Content-Length: ${body.length}`);
    socket.write(`POST /mcp HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
    const response = await asked;
    socket.destroy();
    await once(response, "close");
    await expect.poll(heldByCalls).toEqual([0, 0]);
  });

  it("that sends half of its message holds nothing when it has gone", async () => {
    const { hostname, port } = new URL(bed.harness.url);
    const socket = connect(Number(port), hostname);
    const fields = ["Host: relay", `Authorization: Bearer ${bed.callToken()}`, "Content-Length: 100000"];
    socket.write(`POST /mcp HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n{"jsonrpc":`);
    await expect.poll(async () => (await heldByCalls())[1]).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(heldByCalls).toEqual([0, 0]);
  });
});

describe("whatever is asked", () => {
  it("is answered without a token, a key or a signature", async () => {
    bed.answer = (incoming, response) => {
      response.writeHead(200, { "content-type": "application/json", etag: String(incoming.headers.authorization) });
      response.end(JSON.stringify({ echo: incoming.headers, url: incoming.url }));
    };
    const token = bed.callToken();
    const agent = await connectAgent(bed, token);
    await agent.client.listTools();
    await agent.use("list_accounts");
    for (const provider of ["plain", "keyed", "underscored", "queried"]) {
      for (const tool of ["explain_call", "perform_call"]) {
        for (const url of [get("/a?access_token={{access_token}}").url, get(`/${token}`).url, "https://evil.test/"]) {
          await agent.use(tool, { provider, url, method: "GET" });
        }
      }
    }
    const told = agent.heard.join("\n") + bed.harness.logLines.join("\n");
    expect(agent.heard.length).toBeGreaterThan(25);
    expect(told).toContain("[redacted]");
    expect(told).not.toContain("CANARY_");
    expect(bed.harness.logLines.join("\n")).not.toContain(token.split(".")[2]);
    expect(told).not.toContain(bed.application.privateKey);
  });
});
