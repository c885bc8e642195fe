import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { obtainedAtOf, responseFromSecrets } from "../../src/oauth/credentials.js";
import { newConnectionFrom } from "../../src/oauth/store-answer.js";
import type { ConnectionKind } from "../../src/providers/provider.js";
import { createAdminClients } from "../admin/admin-bed.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordedAnswer, type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";

const KEY = "CANARY_key_of_before";
let harness: Harness;
let provider: RecordingProvider;
let application: TestApplication;
let answer: () => Promise<RecordedAnswer>;

beforeAll(async () => {
  answer = async () => ({ body: "{}" });
  provider = await startRecordingProvider(() => answer());
  const { origin } = provider;
  const oauth2 = { tokenEndpoint: `${origin}/token` };
  harness = await startHarness({
    providers: [
      {
        name: "renamed",
        aliases: ["before"],
        kind: "api_key",
        apiOrigins: [origin],
        connectionValues: [{ name: "token", secret: true }],
      },
      {
        ...{ name: "second", kind: "api_key", apiOrigins: [origin] },
        connectionValues: [
          { name: "api_key", secret: true },
          { name: "app_key", secret: true },
        ],
        furtherCredentials: [{ header: "x-app-key", value: "{app_key}" }],
      },
      { name: "named", kind: "basic", apiOrigins: [origin] },
      {
        ...{ name: "machine", kind: "client_credentials", apiOrigins: [origin] },
        connectionValues: [{ name: "passphrase", secret: true }],
        oauth2: { ...oauth2, tokenParameters: { passphrase: "{passphrase}" } },
      },
      {
        ...{
          name: "tenants",
          apiOrigins: ["https://{tenant}.tenants.example.com", "https://{shop}.shops.example.com"],
        },
        connectionValues: [{ name: "tenant" }, { name: "shop", optional: true }],
        oauth2,
      },
      {
        ...{ name: "signed", kind: "jwt_bearer", apiOrigins: [origin] },
        oauth2: { ...oauth2, assertion: { algorithm: "ES256" } },
      },
      {
        ...{
          name: "regions",
          apiOrigins: [origin],
          connectionValues: [{ name: "region", choices: [{ value: "eu" }] }],
        },
        oauth2: { tokenEndpoint: "https://{region}.auth.example.com/token" },
      },
    ],
    upstream: {
      resolve: async () => {
        throw new Error("there is no name service in a test");
      },
    },
  });
  application = await harness.createApplication();
  await harness.putClient(application, "tenants");
  await harness.putClient(application, "regions");
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

/** As a relay stored it under the definition of before. */
async function store(providerName: string, kind: ConnectionKind, secrets: Record<string, string>, userId: string) {
  const connection = newConnectionFrom(harness.sealer, {
    id: randomUUID(),
    key: { applicationId: application.id, userId, providerName },
    response: responseFromSecrets(kind, secrets),
    defaultExpiresInS: undefined,
    originParameters: kind === "client_credentials" ? { client_id: "c" } : {},
    obtainedAt: obtainedAtOf(kind, Date.now()),
  });
  await harness.store.connections.put(connection, Date.now());
}

const callOf = (providerName: string, userId: string, url = `${provider.origin}/v1`) => ({
  ...{ publicKey: application.publicKey, userId, providerName },
  call: { url, method: "GET" },
});

describe.each(["REST", "gRPC"])("a connection that is older than the definition, called over %s", (surface) => {
  const call = (...args: Parameters<typeof callOf>) => {
    const [, caller] = createCallers(harness.url).find(([name]) => name === surface) ?? [];
    if (caller === undefined) throw new Error("no such caller");
    return caller(callOf(...args));
  };

  it.each([
    ["renamed", "api_key", { api_key: KEY }],
    ["second", "api_key", { api_key: KEY }],
    ["named", "basic", { password: KEY }],
    ["machine", "client_credentials", { client_secret: KEY }],
    ["signed", "jwt_bearer", { signing_key: "0123456789abcdef".repeat(4) }],
  ] as const)(
    "of %s sends nothing without what it asks for by now: the user connects again",
    async (name, kind, secrets) => {
      const userId = `old-${surface}`;
      await store(name, kind, secrets, userId);
      const sent = provider.requests.length;
      const row = await call(name, userId);
      expect(row).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED", statusCode: 401 });
      expect(row["inernalError"]).toContain("must connect again");
      expect(provider.requests.length).toBe(sent);
    },
  );

  it("lacks the value that makes the host, and only the user can say it", async () => {
    const userId = `host-${surface}`;
    await harness.connect(application, userId, { providerName: "tenants" });
    const row = await call("tenants", userId, "https://acme.tenants.example.com/x");
    expect(row).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED", statusCode: 401 });
    const explained = await createAdminClients(harness).calls.explainCall({
      call: callOf("tenants", userId, "https://acme.tenants.example.com/x"),
    });
    expect(explained).toMatchObject({
      egress: { allowed: false, rule: "origin_not_bound" },
      refusal: { errorType: "REAUTHORIZATION_REQUIRED", advice: expect.stringContaining("relay connection link") },
    });
  });

  it("may lack one that nobody has to have, and one of another host stays refused", async () => {
    const userId = `optional-${surface}`;
    await harness.connect(application, userId, { providerName: "tenants", originParameters: { tenant: "acme" } });
    expect(await call("tenants", userId, "https://a.shops.example.com/")).toMatchObject({
      errorType: "URL_NOT_ALLOWED",
    });
    expect(await call("tenants", userId, "https://b.tenants.example.com/")).toMatchObject({
      errorType: "URL_NOT_ALLOWED",
    });
    expect(await call("tenants", userId, "https://acme.tenants.example.com/")).toMatchObject({
      errorType: "PROVIDER_UNREACHABLE",
    });
  });
});

describe.each([
  ["another kind", "named", {}],
  ["a value that the definition does not allow", "regions", { region: "us" }],
])("tokens that have ended, of %s", (_, providerName, originParameters) => {
  it("are the user's to replace: neither they nor a client go anywhere", async () => {
    const userId = `ended-${providerName}`;
    await harness.connect(application, userId, {
      ...{ providerName, originParameters, refreshToken: "CANARY_refresh", expiresAt: 1 },
    });
    const sent = provider.requests.length;
    const { calls, connections } = createAdminClients(harness);
    const called = callOf(providerName, userId);
    const [, call] = createCallers(harness.url)[0] ?? [];
    expect(await call?.(called)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED", statusCode: 401 });
    const explained = await calls.explainCall({ call: called });
    expect(explained.refusal).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    const { publicKey } = application;
    const refreshed = await connections.refreshConnection({ publicKey, userId, providerName });
    expect(refreshed.problem).toContain("must connect again");
    expect(provider.requests.length).toBe(sent);
  });
});

describe("a token that has not ended, with a value that the definition does not allow", () => {
  it("is refused in the provider's own words", async () => {
    await harness.connect(application, "denied", {
      ...{ providerName: "regions", originParameters: { region: "us" } },
      ...{ refreshToken: "CANARY_refresh", expiresAt: Date.now() + 3_600_000 },
    });
    answer = async () => ({ statusCode: 401, body: '{"why":"role"}' });
    const [, call] = createCallers(harness.url)[0] ?? [];
    const row = await call?.(callOf("regions", "denied"));
    expect(row).toMatchObject({ errorType: "API_ERROR", statusCode: 401, data: { why: "role" } });
  });
});

describe("tokens of another kind that have not ended", () => {
  it("are explained as a call with them is answered", async () => {
    await harness.connect(application, "lasting", { providerName: "named" });
    const { calls } = createAdminClients(harness);
    const { refusal } = await calls.explainCall({ call: callOf("named", "lasting") });
    expect(refusal).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
  });
});

describe("a host that a call was let through to", () => {
  it("is judged again for the row that stands there when the token has come", async () => {
    const connect = (tenant: string, more: object) =>
      harness.connect(application, "moved", { providerName: "tenants", originParameters: { tenant }, ...more });
    await connect("acme", { refreshToken: "CANARY_refresh", expiresAt: 1 });
    answer = async () => {
      await connect("other", {});
      return { body: '{"access_token":"CANARY_new","expires_in":3600}' };
    };
    const [, call] = createCallers(harness.url)[0] ?? [];
    const row = await call?.(callOf("tenants", "moved", "https://acme.tenants.example.com/x"));
    expect(row).toMatchObject({ errorType: "URL_NOT_ALLOWED", statusCode: 403 });
  });
});

describe("an application's rules for a provider that has another name by now", () => {
  it("stay the upper bound of its calls", async () => {
    const rule = { methods: ["POST"], hosts: undefined, paths: undefined };
    const { publicKey } = await harness.createApplication({ callRules: { before: [rule] } });
    const [, call] = createCallers(harness.url)[0] ?? [];
    for (const name of ["renamed", "before"])
      expect(await call?.({ ...callOf(name, "ada"), publicKey })).toMatchObject({ errorType: "CALL_NOT_PERMITTED" });
  });
});
