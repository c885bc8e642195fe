import type { ClientHttp2Session } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import { nestedCall } from "../rpc/nested-call.js";
import { http1Request, http2Request, PATH, post, type Send, startTwoRelays, type TwoRelays } from "./two-relays.js";

const MAX_REQUEST_BYTES = 100_000;

let two: TwoRelays;

beforeAll(async () => {
  two = await startTwoRelays({ RELAY_MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES) });
});

afterAll(() => two.close());

/** A call of ada's in ProtoJSON; `path` is at the sandbox. */
function callJson(path: string, call: object = {}, outer: object = {}): JsonValue {
  const url = two.harness.sandbox.origin + path;
  const { publicKey } = two.application;
  const message = {
    providerName: "sandbox",
    userId: "ada",
    publicKey,
    call: { url, method: "GET", ...call },
    ...outer,
  };
  return message as JsonValue;
}

const text = (json: JsonValue) => Buffer.from(JSON.stringify(json));
const binary = (json: JsonValue) => Buffer.from(toBinary(CallRequestSchema, fromJson(CallRequestSchema, json)));

/** The frame of a message in gRPC. */
function framed(message: Buffer, flag = 0, length = message.length): Buffer {
  const prefix = Buffer.alloc(5, flag);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

const GRPC = { "content-type": "application/grpc", te: "trailers" };
const grpc = (body: Buffer | readonly Buffer[], headers: object = {}) => http2Request({ ...GRPC, ...headers }, body);

/** Sends it to both, and holds what is seen together; returns it. */
async function same(send: Send) {
  const connect = await send(two.without);
  const fast = await send(two.withFastPath);
  expect(fast).toEqual(connect);
  return fast;
}

/** Over every form that the fast path takes. */
async function sameInEveryForm(json: JsonValue, headers: Record<string, string> = {}) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  await same(http1Request(post("application/json", text(json), fields.join(""))));
  await same(http1Request(post("application/proto", binary(json), fields.join(""))));
  await same(http2Request({ "content-type": "application/json", ...headers }, text(json)));
  await same(http2Request({ "content-type": "application/proto", ...headers }, binary(json)));
  await same(http2Request({ "content-type": "application/grpc-web", ...headers }, framed(binary(json))));
  return same(grpc(framed(binary(json)), headers));
}

describe("the fast path answers as connect-node does", () => {
  it.each<[string, string, object, object]>([
    ["JSON", "/me", {}, {}],
    ["JSON of many kinds", "/echo", { method: "POST", payload: { a: [1, -0.5, "ä", true, null, {}] } }, {}],
    ["JSON with a rounded number", "/bigint", {}, {}],
    ["300 KB of JSON", "/json?size=300000", {}, {}],
    ["invalid JSON", "/invalid-json", {}, {}],
    ["text", "/text", {}, {}],
    ["binary content", "/image", {}, {}],
    ["nothing", "/no-content", {}, {}],
    ["bytes", "/json?size=1000", {}, { responseMode: "RESPONSE_MODE_BODY" }],
    ["no bytes", "/no-content", {}, { responseMode: "RESPONSE_MODE_BODY" }],
    ["base64", "/json?size=10", { method: "GETFILE" }, {}],
    ["an error of the provider", "/status/404", {}, {}],
    ["exact bytes", "/raw-echo", { method: "PUT", body: "AP9hYmM=", headers: { "content-type": "a/b" } }, {}],
    ["a query string", "/echo", { queryString: { a: 1, b: ["x"] } }, {}],
    ["a user beyond ASCII", "/me", {}, { userId: "ädä" }],
    ["a user without a connection", "/me", {}, { userId: "nobody" }],
    ["a wrong key", "/me", {}, { publicKey: "wrong" }],
    ["a wrong private key", "/me", {}, { privateKey: "wrong" }],
    ["an unknown provider", "/me", {}, { providerName: "nobody" }],
    ["a url that is not allowed", "/me", { url: "https://example.com/" }, {}],
    ["a call without a url", "/me", { url: "" }, {}],
    ["a header that is not allowed", "/me", { headers: { "x-a": "a\nb" } }, {}],
    [
      "a payload nested too deep",
      "/echo",
      { method: "POST", payload: JSON.parse(`{"a":${"[".repeat(70)}${"]".repeat(70)}}`) },
      {},
    ],
  ])("to a call: %s", async (_what, path, call, outer) => {
    await sameInEveryForm(callJson(path, call, outer));
  });

  it("to a message without a call", async () => {
    await sameInEveryForm({ providerName: "sandbox" });
    await sameInEveryForm({});
  });

  it.each<Record<string, string>>([
    { "connect-protocol-version": "1" },
    { "connect-protocol-version": "2" },
    { authorization: "Bearer wrong" },
    { authorization: "Basic YTpi" },
    { "x-partner-key": "wrong.wrong" },
    { "x-partner-key": "wrong" },
    { "x-forwarded-for": "192.0.2.1" },
    { "user-agent": "grpc-go/1.0", "x-a": "b" },
    { "grpc-encoding": "identity", "content-encoding": "identity" },
    { "grpc-accept-encoding": "identity", "accept-encoding": "identity" },
    { "grpc-encoding": "gzip" },
    { "content-encoding": "gzip" },
    { "grpc-encoding": "zstd", "content-encoding": "zstd" },
    { "grpc-encoding": "", "content-encoding": "" },
    { origin: "https://app.example" },
    { origin: "https://evil.example" },
    { "grpc-timeout": "1S", "connect-timeout-ms": "1000" },
    { "grpc-timeout": "0S", "connect-timeout-ms": "0" },
    { "grpc-timeout": "1n", "connect-timeout-ms": "00000000000" },
    { "grpc-timeout": "100000u", "connect-timeout-ms": "0000001000" },
    { "grpc-timeout": "100000000S", "connect-timeout-ms": "12345678901" },
    { "grpc-timeout": "24H", "connect-timeout-ms": "86400000" },
    { "grpc-timeout": "25H", "connect-timeout-ms": "86400001" },
    { "grpc-timeout": "99999999H", "connect-timeout-ms": "9999999999" },
    { "grpc-timeout": "1s", "connect-timeout-ms": "1s" },
    { "grpc-timeout": "-1S", "connect-timeout-ms": "-1" },
    { "grpc-timeout": "", "connect-timeout-ms": "" },
  ])("to the fields %o", async (headers) => {
    await sameInEveryForm(callJson("/me"), headers);
  });

  it.each([
    "application/grpc+proto",
    "application/grpc+json",
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/GRPC",
    "application/json; charset=utf-8",
    "application/json;charset=latin1",
    "APPLICATION/JSON",
    "application/connect+json",
    "application/proto; a=b",
    "text/plain",
    "",
  ])("to content-type '%s'", async (type) => {
    const message = type.includes("json") ? text(callJson("/me")) : binary(callJson("/me"));
    for (const body of [message, framed(message)]) {
      await same(http1Request(post(type, body)));
      await same(http2Request({ ...GRPC, "content-type": type }, body));
    }
  });

  it("to gRPC over HTTP/1.1", async () => {
    const frame = framed(binary(callJson("/me")));
    await same(http1Request(post("application/grpc", frame)));
    const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nContent-Type: application/grpc\r\n`;
    const kept = Buffer.concat([Buffer.from(`${head}Content-Length: ${frame.length}\r\n\r\n`), frame]);
    await same(http1Request(kept, post("application/grpc", frame)));
  });

  it.each(["GET", "PUT", "HEAD", "OPTIONS", "DELETE"])("to %s", async (method) => {
    const headers = { ":method": method, "content-type": "application/grpc" };
    const body = method === "PUT" ? framed(binary(callJson("/me"))) : undefined;
    await same(http2Request(headers, body));
    await same(http2Request({ ...headers, "content-type": "application/json" }, body));
    await same(http2Request({ ...headers, origin: "https://app.example" }, body));
    await same(http1Request(`${method} ${PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`));
  });

  it("to other paths, and to a query", async () => {
    for (const path of [`${PATH}?a=b`, `${PATH}/`, `${PATH}x`, PATH.toLowerCase()]) {
      await same(http1Request(post("application/json", text(callJson("/me")), "", path)));
      await same(grpc(framed(binary(callJson("/me"))), { ":path": path }));
    }
  });
});

describe("the fast path leaves to connect-node", () => {
  const call = () => binary(callJson("/me"));

  it.each<[string, () => Buffer | readonly Buffer[]]>([
    ["no message", () => Buffer.alloc(0)],
    ["a piece of a prefix", () => Buffer.alloc(3)],
    ["an empty message", () => framed(Buffer.alloc(0))],
    ["a message that is cut off", () => framed(call(), 0, call().length + 1)],
    ["a message that is longer than it says", () => framed(call(), 0, call().length - 1)],
    ["two messages", () => Buffer.concat([framed(call()), framed(call())])],
    ["two messages in two pieces", () => [framed(call()), framed(call())]],
    ["a message and half a prefix", () => Buffer.concat([framed(call()), Buffer.alloc(3)])],
    ["a message that says it is compressed", () => framed(call(), 1)],
    ["a message that is compressed", () => framed(gzipSync(call()), 1)],
    ["a flag that nobody knows", () => framed(call(), 2)],
    [
      "a message in pieces",
      () => [framed(call()).subarray(0, 2), framed(call()).subarray(2, 9), framed(call()).subarray(9)],
    ],
    ["a message behind its prefix", () => [framed(call()).subarray(0, 5), call()]],
    ["a tag that no field has", () => framed(Buffer.from([0xff]))],
    ["text that is not UTF-8", () => framed(Buffer.from([0x0a, 0x01, 0xff]))],
    ["a field that is cut off", () => framed(Buffer.from([0x0a, 0x05, 0x61]))],
    ["an unknown field", () => framed(Buffer.concat([call(), Buffer.from([0x7a, 0x01, 0x61])]))],
    ["a Struct of 95 levels", () => framed(nestedCall(95))],
    ["a Struct of 1,000 levels", () => framed(nestedCall(1_000))],
    ["a message of the largest size", () => framed(sized(MAX_REQUEST_BYTES))],
    ["a message that is too large", () => framed(sized(MAX_REQUEST_BYTES + 1))],
    ["a message that says it is too large", () => framed(call(), 0, MAX_REQUEST_BYTES + 1)],
    ["a message that says it is enormous", () => framed(call(), 0, 0xffffffff)],
  ])("what it does not know in gRPC: %s", async (_what, body) => {
    await same(grpc(body()));
    await same(grpc(body(), { "grpc-encoding": "gzip" }));
    await same(http2Request({ ...GRPC, "content-length": String(Buffer.concat([body()].flat()).length) }, body()));
  });

  it.each<[string, string, () => Buffer]>([
    ["nothing", "application/json", () => Buffer.alloc(0)],
    ["nothing", "application/proto", () => Buffer.alloc(0)],
    ["no JSON", "application/json", () => Buffer.from("{")],
    ["an unknown field", "application/json", () => Buffer.from('{"a":1}')],
    ["a key twice", "application/json", () => Buffer.from('{"userId":"a","userId":"b"}')],
    ["bytes that are not UTF-8", "application/json", () => Buffer.from('{"userId":"\xff"}', "latin1")],
    ["a byte order mark", "application/json", () => Buffer.concat([Buffer.from("\ufeff"), text(callJson("/me"))])],
    ["a tag that no field has", "application/proto", () => Buffer.from([0xff])],
    ["a Struct of 1,000 levels", "application/proto", () => nestedCall(1_000)],
    ["a message in a prefix", "application/proto", () => framed(call())],
    ["the largest size", "application/proto", () => sized(MAX_REQUEST_BYTES)],
    [
      "the largest size",
      "application/json",
      () => Buffer.from(JSON.stringify(callJson("/me")).padEnd(MAX_REQUEST_BYTES)),
    ],
    ["a byte too much", "application/proto", () => sized(MAX_REQUEST_BYTES + 1)],
    ["a byte too much", "application/json", () => Buffer.alloc(MAX_REQUEST_BYTES + 1, " ")],
    ["ten times too much", "application/json", () => Buffer.alloc(MAX_REQUEST_BYTES * 10, " ")],
  ])("what it does not know in Connect: %s as %s", async (_what, type, body) => {
    await same(http1Request(post(type, body())));
    await same(http1Request(chunked(type, body())));
    await same(http2Request({ "content-type": type }, body()));
    await same(http2Request({ "content-type": type }, [body().subarray(0, 10), body().subarray(10)]));
  });

  it("a compressed message, and one that is not what it says", async () => {
    const fields = "Content-Encoding: gzip\r\n";
    await same(http1Request(post("application/json", gzipSync(text(callJson("/me"))), fields)));
    await same(http1Request(post("application/proto", gzipSync(call()), fields)));
    await same(http1Request(post("application/proto", call(), fields)));
    await same(grpc(framed(gzipSync(call()), 1), { "grpc-encoding": "gzip" }));
  });

  it("a call whose time was over before its message had come", async () => {
    const before = two.harness.sandbox.requests.length;
    const late = { "grpc-timeout": "5m", "connect-timeout-ms": "5" };
    // Once it answers the ping, the relay has read the head, and set its clock before this process sets this one.
    const overdue = async (session: ClientHttp2Session) => {
      await new Promise((resolve) => session.ping(resolve));
      await delay(20);
    };
    const slowly = (body: Buffer, headers: object) =>
      http2Request({ ...headers, ...late }, [body.subarray(0, 20), overdue, body.subarray(20)]);
    const seen = await same(slowly(framed(call()), GRPC));
    expect(seen.trailers).toEqual({ "grpc-status": "4", "grpc-message": "the%20deadline%20has%20passed" });
    await same(slowly(call(), { "content-type": "application/proto" }));
    await same(slowly(text(callJson("/me")), { "content-type": "application/json" }));
    expect(two.harness.sandbox.requests.length).toBe(before);
  });

  /** A message of so many bytes. */
  function sized(length: number): Buffer {
    const empty =
      binary(callJson("/me", { method: "PUT", body: Buffer.alloc(40_000).toString("base64") })).length - 40_000;
    const body = Buffer.alloc(length - empty).toString("base64");
    return binary(callJson("/me", { method: "PUT", body }));
  }

  function chunked(type: string, body: Buffer): Buffer {
    const head = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Type: ${type}`;
    const half = Math.floor(body.length / 2);
    const chunks = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
    const parts = chunks.flatMap((chunk) => [
      Buffer.from(`${chunk.length.toString(16)}\r\n`),
      chunk,
      Buffer.from("\r\n"),
    ]);
    return Buffer.concat([Buffer.from(`${head}\r\n\r\n`), ...parts, Buffer.from("0\r\n\r\n")]);
  }
});
