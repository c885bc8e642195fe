import { connect as connectHttp2 } from "node:http2";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const UUID = /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const TRACEPARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;

let harness: Harness;
let application: TestApplication;
let origin: string;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({ allowedOrigins: ["https://app.test"] });
  await harness.connect(application, "ada");
  origin = harness.sandbox.origin;
});

afterAll(() => harness.close());

type Fields = Readonly<Record<string, string>>;

/** Asks for one path; resolves to the fields of the answer. */
async function ask(method: "GET" | "POST" | "PUT" | "OPTIONS", path: string, headers: Fields = {}, body = "") {
  const answer = await request(harness.url + path, { method, headers, ...(body === "" ? {} : { body }) });
  await answer.body.dump();
  return answer.headers as Record<string, string>;
}

const query = () => `user_id=ada&public_key=${application.publicKey}`;
const callBody = () => JSON.stringify({ url: `${origin}/me`, method: "GET" });
const call = (headers?: Fields) => ask("POST", `/oauth/method/sandbox/call?${query()}`, headers, callBody());

/** What every answer of the relay belongs to. */
const ANSWERS: ReadonlyArray<readonly [string, (headers: Fields) => Promise<Record<string, string>>]> = [
  ["a call", call],
  ["a call that fails", (headers) => ask("POST", "/oauth/method/nobody/call", headers, callBody())],
  ["a body that is no call", (headers) => ask("POST", "/oauth/method/sandbox/call", headers, "{")],
  ["405 of the JSON route", (headers) => ask("PUT", "/oauth/method/sandbox/call", headers)],
  [
    "a preflight",
    (headers) => ask("OPTIONS", `/oauth/method/sandbox/call?${query()}`, { ...headers, origin: "https://app.test" }),
  ],
  ["a stream", (headers) => ask("POST", `/oauth/method/sandbox/stream?${query()}`, headers, callBody())],
  ["a stream that fails", (headers) => ask("POST", "/oauth/method/nobody/stream", headers, callBody())],
  ["a list of connections", (headers) => ask("GET", `/oauth/connections?${query()}`, headers)],
  ["a list that is refused", (headers) => ask("GET", "/oauth/connections", headers)],
  ["a page", (headers) => ask("GET", "/oauth/connect", headers)],
  ["a page's 405", (headers) => ask("PUT", "/oauth/connect", headers)],
  ["health", (headers) => ask("GET", "/healthz", headers)],
  ["404", (headers) => ask("GET", "/nothing", headers)],
  ["417", (headers) => askExpecting(headers)],
];

/** Undici does not send it. */
function askExpecting(headers: Fields): Promise<Record<string, string>> {
  return overHttp2({ ":path": "/healthz", expect: "something", ...headers });
}

function overHttp2(headers: Fields): Promise<Record<string, string>> {
  const session = connectHttp2(harness.url);
  return new Promise<Record<string, string>>((resolve, reject) => {
    const stream = session.request(headers);
    stream
      .on("response", (fields) => resolve(fields as unknown as Record<string, string>))
      .on("error", reject)
      .resume()
      .end();
  }).finally(() => session.close());
}

describe("x-request-id", () => {
  it.each(ANSWERS)("comes back with %s, and is made where the caller has none", async (_what, answer) => {
    expect((await answer({ "x-request-id": "mine-1" }))["x-request-id"]).toBe("mine-1");
    expect((await answer({}))["x-request-id"]).toMatch(UUID);
  });

  const transports: ReadonlyArray<readonly [string, (interceptors: Interceptor[]) => Transport]> = [
    [
      "Connect over HTTP/1.1",
      (interceptors) => createConnectTransport({ baseUrl: harness.url, httpVersion: "1.1", interceptors }),
    ],
    [
      "Connect over HTTP/2",
      (interceptors) => createConnectTransport({ baseUrl: harness.url, httpVersion: "2", interceptors }),
    ],
    ["gRPC", (interceptors) => createGrpcTransport({ baseUrl: harness.url, interceptors })],
    ["gRPC-Web", (interceptors) => createGrpcWebTransport({ baseUrl: harness.url, httpVersion: "1.1", interceptors })],
  ];
  it.each(transports)("comes back with a header of %s, of a call and of an error", async (_protocol, transport) => {
    const client = createClient(RelayService, transport([]));
    const headers = { "x-request-id": "mine-2" };
    let seen: string | null = "";
    const onHeader = (fields: Headers) => {
      seen = fields.get("x-request-id");
    };
    const description = { url: `${origin}/me`, method: "GET" };
    const message = { providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call: description };
    expect((await client.call(message, { headers, onHeader })).rows[0]?.pincStatus).toBe("success");
    expect(seen).toBe("mine-2");
    const error = await client.listConnections({}, { headers }).catch((thrown) => thrown);
    expect(error.metadata.get("x-request-id")).toBe("mine-2");
  });

  it.each([
    ["empty", ""],
    ["longer than 128 characters", "a".repeat(129)],
    ["with a space", "a b"],
    ["not ASCII", "\u00e9"],
  ])("that is %s is not refused, but not used", async (_what, id) => {
    expect((await call({ "x-request-id": id }))["x-request-id"]).toMatch(UUID);
  });

  it("that came twice is not used", async () => {
    const headers = { "x-request-id": ["a", "b"] as unknown as string };
    expect((await call(headers))["x-request-id"]).toMatch(UUID);
    expect((await overHttp2({ ":path": "/healthz", ...headers }))["x-request-id"]).toMatch(UUID);
  });

  it("is the call's id where the caller has none, and stands in the log where it has", async () => {
    const before = harness.logLines.length;
    const own = await call();
    const given = await call({ "x-request-id": "mine-3" });
    const [first, second] = harness.logLines.slice(before).map((line) => JSON.parse(line));
    expect(first).toMatchObject({ msg: "call", callId: own["x-request-id"] });
    expect(first).not.toHaveProperty("requestId");
    expect(second).toMatchObject({
      msg: "call",
      callId: expect.stringMatching(UUID),
      requestId: given["x-request-id"],
    });
  });

  it("of a provider does not take the place of the relay's", async () => {
    const body = JSON.stringify({ url: `${origin}/headers?x-request-id=theirs`, method: "GET" });
    const fields = await ask("POST", `/oauth/method/sandbox/stream?${query()}`, { "x-request-id": "mine-4" }, body);
    expect(fields).toMatchObject({ "x-request-id": "mine-4", "x-provider-x-request-id": "theirs" });
  });

  it("may be read by a browser", async () => {
    const fields = await call({ origin: "https://app.test" });
    expect(fields["access-control-expose-headers"]).toBe("retry-after, x-request-id");
  });
});

describe("traceparent", () => {
  it("stands in the log line of its call, though no traces are made", async () => {
    const before = harness.logLines.length;
    await call({ traceparent: TRACEPARENT });
    await call({ traceparent: `${TRACEPARENT}-more` });
    const [first, second] = harness.logLines.slice(before).map((line) => JSON.parse(line));
    expect(first).toMatchObject({ msg: "call", traceId: TRACE_ID });
    expect(second).not.toHaveProperty("traceId");
  });
});
