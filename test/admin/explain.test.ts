import { fromJson, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CallService,
  type ExplainCallRequestSchema,
  type ExplainCallResponse,
  ExplainCallResponseSchema,
  ExplainCallResponse_Refresh as Refresh,
} from "../../gen/relay/admin/v1/call_pb.js";
import { CallRequestSchema } from "../../gen/relay/v1/relay_pb.js";
import { hashPrivateKey, signText } from "../../src/applications/application.js";
import type { Connection } from "../../src/oauth/connection.js";
import { type Caller, createCallers, type Row, type ScenarioCall } from "../support/callers.js";
import { ADMIN_TOKENS, type TestApplication } from "../support/harness.js";
import { callOf, SCENARIOS, startWorld, USER, type World } from "../support/scenarios.js";
import { bearer } from "./bearer.js";

/** Only whoever asks the provider knows these. */
const OF_THE_PROVIDER =
  /^(?:API_ERROR|PROVIDER_UNREACHABLE|PROVIDER_TIMEOUT|PROVIDER_RESPONSE_INVALID|RESPONSE_TOO_LARGE)$/;

let world: World;
let real: Caller;

beforeAll(async () => {
  world = await startWorld({ definitionsFor });
  real = createCallers(world.harness.url)[1]?.[1] as Caller;
});
afterAll(() => world.harness.close());

/** Providers that want the token elsewhere than in a header. */
function definitionsFor(origin: string): readonly object[] {
  const oauth2 = { tokenEndpoint: `${origin}/oauth/token` };
  return [
    { name: "in-query", apiOrigins: [origin], credential: { queryParameter: "access_token" }, oauth2 },
    { name: "traced", apiOrigins: [origin], passTraceContext: true },
    { name: "in-url", apiOrigins: [origin], urlPlaceholders: ["access_token", "id_token"] },
  ];
}

function client(token: string = ADMIN_TOKENS.readOnly, baseUrl = world.harness.adminUrl) {
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", ...bearer(token) });
  return createClient(CallService, transport);
}

type Explain = Omit<MessageInitShape<typeof ExplainCallRequestSchema>, "call" | "$typeName">;

/** Explains a call of the contract's JSON. */
function explain({ outerHeaders, ...call }: ScenarioCall, more: Explain = {}): Promise<ExplainCallResponse> {
  const origin = outerHeaders?.["origin"] ?? "";
  const [, callToken] = outerHeaders?.["authorization"]?.split(" ") ?? [];
  const asked = { ...call, ...(callToken && { privateKey: callToken }) };
  return client().explainCall({ call: fromJson(CallRequestSchema, asked as never), origin, ...more });
}

function callTo(to: string, outer: Partial<ScenarioCall> = {}, call: Readonly<Record<string, unknown>> = {}) {
  return callOf(world, { name: "", to, outer, call, row: {} });
}

/** What both say: an error type, or nothing when the provider is asked. */
async function verdicts(call: ScenarioCall): Promise<{ explained: unknown[]; happened: unknown[] }> {
  const { refusal } = await explain(call);
  const { errorType, statusCode, inernalError }: Row = await real(call);
  const isRefused = errorType !== undefined && !OF_THE_PROVIDER.test(String(errorType));
  return {
    explained: refusal === undefined ? [] : [refusal.errorType, refusal.statusCode, refusal.message],
    happened: isRefused ? [errorType, statusCode, inernalError] : [],
  };
}

describe("explaining a call", () => {
  it.each(SCENARIOS)("says what becomes of it: $name", async (scenario) => {
    const { explained, happened } = await verdicts(callOf(world, scenario));
    expect(explained).toEqual(happened);
  });

  it("says what becomes of callers with each kind of proof", async () => {
    const { harness } = world;
    for (const callerAuth of ["PUBLIC_KEY", "SIGNED_USER", "PRIVATE_KEY"] as const) {
      const application = await harness.createApplication({ callerAuth });
      await harness.connect(application, USER);
      const { publicKey, privateKey } = application;
      const userSignature = signatureOf(application, USER);
      for (const proof of [{}, { privateKey }, { userSignature }, { userSignature: "00" }, { privateKey: "wrong" }]) {
        const { explained, happened } = await verdicts(callTo("/me", { publicKey, ...proof }));
        expect({ callerAuth, proof, explained }).toEqual({ callerAuth, proof, explained: happened });
      }
    }
  });

  it.each([
    ["an address that is not listed", { allowedAddresses: ["192.0.2.0/24"] }, "address", "--allow-address"],
    ["a disabled application", { state: "DISABLED" as const }, undefined, "--enable"],
    ["a missing key", { callerAuth: "PRIVATE_KEY" as const }, "proof-missing", "--caller-auth"],
  ])("names the rule that refuses %s, and what to do", async (_what, options, rule, advice) => {
    const application = await world.harness.createApplication(options);
    const call = callTo("/me", { publicKey: application.publicKey });
    const { explained, happened } = await verdicts(call);
    expect(explained).toEqual(happened);
    const told = await explain(call);
    expect(told.application?.publicKey).toBe(application.publicKey);
    expect([told.caller?.allowed, told.caller?.rule]).toEqual([rule && false, rule]);
    expect(told.refusal?.advice).toContain(advice);
    expect(told.request).toBeUndefined();
  });

  it("judges a call as if it brought a call token of given terms, and gives none out", async () => {
    const application = await world.harness.createApplication({ callerAuth: "PRIVATE_KEY" });
    await world.harness.connect(application, USER);
    const call = callTo("/me", { publicKey: application.publicKey });
    const tell = async (callTokenTerms: Explain["callTokenTerms"]) => {
      const { caller, callTokenRules: rules, refusal, request } = await explain(call, { callTokenTerms } as Explain);
      return [caller?.rule, rules?.allowed, refusal?.errorType, request === undefined];
    };
    expect(await tell({})).toEqual(["call-token", undefined, undefined, false]);
    expect(await tell({ rules: [{ methods: ["GET"], paths: ["/me"] }] })).toEqual([
      "call-token",
      true,
      undefined,
      false,
    ]);
    expect(await tell({ rules: [{ paths: ["/items/**"] }] })).toEqual([
      "call-token",
      false,
      "CALL_NOT_PERMITTED",
      true,
    ]);
    expect(await tell({ providerNames: ["traced"] })).toEqual(["call-token", false, "CALL_NOT_PERMITTED", true]);
    const told = await explain(call, { callTokenTerms: {} } as Explain);
    expect(toJsonString(ExplainCallResponseSchema, told)).not.toMatch(/eyJ/);
    await expect(tell({ rules: [{ paths: ["no slash"] }] })).rejects.toThrow("call_token_terms.rules");
    await expect(tell({ providerNames: ["nobody"] })).rejects.toThrow();
  });

  it("judges the origin and the address that the call would come from", async () => {
    const application = await world.harness.createApplication({
      allowedOrigins: ["https://app.example.com"],
      allowedAddresses: ["192.0.2.0/24"],
    });
    await world.harness.connect(application, USER);
    const call = callTo("/me", { publicKey: application.publicKey });
    const place = { origin: "https://app.example.com", clientAddress: "192.0.2.7" };
    expect((await explain(call, place)).refusal).toBeUndefined();
    expect((await explain(call, { ...place, origin: "https://evil.test" })).caller?.rule).toBe("origin");
    expect((await explain(call, { ...place, clientAddress: "198.51.100.1" })).caller?.rule).toBe("address");
    expect((await explain(call, { ...place, clientAddress: "nothing" })).caller?.rule).toBe("address");
  });

  it("tells rules, provider and connection of a call that would be made", async () => {
    const told = await explain(callTo("/me"));
    expect(told).toMatchObject({
      application: { publicKey: world.application.publicKey },
      caller: { allowed: true, rule: "public-key" },
      providerName: "sandbox",
      egress: { allowed: true, rule: world.harness.sandbox.origin },
      connection: { userId: USER, providerName: "sandbox", stateReason: "" },
      refresh: Refresh.NONE,
    });
  });

  it("tells what was found before a refusal", async () => {
    const told = await explain(callTo("https://other.example.com/", { providerName: "tenant" }));
    expect(told).toMatchObject({
      caller: { allowed: true },
      providerName: "tenant",
      egress: { allowed: false, rule: "origin_not_bound" },
      connection: { originParameters: { tenant: "acme" } },
      refusal: { errorType: "URL_NOT_ALLOWED", statusCode: 403, advice: expect.stringContaining("tenant=acme") },
    });
    expect((await explain(callTo("https://evil.test/"))).egress).toMatchObject({ rule: "origin_not_listed" });
  });
});

describe("the request that is explained", () => {
  const posted = {
    method: "POST",
    payload: { a: 1.5, b: "ü" },
    headers: { "X-One": "1", Authorization: "Bearer own" },
  };

  it("is the one that is sent, but for the token", async () => {
    const call = callTo("/echo?a=1", {}, { ...posted, queryString: { q: ["x", "y"] } });
    const { request } = await explain(call);
    const { data } = (await real(call)) as unknown as { data: { headers: [string, string][]; body: string } };
    const sent = world.harness.sandbox.requests.at(-1);
    const own = new Set(["host", "content-length", "connection"]);
    const fields = data.headers.filter(([name]) => !own.has(name.toLowerCase()));
    expect(request?.headers.map(({ name, value }) => [name, value])).toEqual(
      fields.map(([name, value]) => [name, name === "authorization" ? "Bearer ***" : value]),
    );
    expect(request).toMatchObject({ method: "POST", url: world.harness.sandbox.origin + sent?.target });
    expect(Buffer.from(request?.bodyStart ?? "").toString()).toBe(data.body);
    expect(request?.bodyBytes).toBe(Buffer.byteLength(data.body));
  });

  it("shows the start of a large body", async () => {
    const { request } = await explain(callTo("/echo", {}, { method: "POST", payload: { a: "x".repeat(10_000) } }));
    expect([request?.bodyBytes, request?.bodyStart.length]).toEqual([10_008, 4096]);
  });
});

describe("explaining", () => {
  it("asks nobody, counts nothing and performs nothing", async () => {
    const application = await world.harness.createApplication({ callsPerMinute: 2, connectionCallsPerMinute: 2 });
    await world.harness.connect(application, USER);
    const call = callTo("/me", { publicKey: application.publicKey });
    const before = world.harness.sandbox.requests.length;
    for (let n = 0; n < 5; n++) expect((await explain(call)).refusal).toBeUndefined();
    expect(world.harness.sandbox.requests.length).toBe(before);
    for (let n = 0; n < 2; n++) expect(await real(call)).toMatchObject({ pincStatus: "success" });
    const { explained, happened } = await verdicts(call);
    expect(explained).toEqual(happened);
    expect(explained[0]).toBe("RATE_LIMITED");
  });

  it("opens no token", async () => {
    const { harness, application } = world;
    await harness.connect(application, "sealed");
    const key = { applicationId: application.id, userId: "sealed", providerName: "sandbox" };
    const row = await harness.store.connections.find(key);
    // The token of another row: it opens nowhere.
    const other = await harness.store.connections.find({ ...key, userId: USER });
    if (row === undefined || other === undefined) throw new Error("not connected");
    await harness.store.connections.put({ ...row, accessToken: other.accessToken }, Date.now());
    const call = callTo("/me", { userId: "sealed" });
    expect((await explain(call)).request?.url).toBe(`${harness.sandbox.origin}/me`);
    expect(await real(call)).toMatchObject({ errorType: "STORE_UNAVAILABLE" });
  });

  it("never says a token, wherever the provider wants it", async () => {
    const { harness, application, token } = world;
    for (const providerName of ["in-query", "in-url"]) {
      await harness.connect(application, USER, { providerName, idToken: "CANARY_ID" });
    }
    const answers = await Promise.all([
      explain(callTo("/me")),
      explain(callTo("/me?access_token=own", { providerName: "in-query" })),
      explain(callTo("/a/{{access_token}}?i={{id_token}}", { providerName: "in-url" })),
    ]);
    const text = answers.map((answer) => toJsonString(ExplainCallResponseSchema, answer)).join("");
    for (const secret of [token, "CANARY", application.privateKey]) expect(text).not.toContain(secret);
    expect(answers.map(({ request }) => request?.url.replace(harness.sandbox.origin, ""))).toEqual([
      "/me",
      "/me?access_token=***",
      "/a/***?i=***",
    ]);
  });

  it("explains a request that is passed through: any method, no placeholder, and the path as it is written or not at all", async () => {
    await world.harness.connect(world.application, USER, { providerName: "in-url" });
    const passed = (path: string, call: Readonly<Record<string, unknown>> = {}) =>
      explain(callTo(path, { providerName: "in-url" }, call), { passedThrough: true });
    const { request } = await passed("/a/%7e?b='{{access_token}}'", { method: "X-PROBE" });
    expect(request?.method).toBe("X-PROBE");
    expect(request?.url.replace(world.harness.sandbox.origin, "")).toBe("/a/%7e?b='{{access_token}}'");
    expect((await passed("/a/../b")).refusal).toMatchObject({ errorType: "URL_NOT_ALLOWED" });
    expect((await passed("/a", { method: "TRACE" })).refusal).toMatchObject({ errorType: "CALL_FORMAT_ERROR" });
    expect((await passed("/a", { payload: { a: 1 } })).refusal).toMatchObject({
      errorType: "CALL_FORMAT_ERROR",
      message: expect.stringContaining("payload"),
    });
  });

  it("says that a provider would hear of the call's trace, but not of which", async () => {
    await world.harness.connect(world.application, USER, { providerName: "traced" });
    const fieldsOf = async (call: ScenarioCall) =>
      ((await explain(call)).request?.headers ?? []).filter(({ name }) => name === "traceparent");
    const value = `00-${"*".repeat(32)}-${"*".repeat(16)}-00`;
    expect(await fieldsOf(callTo("/me", { providerName: "traced" }))).toMatchObject([{ value }]);
    expect(await fieldsOf(callTo("/me"))).toEqual([]);
  });

  it("is for every role; performing is for operators", async () => {
    const call = fromJson(CallRequestSchema, callTo("/me") as never);
    const refused = await client(ADMIN_TOKENS.readOnly)
      .performCall({ call })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: Code.PermissionDenied });
    const { row } = await client(ADMIN_TOKENS.operator).performCall({ call });
    expect(row).toMatchObject({ pincStatus: "success", statusCode: 200, contentType: "application/json" });
  });
});

describe("explaining refreshes", () => {
  it("says whether a token is refreshed, beside the call or before it", async () => {
    const { harness, application } = world;
    await harness.putClient(application, "in-query");
    const now = Date.now();
    const told = [];
    for (const [userId, obtainedAt, expiresAt] of [
      ["fresh", now, now + 3_600_000],
      ["due", now - 3_600_000, now + 30_000],
      ["ended", now - 3_600_000, now - 1000],
    ] as const) {
      await harness.connect(application, userId, { providerName: "in-query", refreshToken: "CANARY_RT" });
      const row = await harness.store.connections.find({
        applicationId: application.id,
        userId,
        providerName: "in-query",
      });
      await harness.store.connections.put({ ...(row as Connection), obtainedAt, expiresAt }, now);
      told.push(await explain(callTo("/me", { userId, providerName: "in-query" })));
    }
    expect(told.map(({ refresh, refusal }) => [refresh, refusal])).toEqual([
      [Refresh.NONE, undefined],
      [Refresh.BESIDE, undefined],
      [Refresh.BEFORE, undefined],
    ]);
    expect(told.map(({ request }) => request === undefined)).toEqual([false, false, false]);
  });

  it("says that the provider has just refused the OAuth client", async () => {
    const { harness } = world;
    const application = await harness.createApplication();
    const refreshToken = harness.sandbox.issueToken().refresh_token as string;
    await harness.connect(application, USER, { providerName: "in-query", refreshToken, expiresAt: 1 });
    await harness.putClient(application, "in-query", { client_secret: "wrong" });
    const call = callTo("/me", { publicKey: application.publicKey, providerName: "in-query" });
    expect((await explain(call)).refusal).toBeUndefined();
    expect(await real(call)).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    const { explained, happened } = await verdicts(call);
    expect(explained).toEqual(happened);
  });

  it("says that the provider has refused the OAuth client for another user, to another process", async () => {
    const { harness } = world;
    await harness.startPeer();
    const application = await harness.createApplication();
    await harness.putClient(application, "in-query", { client_secret: "wrong" });
    const [refused, waiting] = await Promise.all(
      ["refused", "waiting"].map(async (userId) => {
        const refreshToken = harness.sandbox.issueToken().refresh_token as string;
        await harness.connect(application, userId, { providerName: "in-query", refreshToken, expiresAt: 1 });
        return callTo("/me", { publicKey: application.publicKey, userId, providerName: "in-query" });
      }),
    );
    expect(await real(refused as ScenarioCall)).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    const peer = client(ADMIN_TOKENS.readOnly, harness.peerAdminUrls[0]);
    const call = fromJson(CallRequestSchema, waiting as never);
    expect((await peer.explainCall({ call })).refusal).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
  });

  it("says that none can be made", async () => {
    const told = await explain(callTo("/me", { userId: "refreshable" }));
    expect(told).toMatchObject({
      refresh: Refresh.BEFORE,
      connection: { hasRefreshToken: true },
      refusal: { errorType: "REFRESH_UNAVAILABLE", advice: expect.stringContaining("relay client put") },
    });
    expect(told.request).toBeUndefined();
  });
});

describe("performing a call for an operator", () => {
  const perform = (call: ScenarioCall) =>
    client(ADMIN_TOKENS.operator).performCall({ call: fromJson(CallRequestSchema, call as never) });

  it("gives an application no proof that its caller does not have", async () => {
    const application = await world.harness.createApplication({ callerAuth: "PRIVATE_KEY" });
    await world.harness.connect(application, USER);
    const call = callTo("/me", { publicKey: application.publicKey });
    expect((await perform(call)).row).toMatchObject({ errorType: "CALLER_NOT_ALLOWED", statusCode: 403 });
    const proven = await perform({ ...call, privateKey: application.privateKey });
    expect(proven.row).toMatchObject({ pincStatus: "success" });
  });

  it("is written down before, with who did it for whom; explaining is not", async () => {
    const { publicKey } = await world.harness.createApplication();
    const call = callTo("/me", { publicKey, userId: "a/b" });
    await explain(call);
    await perform(call);
    await client(ADMIN_TOKENS.readOnly)
      .performCall({ call: fromJson(CallRequestSchema, call as never) })
      .catch(() => {});
    const records = await world.harness.store.audit.list({ publicKey, beforeId: undefined, limit: 10 });
    const resource = `applications/${publicKey}/users/a%2Fb/connections/sandbox`;
    const method = "relay.admin.v1.CallService.PerformCall";
    expect(records).toMatchObject([
      { actor: "bob", method, resource, outcome: "REFUSED" },
      { actor: "alice", method, resource, outcome: "DONE" },
    ]);
  });

  it("gives the row of what is not well formed, and a log line of its own surface", async () => {
    expect((await perform(callTo(""))).row).toMatchObject({
      errorType: "CALL_FORMAT_ERROR",
      inernalError: "url is missing.",
    });
    expect((await client(ADMIN_TOKENS.operator).performCall({})).row).toMatchObject({ errorType: "CALL_FORMAT_ERROR" });
    const { row } = await perform(callTo("/me"));
    const line = world.harness.logLines.map((text) => JSON.parse(text)).find(({ callId }) => callId === row?.callId);
    expect(line).toMatchObject({ surface: "admin", status: 200 });
  });
});

function signatureOf({ privateKey }: TestApplication, userId: string): string {
  return signText(hashPrivateKey(privateKey), userId).toString("hex");
}
