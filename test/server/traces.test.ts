import { SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createCallers, postRest, type Row } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createStreamCallers } from "../support/stream-callers.js";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";
const TRACED = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, tracestate: "acme=1" };

const exporter = new InMemorySpanExporter();
let traced: Bed;
let untraced: Bed;

/** A relay with a user, who is connected at a provider that gets traces and at one that does not. */
interface Bed {
  readonly harness: Harness;
  readonly application: TestApplication;
  readonly token: string;
}

async function startBed(env: Readonly<Record<string, string>>): Promise<Bed> {
  const definitionsFor = (origin: string) => [
    { name: "own", apiOrigins: [origin], passTraceContext: true },
    { name: "away", apiOrigins: ["http://127.0.0.1:1"] },
    { name: "in-url", apiOrigins: [origin], urlPlaceholders: ["access_token"] },
  ];
  const harness = await startHarness({ env, definitionsFor });
  const application = await harness.createApplication();
  const token = await harness.connect(application, "ada");
  for (const providerName of ["own", "away", "in-url"]) {
    await harness.connect(application, "ada", { providerName, accessToken: token });
  }
  return { harness, application, token };
}

beforeAll(async () => {
  trace.setGlobalTracerProvider(new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  traced = await startBed({ RELAY_TRACES: "on" });
  untraced = await startBed({});
});

beforeEach(() => exporter.reset());

afterAll(async () => {
  await traced.harness.close();
  await untraced.harness.close();
  trace.disable();
});

function callOf({ harness, application }: Bed, providerName: string, path: string, headers: object = {}) {
  const url = path.startsWith("/") ? harness.sandbox.origin + path : path;
  const call = { url, method: "GET", headers };
  return { providerName, userId: "ada", publicKey: application.publicKey, call };
}

async function call(bed: Bed, providerName: string, path: string, outerHeaders = {}, headers = {}): Promise<Row> {
  const { text } = await postRest(bed.harness.url, { ...callOf(bed, providerName, path, headers), outerHeaders });
  return JSON.parse(text).rows[0];
}

/** Finished spans by name. */
function spanOf(name: string): ReadableSpan {
  const found = exporter.getFinishedSpans().filter((span) => span.name === name);
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0] as ReadableSpan;
}

const CALL = "relay.v1.RelayService/Call";
const lastLine = ({ harness }: Bed) => JSON.parse(harness.logLines.at(-1) ?? "{}");

describe("RELAY_TRACES=on", () => {
  it("goes on with the caller's trace: a span for the call, and in it one for the token and one for the provider", async () => {
    const row = await call(traced, "sandbox", "/items?count=2", TRACED);
    const whole = spanOf(CALL);
    expect(whole.spanContext().traceId).toBe(TRACE_ID);
    expect(whole.parentSpanContext).toMatchObject({ traceId: TRACE_ID, spanId: PARENT_ID, isRemote: true });
    expect(whole.kind).toBe(SpanKind.SERVER);
    expect(whole.attributes).toEqual({
      "rpc.method": CALL,
      "http.request.method": "POST",
      "relay.call_id": row["callId"],
      "relay.surface": "rest",
      "relay.provider": "sandbox",
      "relay.application_id": traced.application.id,
      "relay.status_code": 200,
    });
    for (const name of ["token", "GET"]) expect(spanOf(name).parentSpanContext).toEqual(whole.spanContext());
    const { origin, port } = new URL(traced.harness.sandbox.origin);
    expect(spanOf("GET").kind).toBe(SpanKind.CLIENT);
    expect(spanOf("GET").attributes).toEqual({
      "http.request.method": "GET",
      "http.response.status_code": 200,
      "url.scheme": "http",
      "url.full": `${origin}/items`,
      "server.address": "127.0.0.1",
      "server.port": Number(port),
    });
    expect(lastLine(traced)).toMatchObject({ msg: "call", traceId: TRACE_ID });
  });

  it("begins a trace where the caller has none, and logs its id", async () => {
    await call(traced, "sandbox", "/me");
    const { traceId } = spanOf(CALL).spanContext();
    expect(spanOf(CALL).parentSpanContext).toBeUndefined();
    expect(lastLine(traced)).toMatchObject({ traceId });
  });

  it("tells protocols and streams apart", async () => {
    const seen = async (perform: () => Promise<unknown>) => {
      exporter.reset();
      await perform();
      const span = exporter.getFinishedSpans().at(-1) as ReadableSpan;
      return [span.name, span.attributes["relay.surface"], span.attributes["rpc.system.name"]];
    };
    const found: unknown[] = [];
    const described = callOf(traced, "sandbox", "/me");
    for (const [, caller] of createCallers(traced.harness.url)) found.push(await seen(() => caller(described)));
    for (const [, caller] of createStreamCallers(traced.harness.url)) found.push(await seen(() => caller(described)));
    const stream = "relay.v1.RelayService/CallStream";
    expect(found).toEqual([
      [CALL, "rest", undefined],
      [CALL, "connect", "connectrpc"],
      [CALL, "connect", "connectrpc"],
      [CALL, "grpc", "grpc"],
      [CALL, "grpc-web", "grpc"],
      [stream, "stream", undefined],
      [stream, "stream", undefined],
      [stream, "connect", "connectrpc"],
      [stream, "connect", "connectrpc"],
      [stream, "grpc", "grpc"],
      [stream, "grpc-web", "grpc"],
    ]);
  });

  it("says of failures whose they are", async () => {
    await call(traced, "sandbox", "/status/404");
    expect(spanOf("GET")).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "error.type": "404", "http.response.status_code": 404 },
    });
    expect(spanOf(CALL)).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { "error.type": "API_ERROR", "relay.status_code": 404 },
    });
    exporter.reset();
    await call(traced, "away", "http://127.0.0.1:1/");
    expect(spanOf("GET")).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { "error.type": "PROVIDER_UNREACHABLE" },
    });
    expect(spanOf(CALL).status.code).toBe(SpanStatusCode.ERROR);
    exporter.reset();
    await call(traced, "nobody", "/me");
    expect(exporter.getFinishedSpans().map(({ name, attributes }) => [name, attributes["error.type"]])).toEqual([
      [CALL, "INVALID_PROVIDER"],
    ]);
  });

  it("shows that a call was sent again with another token", async () => {
    const { harness, application } = traced;
    await harness.putClient(application);
    const { access_token: accessToken, refresh_token: refreshToken } = harness.sandbox.issueToken();
    await harness.connect(application, "bob", { accessToken, ...(refreshToken && { refreshToken }) });
    harness.sandbox.revoke(accessToken);
    const { text } = await postRest(harness.url, { ...callOf(traced, "sandbox", "/me"), userId: "bob" });
    expect(text).toContain('"pincStatus":"success"');
    const spans = exporter.getFinishedSpans();
    expect(spans.map(({ name }) => name)).toEqual(["token", "GET", "token", "GET", CALL]);
    expect(spans.map(({ attributes }) => attributes["http.request.resend_count"])).toEqual([
      ...[undefined, undefined, undefined],
      ...[1, undefined],
    ]);
  });

  it("tells no query value and no token, wherever it stands", async () => {
    const path = "/echo/{{access_token}}?key=CANARY_QUERY&access_token={{access_token}}";
    expect(await call(traced, "in-url", path)).toMatchObject({ statusCode: 200 });
    const told = JSON.stringify(
      exporter.getFinishedSpans().map(({ name, attributes, events, status }) => [name, attributes, events, status]),
    );
    expect(told).toContain("/echo/");
    expect(told).not.toContain("CANARY");
    expect(told).not.toContain(traced.token);
  });
});

/** Fields that the provider was sent, lower-case. */
async function sentFields(bed: Bed, providerName: string, outerHeaders: object, headers = {}) {
  const row = await call(bed, providerName, "/echo-headers", outerHeaders, headers);
  const { headers: sent } = row["data"] as { headers: Array<[string, string]> };
  return Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value]));
}

describe("a provider", () => {
  it("goes on with the trace where its definition says so, from the span of its own request", async () => {
    const sent = await sentFields(traced, "own", TRACED);
    expect(sent["traceparent"]).toBe(`00-${TRACE_ID}-${spanOf("GET").spanContext().spanId}-01`);
    expect(sent["tracestate"]).toBe("acme=1");
  });

  it("goes on with a trace that is not sampled from the call, in which then no span is begun", async () => {
    const sent = await sentFields(traced, "own", { ...TRACED, traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` });
    expect(sent["traceparent"]).toMatch(new RegExp(`^00-${TRACE_ID}-(?!${PARENT_ID})[0-9a-f]{16}-00$`));
    expect(sent["tracestate"]).toBe("acme=1");
    expect(exporter.getFinishedSpans()).toEqual([]);
    expect(lastLine(traced)).toMatchObject({ traceId: TRACE_ID });
  });

  it("gets the caller's own trace where the relay makes no spans", async () => {
    expect(await sentFields(untraced, "own", TRACED)).toMatchObject(TRACED);
    expect(exporter.getFinishedSpans()).toEqual([]);
    const malformed = { ...TRACED, traceparent: TRACED.traceparent.toUpperCase() };
    expect(await sentFields(untraced, "own", malformed)).not.toHaveProperty("traceparent");
  });

  it("hears of no trace otherwise", async () => {
    for (const bed of [traced, untraced]) {
      const sent = await sentFields(bed, "sandbox", TRACED);
      expect(sent).not.toHaveProperty("traceparent");
      expect(sent).not.toHaveProperty("tracestate");
    }
  });

  it("gets what the call's own headers say, and nothing beside it", async () => {
    const own = `00-${"1".repeat(32)}-${"2".repeat(16)}-00`;
    for (const bed of [traced, untraced]) {
      for (const providerName of ["own", "sandbox"]) {
        const sent = await sentFields(bed, providerName, TRACED, { Traceparent: own });
        expect(sent["traceparent"]).toBe(own);
        expect(sent).not.toHaveProperty("tracestate");
      }
    }
  });
});
