import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { type Client, Code, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../../support/raw-provider.js";

let provider: RawProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    if (!head.includes("/silence")) socket.write(answer("{}", "Content-Type: application/json"));
  });
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "ada", { providerName: "raw" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

/** Performs a call that the signal, or the timeout, ends. */
type CancellableCall = (path: string, options: { signal?: AbortSignal; timeoutMs?: number }) => Promise<unknown>;

const TRANSPORTS: ReadonlyArray<readonly [protocol: string, transport: (baseUrl: string) => Transport]> = [
  ["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
];

function typedCall(transport: (baseUrl: string) => Transport): CancellableCall {
  return (path, options) => {
    const client: Client<typeof RelayService> = createClient(RelayService, transport(harness.url));
    const { publicKey } = application;
    const call = { url: provider.origin + path, method: "GET" };
    return client.call({ providerName: "raw", userId: "ada", publicKey, call }, options);
  };
}

const restTarget = () => `/oauth/method/raw/call?user_id=ada&public_key=${application.publicKey}`;
const restBody = (path: string) => JSON.stringify({ url: provider.origin + path, method: "GET" });

/** The JSON route: what a caller ends is its connection. */
const restCall: CancellableCall = async (path, { signal = null }) => {
  const options = { method: "POST", body: restBody(path), signal } as const;
  return (await request(harness.url + restTarget(), options)).body.json();
};

/** The JSON route over HTTP/2: what a caller ends is its stream. */
const restCallOverHttp2: CancellableCall = async (path, { signal }) => {
  const session = connect(harness.url);
  const stream = session.request({ ":method": "POST", ":path": restTarget() }, signal === undefined ? {} : { signal });
  try {
    stream.end(restBody(path));
    return JSON.parse(await text(stream));
  } finally {
    session.close();
  }
};

const callLines = () => harness.logLines.filter((line) => line.includes('"msg":"call"'));

/** The provider has the call, and loses its connection because the caller goes, which is not counted as its failure. */
async function expectAborted(perform: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const before = provider.requests.length;
  const linesBefore = callLines().length;
  const controller = new AbortController();
  const ended = perform(controller.signal).catch((error: unknown) => error);
  await provider.seen(before + 1);
  expect(provider.requests[before]?.head).toMatch(/^GET \/silence /);
  controller.abort();
  expect(await ended).toBeInstanceOf(Error);
  await provider.letGo(before);
  await expect.poll(() => callLines().length).toBe(linesBefore + 1);
  expect(JSON.parse(callLines().at(-1) ?? "")).toMatchObject({ status: 499, errorType: "PROVIDER_TIMEOUT" });
  expect(harness.logLines.join("")).not.toContain('"fault"');
}

describe("a caller that goes away", () => {
  it("ends the call at the provider when its own deadline has passed", async () => {
    const before = provider.requests.length;
    const calls = TRANSPORTS.map(([, transport]) =>
      typedCall(transport)("/silence", { timeoutMs: 1_000 }).catch((error: unknown) => error),
    );
    await provider.seen(before + TRANSPORTS.length);
    for (const ended of await Promise.all(calls)) expect(ended).toMatchObject({ code: Code.DeadlineExceeded });
    for (const at of TRANSPORTS.keys()) await provider.letGo(before + at);
  });

  it.each([
    ["the JSON route", restCall] as const,
    ...TRANSPORTS.map(([protocol, transport]) => [protocol, typedCall(transport)] as const),
    ["the JSON route over HTTP/2", restCallOverHttp2] as const,
  ])("ends the call at the provider over %s, and only that", async (_protocol, call) => {
    await expectAborted((signal) => call("/silence", { signal }));
    expect(await call("/answer", {})).toMatchObject({ rows: [{ pincStatus: "success" }] });
    await expectAborted((signal) => call("/silence", { signal }));
  });
});
