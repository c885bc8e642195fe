import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeleteConnectionResponse_Revocation as Revocation } from "../../gen/relay/admin/v1/connection_pb.js";
import { type AdminClients, createAdminClients } from "../admin/admin-bed.js";
import { failure } from "../admin/failure.js";
import { openBrowser } from "../pages/browser.js";
import { linkTo, storedOf } from "../pages/flow.js";
import { exitOf, lineOf, startChild } from "../store/store-for-test.js";
import {
  type AuthorizationServer,
  type RegisteredClient,
  startAuthorizationServer,
} from "../support/authorization-server.js";
import { type Caller, createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";

let server: AuthorizationServer;
let client: RegisteredClient;
let api: RecordingProvider;
let odd: RecordingProvider;
let harness: Harness;
let peerUrl: string;
let application: TestApplication;
/** Happens while the provider makes up its answer. */
let race = async () => {};
let isRefusing = false;

beforeAll(async () => {
  server = await startAuthorizationServer();
  client = await server.registerForCredentials();
  api = await startRecordingProvider(async (request) => {
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    const isGood = token !== "" && (await server.isActive(client, token));
    return { statusCode: isGood ? 200 : 401, body: JSON.stringify(request) };
  });
  odd = await startRecordingProvider(async ({ target }) => {
    if (target === "/refused/token") return { statusCode: 400, body: '{"error":"invalid_grant"}' };
    if (target === "/racing/token") {
      await race();
      return { body: '{"access_token":"CANARY_raced","expires_in":3600}' };
    }
    if (target === "/racing/v1") return { statusCode: isRefusing ? 401 : 200, body: "{}" };
    if (target !== "/token") return { body: "{}" };
    return { body: '{"access_token":"CANARY_odd","expires_in":3600,"refresh_token":"CANARY_stray","region":"eu"}' };
  });
  harness = await startHarness({
    providers: definitions(),
    upstream: {
      resolve: async (hostname) => {
        if (hostname === "localhost") return [{ address: "127.0.0.1", family: 4 }];
        throw new Error("there is no name service in a test");
      },
    },
  });
  application = await harness.createApplication();
  peerUrl = await harness.startPeer();
});
afterAll(async () => {
  await harness.close();
  await server.close();
  await api.close();
  await odd.close();
});

function definitions(): readonly object[] {
  const oauth2 = {
    tokenEndpoint: `${server.origin}/token`,
    revocationEndpoint: `${server.origin}/token/revocation`,
  };
  const at = (place: string) => ({
    ...{ kind: "client_credentials", apiOrigins: [odd.origin] },
    oauth2: { tokenEndpoint: `${odd.origin}/${place}/token` },
  });
  return [
    { name: "cc-refused", ...at("refused") },
    { name: "cc-racing", ...at("racing") },
    {
      ...{ name: "cc-named", kind: "client_credentials", apiOrigins: [api.origin], oauth2 },
      defaultHeaders: { "client-id": "{client_id}" },
    },
    {
      ...{ name: "cc-operator", kind: "client_credentials", apiOrigins: [api.origin], oauth2 },
      connectionValues: [{ name: "client_id", client: true }],
      defaultHeaders: { "client-id": "{client_id}" },
    },
    { name: "cc", displayName: "Machines", kind: "client_credentials", apiOrigins: [api.origin], oauth2 },
    {
      ...{ name: "cc-odd", kind: "client_credentials", apiOrigins: [odd.origin, "https://{region}.cc-odd.example"] },
      connectionValues: [
        { name: "user", label: "User" },
        { name: "password", secret: true },
        { name: "region", tokenMember: "region" },
      ],
      defaultHeaders: { "x-region": "{region}" },
      furtherCredentials: [{ header: "x-password", value: "{password}" }],
      oauth2: {
        ...{
          tokenEndpoint: `${odd.origin}/token`,
          clientAuthentication: "client_secret_post",
          defaultScopes: ["a", "b"],
        },
        tokenParameters: { password: "{password}", user: "{user}" },
      },
    },
  ];
}

const keyOf = (userId: string, { publicKey } = application, providerName = "cc") => ({
  publicKey,
  userId,
  providerName,
});
const own = () => ({
  originParameters: { client_id: client.client_id },
  secrets: { client_secret: client.client_secret },
});
const tokenRequests = () => server.tokenRequests.filter((grant) => grant.startsWith("client_credentials")).length;

describe.each(
  thin([
    ["connect", "REST"],
    ["grpc", "gRPC"],
  ]),
)("a connection with a client of its own, put over %s and called over %s", (protocol, surface) => {
  let connections: AdminClients["connections"];
  let call: Caller;
  beforeAll(() => {
    connections = createAdminClients(harness, protocol).connections;
    call = createCallers(harness.url).find(([name]) => name === surface)?.[1] as Caller;
  });
  const callAs = (userId: string, of = application) =>
    call({ ...keyOf(userId, of), call: { url: `${api.origin}/v1`, method: "GET" } });

  it("gets a token with the first call, keeps it, gets another when it ends, and revokes it", async () => {
    const key = keyOf(`ada-${protocol}`);
    const put = await connections.putConnection({ ...key, ...own() });
    expect(put).toMatchObject({ hasRefreshToken: true, originParameters: { client_id: client.client_id } });
    expect(put.expireTime).toBeUndefined();
    const query = new URLSearchParams({ user_id: key.userId, public_key: application.publicKey });
    const headers = { authorization: `Bearer ${application.privateKey}` };
    const listed = await fetch(`${harness.url}/oauth/connections?${query}`, { headers });
    expect(await listed.json()).toEqual({
      connections: [expect.not.objectContaining({ expireTime: expect.anything() })],
    });
    const before = tokenRequests();
    for (let at = 0; at < 3; at++) expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
    const stored = await storedOf(harness, application, key.userId, "cc");
    if (stored === undefined) throw new Error("not connected");
    expect(stored.expiresAt).toBeGreaterThan(Date.now());
    await harness.store.connections.put({ ...stored, obtainedAt: 1, expiresAt: 2 }, Date.now());
    // A relay on PostgreSQL hears of the change a moment later.
    const requestsAfterCall = async () => {
      expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
      return tokenRequests() - before;
    };
    await expect.poll(requestsAfterCall).toBe(2);
    const token = api.requests.at(-1)?.headers.authorization?.slice("Bearer ".length) ?? "";
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.REVOKED });
    expect(await server.isActive(client, token)).toBe(false);
  });

  it("gets another token when the API refuses the one it has", async () => {
    const key = keyOf(`bob-${protocol}`);
    await connections.putConnection({ ...key, ...own() });
    await callAs(key.userId);
    await server.revoke(client, api.requests.at(-1)?.headers.authorization?.slice("Bearer ".length) ?? "");
    const before = tokenRequests();
    expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
  });

  it("ends when its secret is refused, says so, and works again after the right one", async () => {
    const key = keyOf(`eve-${protocol}`);
    await connections.putConnection({ ...key, ...own(), secrets: { client_secret: "CANARY_wrong" } });
    expect(await callAs(key.userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await connections.getConnection(key)).toMatchObject({ stateReason: "invalid_client" });
    // Nobody else's client is doubted over it.
    await connections.putConnection({ ...keyOf(`well-${protocol}`), ...own() });
    expect(await callAs(`well-${protocol}`)).toMatchObject({ statusCode: 200 });
    await connections.putConnection({ ...key, ...own() });
    expect(await callAs(key.userId)).toMatchObject({ statusCode: 200 });
  });

  it("is left out where the application has a client", async () => {
    const machine = await harness.createApplication();
    const key = keyOf(`any-${protocol}`, machine);
    const missing = { code: "InvalidArgument", field: "origin_parameters.client_id" };
    expect(await failure(connections.putConnection(key))).toMatchObject(missing);
    await harness.putClient(machine, "cc", client);
    await connections.putConnection(key);
    expect(await callAs(key.userId, machine)).toMatchObject({ statusCode: 200 });
    expect(await connections.deleteConnection(key)).toMatchObject({ revocation: Revocation.REVOKED });
  });

  it.each([
    [{ originParameters: { client_id: "a" } }, "secrets.client_secret", "is missing"],
    [{ secrets: { client_secret: "CANARY-secret" } }, "origin_parameters.client_id", "is missing"],
    [
      { originParameters: { client_id: "a\r\nb" }, secrets: { client_secret: "CANARY-secret" } },
      "origin_parameters.client_id",
      "line breaks",
    ],
    [
      { originParameters: { client_id: "a" }, secrets: { client_secret: "CANARY\r\n" } },
      "secrets.client_secret",
      "line breaks",
    ],
    [
      { originParameters: { client_id: "a" }, secrets: { client_secret: "CANARY-secret".repeat(11_000) } },
      "secrets.client_secret",
      "16384",
    ],
    [{ tokenResponse: '{"access_token":"CANARY"}' }, "token_response", "send secrets"],
  ])("refuses %o, names the field and stores nothing", async (given, field, problem) => {
    const key = keyOf(`mallory-${protocol}`);
    const told = await failure(connections.putConnection({ ...key, ...given }));
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    expect(told.message).not.toContain("CANARY");
    expect(await failure(connections.getConnection(key))).toMatchObject({ code: "NotFound" });
  });
});

describe("the token of a client", () => {
  const callAt = (url: string, userId: string, providerName = "cc", origin = api.origin) => {
    const [, call] = createCallers(url)[0] as readonly [string, Caller];
    return call({ ...keyOf(userId, application, providerName), call: { url: `${origin}/v1`, method: "GET" } });
  };
  const put = (userId: string, given: object = own(), providerName = "cc") =>
    createAdminClients(harness).connections.putConnection({ ...keyOf(userId, application, providerName), ...given });

  it("is got once for all calls of all relays that want it at the same time", async () => {
    await put("crowd");
    const before = tokenRequests();
    const calls = Array.from({ length: 12 }, (_, at) => callAt(at % 2 === 0 ? harness.url : peerUrl, "crowd"));
    for (const row of await Promise.all(calls)) expect(row).toMatchObject({ statusCode: 200 });
    expect(tokenRequests() - before).toBe(1);
  });

  it("is got by another relay when one is killed between the answer and the commit", async () => {
    await put("killed");
    const stored = await storedOf(harness, application, "killed", "cc");
    if (stored === undefined) throw new Error("not connected");
    const child = startChild({ file: "child-spool.ts" }, join(harness.folder, "spool"), harness.store.id, "nothing");
    const owner = (await lineOf(child, "owner ")).slice("owner ".length);
    expect(await harness.store.connections.takeLease(stored, owner, 120_000)).toBeDefined();
    child.kill("SIGKILL");
    await exitOf(child);
    expect(await callAt(peerUrl, "killed")).toMatchObject({ statusCode: 200 });
  });

  it("comes with no refresh token that takes the place of the secret, which goes into requests that name it", async () => {
    const secrets = { client_secret: "CANARY_secret", password: "CANARY_password {user}" };
    await put("odd", { originParameters: { client_id: "machine", user: "ada" }, secrets }, "cc-odd");
    for (let at = 0; at < 2; at++) {
      expect(await callAt(harness.url, "odd", "cc-odd", odd.origin)).toMatchObject({ statusCode: 200 });
      const [token, call] = odd.requests.slice(-2);
      expect(Object.fromEntries(new URLSearchParams(token?.body))).toEqual({
        ...{ grant_type: "client_credentials", scope: "a b", user: "ada", password: secrets.password },
        ...{ client_id: "machine", client_secret: "CANARY_secret" },
      });
      expect(call?.headers).toMatchObject({
        authorization: "Bearer CANARY_odd",
        "x-password": secrets.password,
        "x-region": "eu",
      });
      const stored = await storedOf(harness, application, "odd", "cc-odd");
      if (stored !== undefined)
        await harness.store.connections.put({ ...stored, obtainedAt: 1, expiresAt: 2 }, Date.now());
    }
  });

  it("may be got for a client that a user enters, never for the application's by whoever comes", async () => {
    const at = `${harness.url}/oauth/connect/cc`;
    const enter = async (of: TestApplication, userId: string, fields: Record<string, string>) => {
      const browser = openBrowser();
      const asked = await browser.visit(await linkTo(harness, of, userId, { provider_name: "cc" }));
      const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
      return { asked, done: await browser.post(at, { session, ...fields }) };
    };
    const { asked, done } = await enter(application, "form", {
      client_id: client.client_id,
      client_secret: client.client_secret,
    });
    expect(asked.body).toMatch(/<input id="client_secret" name="client_secret" required[^>]* type="password"/);
    expect([done.status, done.body.includes("Machines is connected")]).toEqual([200, true]);
    expect(await callAt(harness.url, "form")).toMatchObject({ statusCode: 200 });
    const half = await enter(application, "half", { client_id: "a" });
    expect([half.done.status, half.done.body.includes("Client secret is not valid")]).toEqual([400, true]);
    const machine = await harness.createApplication();
    await harness.putClient(machine, "cc", client);
    const none = await enter(machine, "none", {});
    expect([none.asked.body.includes("client_id"), none.done.status]).toEqual([true, 400]);
    expect(await storedOf(harness, machine, "none", "cc")).toBeUndefined();
  });

  it("tells the host of the account before the first call goes there", async () => {
    await put(
      "moved",
      {
        originParameters: { client_id: "machine", user: "ada" },
        secrets: { client_secret: "CANARY_s", password: "CANARY_p" },
      },
      "cc-odd",
    );
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const at = (url: string) => call({ ...keyOf("moved", application, "cc-odd"), call: { url, method: "GET" } });
    expect(await at("https://us.cc-odd.example/x")).toMatchObject({ errorType: "URL_NOT_ALLOWED" });
    expect(await at("https://eu.cc-odd.example/x")).toMatchObject({ errorType: "PROVIDER_UNREACHABLE" });
  });

  it("is not got with what was stored for a definition of another kind", async () => {
    await harness.connect(application, "other", {
      providerName: "cc",
      refreshToken: '{"client_secret":"CANARY"}',
      expiresAt: 1,
    });
    const before = server.tokenRequests.length;
    await harness.putClient(application, "cc", client);
    expect(await callAt(harness.url, "other")).toMatchObject({
      errorType: "REAUTHORIZATION_REQUIRED",
      statusCode: 401,
    });
    expect(server.tokenRequests.length).toBe(before);
  });

  it.each(["cc-named", "cc-operator"])("goes with the id of its client where %s says so", async (name) => {
    const machine = await harness.createApplication();
    await harness.putClient(machine, name, client);
    const key = keyOf("machine", machine, name);
    const { connections } = createAdminClients(harness);
    expect((await connections.putConnection(key)).originParameters).toEqual({ client_id: client.client_id });
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const callNow = () => call({ ...key, call: { url: `${api.origin}/v1`, method: "GET" } });
    expect(await callNow()).toMatchObject({ statusCode: 200 });
    expect(api.requests.at(-1)?.headers["client-id"]).toBe(client.client_id);
    // Another client of the application's counts from the next token on.
    const next = await server.registerForCredentials();
    await harness.putClient(machine, name, next);
    const stored = await storedOf(harness, machine, "machine", name);
    if (stored === undefined) throw new Error("not connected");
    await harness.store.connections.put({ ...stored, obtainedAt: 1, expiresAt: 2 }, Date.now());
    await callNow();
    expect(api.requests.at(-1)?.headers["client-id"]).toBe(next.client_id);
    // Its own one counts before.
    await connections.putConnection({ ...key, userId: "own", ...own() });
    await call({ ...key, userId: "own", call: { url: `${api.origin}/v1`, method: "GET" } });
    expect(api.requests.at(-1)?.headers["client-id"]).toBe(client.client_id);
  });

  it("may be of the user's own client where the operator's id is a value, too", async () => {
    const browser = openBrowser();
    const asked = await browser.visit(await linkTo(harness, application, "form", { provider_name: "cc-operator" }));
    const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
    const { client_id, client_secret = "" } = client;
    const done = await browser.post(`${harness.url}/oauth/connect/cc-operator`, { session, client_id, client_secret });
    expect(done.status).toBe(200);
    expect(await callAt(harness.url, "form", "cc-operator")).toMatchObject({ statusCode: 200 });
  });

  it("is the operator's to mend when the application's client is refused, by whatever code, and the user's to mend when an own one is", async () => {
    const machine = await harness.createApplication();
    await harness.putClient(machine, "cc-refused", client);
    const { connections } = createAdminClients(harness);
    const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
    const callAs = async (userId: string, given: object) => {
      const key = keyOf(userId, machine, "cc-refused");
      await connections.putConnection({ ...key, ...given });
      return call({ ...key, call: { url: `${odd.origin}/v1`, method: "GET" } });
    };
    expect(await callAs("of-all", {})).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    const shown = await connections.getConnection(keyOf("of-all", machine, "cc-refused"));
    expect(shown.stateReason).toBe("");
    const another = { ...own(), originParameters: { client_id: "another" } };
    expect(await callAs("own", another)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
  });

  it("is explained as refused when it is, although the connection was made with an earlier client", async () => {
    const machine = await harness.createApplication();
    const key = keyOf("earlier", machine, "cc-refused");
    const { calls, connections } = createAdminClients(harness);
    const [, send] = createCallers(harness.url)[0] as readonly [string, Caller];
    const call = { ...key, call: { url: `${odd.origin}/v1`, method: "GET" } };
    await harness.putClient(machine, "cc-refused", client);
    await connections.putConnection(key);
    await harness.putClient(machine, "cc-refused", { ...client, client_id: "later" });
    // The second one waits for the next try.
    for (let at = 0; at < 2; at++) expect(await send(call)).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    expect((await calls.explainCall({ call })).refusal).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
  });

  it("is not sent empty when the user connects again while another one is got after a 401", async () => {
    race = async () => {};
    await put("raced", own(), "cc-racing");
    const at = () => callAt(harness.url, "raced", "cc-racing", `${odd.origin}/racing`);
    expect(await at()).toMatchObject({ statusCode: 200 });
    isRefusing = true;
    race = async () => void (await put("raced", own(), "cc-racing"));
    const before = odd.requests.length;
    expect(await at()).toMatchObject({ statusCode: 401, errorType: "API_ERROR" });
    const sent = odd.requests.slice(before).filter(({ target }) => target === "/racing/v1");
    expect(sent.map(({ headers }) => headers.authorization)).toEqual(["Bearer CANARY_raced"]);
  });

  it("is explained as one that is refreshed first", async () => {
    await put("explained");
    const call = { ...keyOf("explained"), call: { url: `${api.origin}/v1`, method: "GET" } };
    const explained = await createAdminClients(harness).calls.explainCall({ call });
    expect(explained.refusal).toBeUndefined();
    expect(explained.request?.headers.find(({ name }) => name === "authorization")?.value).toBe("Bearer ***");
  });
});

describe("what was logged of all this", () => {
  it("has no secret and no token", () => {
    const text = harness.logLines.join("\n");
    for (const secret of ["CANARY", client.client_secret]) expect(text).not.toContain(secret);
  });
});
