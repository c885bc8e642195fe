import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Connection,
  DeleteConnectionResponse_Revocation as Revocation,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { type AdminClients, createAdminClients } from "../admin/admin-bed.js";
import { failure } from "../admin/failure.js";
import { type Caller, createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";

const KEY = "CANARY_key/+=_of_ada";
const SECOND = "CANARY_second_of_ada";
const PASSWORD = "CANARY pass:wörd";
let provider: RecordingProvider;
let harness: Harness;
let application: TestApplication;
let refusing = false;

/** One of each shape that keys are sent in. */
function definitionsFor(origin: string): readonly object[] {
  const of = (name: string, members: object) => ({ name, apiOrigins: [origin], ...members });
  const region = { name: "region", choices: [{ value: "eu", label: "Europe" }, { value: "us" }], defaultValue: "us" };
  return [
    of("key-bearer", { kind: "api_key", connectionValues: [region] }),
    of("key-header", { kind: "api_key", credential: { header: "X-Api-Key" } }),
    of("key-query", { kind: "api_key", credential: { queryParameter: "key" } }),
    of("key-token", { kind: "api_key", credential: { scheme: "Token", value: "token={api_key}" } }),
    of("key-two", {
      kind: "api_key",
      connectionValues: [
        { name: "api_key", label: "API key", help: "Settings, API.", pattern: "[\\w\\/+=]{10,40}", secret: true },
        { name: "app_key", label: "Application key", secret: true, optional: true },
      ],
      credential: { header: "dd-api-key" },
      furtherCredentials: [{ header: "dd-application-key", value: "{app_key}" }],
    }),
    of("basic", { kind: "basic" }),
    of("basic-key", { kind: "api_key", credential: { scheme: "Basic", value: "{api_key}:X" } }),
    of("basic-email", {
      kind: "basic",
      connectionValues: [{ name: "email" }, { name: "token", secret: true }],
      credential: { scheme: "Basic", value: "{email}/token:{token}" },
    }),
    of("basic-raw", { kind: "api_key", credential: { scheme: "Basic" } }),
  ];
}

beforeAll(async () => {
  provider = await startRecordingProvider((request) => {
    if (!refusing) return { body: JSON.stringify(request) };
    return { statusCode: 401, headers: { "www-authenticate": 'Basic realm="x"' }, body: '{"error":"bad key"}' };
  });
  harness = await startHarness({ providers: definitionsFor(provider.origin) });
  application = await harness.createApplication();
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

const base64 = (text: string) => Buffer.from(text).toString("base64");
const last = () => provider.requests.at(-1) as (typeof provider.requests)[number];
const keyOf = (providerName: string, userId: string) => ({ publicKey: application.publicKey, userId, providerName });

describe.each([
  ["connect", "REST"],
  ["grpc", "gRPC"],
] as const)("a connection without tokens, put over %s and called over %s", (protocol, surface) => {
  let connections: AdminClients["connections"];
  let call: Caller;
  beforeAll(() => {
    connections = createAdminClients(harness, protocol).connections;
    call = createCallers(harness.url).find(([name]) => name === surface)?.[1] as Caller;
  });
  const callOf = (key: ReturnType<typeof keyOf>, headers: object = {}, path = "/v1/me?key=CALLER") =>
    call({ ...key, call: { url: `${provider.origin}${path}`, method: "GET", headers } });

  it.each([
    ["key-bearer", { api_key: KEY }, { authorization: `Bearer ${KEY}` }],
    ["key-header", { api_key: KEY }, { "x-api-key": KEY }],
    ["key-token", { api_key: KEY }, { authorization: `Token token=${KEY}` }],
    ["key-two", { api_key: KEY, app_key: SECOND }, { "dd-api-key": KEY, "dd-application-key": SECOND }],
    ["key-two", { api_key: KEY }, { "dd-api-key": KEY }],
    ["basic", { username: "ada", password: PASSWORD }, { authorization: `Basic ${base64(`ada:${PASSWORD}`)}` }],
    ["basic-key", { api_key: KEY }, { authorization: `Basic ${base64(`${KEY}:X`)}` }],
    ["basic-email", { email: "a@b.c", token: KEY }, { authorization: `Basic ${base64(`a@b.c/token:${KEY}`)}` }],
    ["basic-raw", { api_key: KEY }, { authorization: `Basic ${KEY}` }],
  ])(
    "sends the key of %s as its definition says, and nothing of the caller's in its place",
    async (name, values, expected) => {
      const key = keyOf(name, `ada-${protocol}`);
      const { username, email, ...secrets } = values as Record<string, string>;
      const originParameters = { ...(username && { username }), ...(email && { email }) };
      const put = await connections.putConnection({ ...key, originParameters, secrets });
      expect(put).toMatchObject({ hasRefreshToken: false, stateReason: "" });
      expect(put.expireTime).toBeUndefined();
      const placed = [...Object.keys(expected), ...(name === "key-two" ? ["dd-application-key"] : [])].map((header) => [
        header,
        "CALLER",
      ]);
      const row = await callOf(key, { ...Object.fromEntries(placed), Authorization: "CALLER" });
      expect(row).toMatchObject({ statusCode: 200, pincStatus: "success" });
      expect(last().headers).toMatchObject(expected);
      expect(JSON.stringify(last().headers)).not.toContain("CALLER");
      // What the provider sends back of it is masked.
      expect(JSON.stringify(row)).not.toContain("CANARY");
      expect(JSON.stringify(row)).not.toContain(base64(PASSWORD).slice(4, 16));
    },
  );

  it("sends a key in the query once, and none of the caller's", async () => {
    const key = keyOf("key-query", `ada-${protocol}`);
    await connections.putConnection({ ...key, secrets: { api_key: KEY } });
    expect(await callOf(key)).toMatchObject({ statusCode: 200 });
    expect(last().target).toBe(`/v1/me?key=${encodeURIComponent(KEY)}`);
    expect(last().headers.authorization).toBeUndefined();
  });

  it("shows what is no secret, takes a default, and ends without asking the provider", async () => {
    const key = keyOf("key-bearer", `eve-${protocol}`);
    await connections.putConnection({ ...key, secrets: { api_key: KEY } });
    const shown = await connections.getConnection(key);
    expect(shown.originParameters).toEqual({ region: "us" });
    expect(JSON.stringify(Object.values(shown), printed)).not.toContain("CANARY");
    const sent = provider.requests.length;
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.NOT_SUPPORTED });
    expect(provider.requests.length).toBe(sent);
    expect(await callOf(key)).toMatchObject({ errorType: "INVALID_OAUTHID" });
  });

  it("gives the caller the provider's own 401, after one request", async () => {
    const key = keyOf("basic", `bob-${protocol}`);
    await connections.putConnection({ ...key, originParameters: { username: "bob" }, secrets: { password: KEY } });
    const sent = provider.requests.length;
    refusing = true;
    const row = await callOf(key);
    refusing = false;
    expect(row).toMatchObject({ statusCode: 401, errorType: "API_ERROR", data: { error: "bad key" } });
    expect(provider.requests.length).toBe(sent + 1);
    expect((await connections.getConnection(key)).stateReason).toBe("");
    expect(await callOf(key)).toMatchObject({ statusCode: 200 });
  });

  it.each([
    ["key-bearer", { secrets: {} }, "secrets.api_key", "is missing"],
    ["key-bearer", { secrets: { api_key: "" } }, "secrets.api_key", "is missing"],
    ["key-bearer", { secrets: { api_key: "CANARY\r\nx-evil: 1" } }, "secrets.api_key", "line breaks"],
    ["key-bearer", { secrets: { api_key: "CANARY-key\u0000" } }, "secrets.api_key", "control characters"],
    ["key-bearer", { secrets: { api_key: "CANARY1" } }, "secrets.api_key", "at least 8"],
    ["key-bearer", { secrets: { api_key: " CANARY-key" } }, "secrets.api_key", "space"],
    ["key-bearer", { secrets: { api_key: "CANARY\u2028x" } }, "secrets.api_key", "line breaks"],
    ["key-bearer", { secrets: { api_key: "CANАRY-key" } }, "secrets.api_key", "printable ASCII"],
    ["key-bearer", { secrets: { api_key: "CANARY".repeat(11_000) } }, "secrets.api_key", "at most 16384"],
    ["key-bearer", { secrets: { __proto__x: "CANARY", api_key: KEY } }, "secrets.__proto__x", "takes api_key"],
    ["key-bearer", { tokenResponse: '{"access_token":"CANARY"}' }, "token_response", "send secrets"],
    [
      "key-bearer",
      { originParameters: { region: "CANARY" }, secrets: { api_key: KEY } },
      "origin_parameters.region",
      "one of",
    ],
    [
      "key-bearer",
      { originParameters: { api_key: "CANARY" }, secrets: { api_key: KEY } },
      "origin_parameters.api_key",
      "takes region",
    ],
    ["key-two", { secrets: { api_key: "CANARY short!" } }, "secrets.api_key", "must match"],
    ["basic", { secrets: { password: KEY } }, "origin_parameters.username", "is missing"],
    [
      "basic",
      { originParameters: { username: "a\nb" }, secrets: { password: KEY } },
      "origin_parameters.username",
      "line",
    ],
    ["sandbox", { tokenResponse: '{"access_token":"a"}', secrets: { a: "CANARY" } }, "secrets", "send token_response"],
  ])("refuses at %s %o, names the field, quotes nothing and stores nothing", async (name, given, field, problem) => {
    const key = keyOf(name, `mallory-${protocol}`);
    const told = await failure(connections.putConnection({ ...key, ...given }));
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    expect(told.message).not.toContain("CANARY");
    expect(await failure(connections.getConnection(key))).toMatchObject({ code: "NotFound" });
  });

  it("never expands what stands in a value", async () => {
    const key = keyOf("basic-email", `tmpl-${protocol}`);
    await connections.putConnection({
      ...key,
      originParameters: { email: "{token}" },
      secrets: { token: "{email}{token}" },
    });
    await callOf(key);
    expect(last().headers.authorization).toBe(`Basic ${base64("{token}/token:{email}{token}")}`);
  });
});

describe("a connection of another kind than the definition has now", () => {
  it("is of no use until the user connects again, and its secret stays unopened", async () => {
    await harness.connect(application, "old", { providerName: "key-bearer" });
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const sent = provider.requests.length;
    const row = await call({ ...keyOf("key-bearer", "old"), call: { url: `${provider.origin}/x`, method: "GET" } });
    expect(row).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(provider.requests.length).toBe(sent);
  });
});

describe("explaining a call with a key", () => {
  it("masks each of them, and shows where they stand", async () => {
    const clients = createAdminClients(harness);
    const key = keyOf("key-two", "shown");
    await clients.connections.putConnection({ ...key, secrets: { api_key: KEY, app_key: SECOND } });
    const call = { url: `${provider.origin}/x`, method: "GET" };
    const { request } = await clients.calls.explainCall({ call: { ...key, call } });
    const fields = Object.fromEntries(request?.headers.map(({ name, value }) => [name, value]) ?? []);
    expect(fields).toMatchObject({ "dd-api-key": "***", "dd-application-key": "***" });
  });

  it("masks what Basic has of a user name, and a key in the query, and opens neither", async () => {
    const { connections, calls } = createAdminClients(harness);
    const explained = async (name: string, content: object) => {
      const key = keyOf(name, "shown");
      await connections.putConnection({ ...key, ...content });
      const answer = await calls.explainCall({
        call: { ...key, call: { url: `${provider.origin}/x?a=1`, method: "GET" } },
      });
      expect(JSON.stringify(answer, printed)).not.toContain("CANARY");
      return answer.request;
    };
    const sent = provider.requests.length;
    const basic = await explained("basic", { originParameters: { username: "ada" }, secrets: { password: PASSWORD } });
    expect(basic?.headers.find(({ name }) => name === "authorization")?.value).toBe("Basic ***");
    const query = await explained("key-query", { secrets: { api_key: KEY } });
    expect(query?.url).toBe(`${provider.origin}/x?a=1&key=***`);
    expect(provider.requests.length).toBe(sent);
  });
});

describe("what was logged of all this", () => {
  it("has none of the secrets", () => {
    const text = harness.logLines.join("\n");
    expect(text).not.toContain("CANARY");
    expect(text).not.toContain(base64(PASSWORD));
  });
});

function printed(_: string, value: unknown) {
  return typeof value === "bigint" ? String(value) : (value as Connection);
}
