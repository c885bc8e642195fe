import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { request as send } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DeleteConnectionResponse_Revocation as Revocation } from "../../gen/relay/admin/v1/connection_pb.js";
import { type AdminClients, createAdminClients } from "../admin/admin-bed.js";
import { failure } from "../admin/failure.js";
import { createFolder, startServe } from "../cli/run-relay.js";
import { openBrowser } from "../pages/browser.js";
import { BACK, begin as beginAt, linkTo, startAt, storedOf } from "../pages/flow.js";
import { type Caller, createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";
import { type SignedProvider, startSignedProvider } from "../support/oauth1-provider.js";
import { createTestDatabase } from "../support/postgres.js";

let provider: SignedProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startSignedProvider();
  const entered = (signatureMethod: string, more: object = {}) => ({
    connectionValues: [{ name: "account", label: "Account" }],
    oauth1: { signatureMethod, realm: "{account}", ...more },
  });
  harness = await startHarness({
    providers: [
      provider.definition("signed", { connectionValues: [{ name: "user", tokenMember: "screen_name" }] }),
      provider.definition("looked-up", {
        connectionValues: [{ name: "team", lookup: { url: `${provider.origin}/me?x=%2B`, member: "method" } }],
      }),
      provider.definition("signed-site", { connectionValues: [{ name: "site" }] }),
      provider.definition("signed-plain", entered("PLAINTEXT")),
      provider.definition("signed-256", entered("HMAC-SHA256")),
    ],
  });
  application = await applicationWithClients();
});
beforeEach(() => {
  provider.requests.length = 0;
  provider.problems.length = 0;
  provider.answer = undefined;
  provider.changeAnswer = undefined;
  provider.delay = undefined;
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

/** Three connections of one application that end alike say more of the provider than of their users. */
async function applicationWithClients(): Promise<TestApplication> {
  const made = await harness.createApplication({ allowedRedirectUris: [BACK] });
  for (const name of ["signed", "looked-up"]) await harness.putClient(made, name, provider.consumer);
  return made;
}

const keyOf = (userId: string, providerName = "signed") => ({ publicKey: application.publicKey, userId, providerName });
const last = () => provider.requests.at(-1) as (typeof provider.requests)[number];
const begin = (userId: string, query: Readonly<Record<string, string>> = {}, browser = openBrowser()) =>
  beginAt(browser, startAt(harness, application, userId, { provider: "signed", redirect_uri: BACK, ...query }));
const outcomeIn = (location: string) => Object.fromEntries(new URL(location).searchParams);

/** From the relay to the provider, which agrees; resolves to the callback. */
async function agree(location: string): Promise<string> {
  return (await openBrowser().visit(location)).location;
}

async function connect(userId: string, query: Readonly<Record<string, string>> = {}): Promise<string> {
  const browser = openBrowser();
  const { location } = await begin(userId, query, browser);
  return (await browser.visit(await agree(location))).location;
}

describe.each(
  thin([
    ["connect", "REST"],
    ["grpc", "gRPC"],
  ]),
)("a connection that is administered over %s and called over %s", (protocol, surface) => {
  let connections: AdminClients["connections"];
  let call: Caller;
  beforeAll(async () => {
    application = await applicationWithClients();
    connections = createAdminClients(harness, protocol).connections;
    call = createCallers(harness.url).find(([name]) => name === surface)?.[1] as Caller;
  });
  const callAs = (userId: string, described: object = {}, providerName = "signed") =>
    call({
      ...keyOf(userId, providerName),
      call: { url: `${provider.origin}/v1/me`, method: "GET", ...described },
    });

  it("is made in a browser, signs calls, ends at the provider's word, and is made again", async () => {
    const user = `ada-${protocol}`;
    expect(outcomeIn(await connect(user))).toEqual({ provider: "signed", outcome: "success" });
    const [temporary, token] = provider.requests;
    expect(temporary).toMatchObject({ method: "POST", target: "/oauth/request_token?scope=a%20b", body: "" });
    expect(temporary?.oauth["oauth_callback"]).toMatch(/\/oauth\/callback\?state=[\w-]{43}$/);
    expect(token).toMatchObject({ method: "POST", target: "/oauth/access_token" });
    const shown = await connections.getConnection(keyOf(user));
    expect(shown).toMatchObject({ hasRefreshToken: false, tokenType: "oauth1", originParameters: { user: "ada" } });
    expect(shown.expireTime).toBeUndefined();
    expect(await callAs(user)).toMatchObject({ statusCode: 200, pincStatus: "success" });
    provider.revoke(last().oauth["oauth_token"] ?? "");
    expect(await callAs(user)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    const sent = provider.problems.length;
    expect(await callAs(user)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(provider.problems.length).toBe(sent);
    expect(await connections.getConnection(keyOf(user))).toMatchObject({ stateReason: "token_refused" });
    await connect(user);
    expect(await callAs(user)).toMatchObject({ statusCode: 200 });
    expect(await connections.deleteConnection(keyOf(user))).toMatchObject({ revocation: Revocation.NOT_SUPPORTED });
  });

  it.each([
    ["a query", { url: "/v1/x?a=1&b=%2F%20%C3%A4&c=&a=0", queryString: { q: "ä+& ~*'()", n: 1 } }],
    ["a form", { url: "/v1/x?a=1", method: "FORM", payload: { status: "Hello, ä + & = % ~*!", b: "", list: [1, 2] } }],
    [
      "repeated names of a form",
      { url: "/v1/x", method: "FORM", payload: { list: ["b", "a", "a"] }, explodeArrays: true },
    ],
    ["a JSON body", { url: "/v1/x?a=1", method: "POST", payload: { status: "ä", oauth_token: "mine" } }],
    ["multipart", { url: "/v1/x", method: "MULTIFORM-POST", payload: { a: "1" } }],
    ["a path of encoded characters", { url: "/v1/%C3%A4%20b!/x;y=1" }],
    ["another method", { url: "/v1/x?a=1", method: "DELETE" }],
    ["the caller's own Authorization", { url: "/v1/x", headers: { Authorization: "OAuth oauth_token=mine" } }],
  ])("signs a call with %s as it goes out", async (_what, described) => {
    const user = `signs-${protocol}`;
    await connections.putConnection({ ...keyOf(user), secrets: provider.issueToken(), originParameters: {} });
    const { url, ...rest } = described as { readonly url: string };
    const row = await callAs(user, { ...rest, url: `${provider.origin}${url}` });
    expect([row.statusCode, provider.problems]).toEqual([200, []]);
    expect(last().headers.authorization).not.toContain("mine");
  });

  it.each([
    ["its url", { url: "/v1?a=1&oauth_token=x" }, "query"],
    ["its url, percent-encoded", { url: "/v1?%6F%61uth%5Fverifier=x" }, "query"],
    ["queryString", { url: "/v1", queryString: { oauth_callback: "x" } }, "query"],
    ["a form", { url: "/v1", method: "FORM", payload: { a: 1, oauth_token: "x" } }, "body"],
    [
      "exact bytes of a form",
      {
        url: "/v1",
        method: "POST",
        body: Buffer.from("a=1&OAuth_token=x").toString("base64"),
        headers: { "content-type": "Application/X-www-form-urlencoded; charset=utf-8" },
      },
      "body",
    ],
  ])("refuses a call with a parameter of OAuth in %s, before a secret is opened", async (_what, described, where) => {
    const user = `refused-${protocol}`;
    await connections.putConnection({ ...keyOf(user), secrets: provider.issueToken() });
    const row = await callAs(user, { ...described, url: `${provider.origin}${described.url}` });
    expect(row).toMatchObject({ errorType: "CALL_FORMAT_ERROR", statusCode: 400 });
    expect(row["inernalError"]).toContain(`The ${where} contains a parameter whose name begins with oauth_`);
    expect(provider.requests).toEqual([]);
  });

  it("refuses a form that is too long to be signed, and one that is compressed", async () => {
    const user = `long-${protocol}`;
    await connections.putConnection({ ...keyOf(user), secrets: provider.issueToken() });
    const form = (length: number) => ({ method: "FORM", payload: { a: "x".repeat(length - 2) } });
    expect(await callAs(user, form(64 * 1024))).toMatchObject({ statusCode: 200 });
    expect(await callAs(user, form(64 * 1024 + 1))).toMatchObject({ errorType: "REQUEST_TOO_LARGE" });
    const coded = { ...form(10), headers: { "content-encoding": "gzip" } };
    expect(await callAs(user, coded)).toMatchObject({ errorType: "CALL_FORMAT_ERROR" });
    expect(provider.requests.length).toBe(1);
  });

  it("takes token and secrets out of an answer", async () => {
    const user = `echo-${protocol}`;
    const issued = provider.issueToken();
    await connections.putConnection({ ...keyOf(user), secrets: issued });
    const { client_secret: secret } = provider.consumer;
    const texts = [
      issued.oauth_token,
      encodeURIComponent(issued.oauth_token_secret),
      secret,
      encodeURIComponent(secret),
    ];
    provider.answer = () => ({ status: 200, body: JSON.stringify(texts) });
    expect(await callAs(user)).toMatchObject({ data: texts.map(() => "[redacted]") });
  });

  it.each([
    ["signature_invalid", 401, "oauth_problem=signature_invalid"],
    ["a page of a proxy", 401, "<html>sign in</html>"],
    ["a scope that is too small", 403, '{"oauth_problem":"token_rejected"}'],
  ])("gives the caller an answer that says nothing of the token: %s", async (_what, status, body) => {
    const user = `told-${protocol}`;
    await connections.putConnection({ ...keyOf(user), secrets: provider.issueToken() });
    provider.answer = () => ({ status, body });
    expect(await callAs(user)).toMatchObject({ statusCode: status, errorType: "API_ERROR" });
    expect(provider.requests.length).toBe(1);
    provider.answer = undefined;
    expect(await callAs(user)).toMatchObject({ statusCode: 200 });
  });

  it.each([
    ["token_expired", 'oauth_problem="token_expired"'],
    ["token_revoked in JSON", '{"oauth_problem":"token_revoked"}'],
  ])("ends when the provider says %s", async (what, body) => {
    const key = keyOf(`ends-${what.replaceAll(" ", "-")}-${protocol}`);
    await connections.putConnection({ ...key, secrets: provider.issueToken() });
    provider.answer = () => ({ status: 401, body });
    expect(await callAs(key.userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
  });

  it.each([
    ["signed-256", "HMAC-SHA256"],
    ["signed-plain", "PLAINTEXT"],
  ])("signs for %s with the connection's own client, or the application's", async (name, method) => {
    const { client_id, client_secret } = provider.consumer;
    const own = {
      originParameters: { client_id, account: 'TSTDRV "1"' },
      secrets: { client_secret, ...provider.issueToken() },
    };
    const key = keyOf(`own-${protocol}`, name);
    const without = { ...key, originParameters: { account: "a" }, secrets: provider.issueToken() };
    const missing = { code: "InvalidArgument", field: "origin_parameters.client_id" };
    expect(await failure(connections.putConnection(without))).toMatchObject(missing);
    await connections.putConnection({ ...key, ...own });
    provider.answer = ({ headers }) => ({ status: 200, body: JSON.stringify(headers.authorization) });
    const row = await callAs(key.userId, {}, name);
    expect(row).toMatchObject({ statusCode: 200 });
    expect(last()).toMatchObject({ realm: 'TSTDRV "1"', oauth: { oauth_signature_method: method } });
    expect(JSON.stringify(row["data"])).not.toContain("CANARY");
    expect(JSON.stringify(row["data"])).not.toMatch(/consumer(?:%25|%)?(?:26|&)secret/);
    const machine = await harness.createApplication();
    await harness.putClient(machine, name, provider.consumer);
    await connections.putConnection({ ...without, publicKey: machine.publicKey });
    const called = await call({
      ...{ ...key, publicKey: machine.publicKey },
      call: { url: `${provider.origin}/v1`, method: "GET" },
    });
    expect(called).toMatchObject({ statusCode: 200 });
  });

  it.each([
    [{ secrets: {} }, "secrets.oauth_token", "is missing"],
    [{ secrets: { oauth_token: "CANARY_token" } }, "secrets.oauth_token_secret", "is missing"],
    [
      { secrets: { oauth_token: "CANARY\r\nx: 1", oauth_token_secret: "CANARY_secret" } },
      "secrets.oauth_token",
      "line breaks",
    ],
    [
      { secrets: { oauth_token: "CANARY_t\u0000", oauth_token_secret: "CANARY_secret" } },
      "secrets.oauth_token",
      "control",
    ],
    [
      { secrets: { oauth_token: "CANARY_t", oauth_token_secret: "CANARY" } },
      "secrets.oauth_token_secret",
      "at least 8",
    ],
    [
      { secrets: { oauth_token: "CANARY_t".repeat(8200), oauth_token_secret: "CANARY_secret" } },
      "secrets.oauth_token",
      "at most 16384",
    ],
    [
      { secrets: { ...{ oauth_token: "CANARY_t", oauth_token_secret: "CANARY_s" }, client_secret: "CANARY_c" } },
      "secrets.client_secret",
      "takes",
    ],
    [{ tokenResponse: '{"access_token":"CANARY"}' }, "token_response", "send secrets"],
  ])("refuses to store %o, names the field, and stores nothing", async (given, field, problem) => {
    const key = keyOf(`mallory-${protocol}`);
    const told = await failure(connections.putConnection({ ...key, ...given }));
    expect(told).toEqual({ code: "InvalidArgument", field, message: expect.stringContaining(problem) });
    expect(told.message).not.toContain("CANARY");
    expect(await failure(connections.getConnection(key))).toMatchObject({ code: "NotFound" });
  });

  it("sends what stands in its values encoded, wherever it stands", async () => {
    const key = keyOf(`odd-${protocol}`);
    const secrets = { oauth_token: 'CANARY "{user}", x="', oauth_token_secret: "CANARY&=%25\\ä" };
    await connections.putConnection({ ...key, secrets });
    expect(await callAs(key.userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(provider.problems).toEqual(["token_rejected"]);
  });
});

describe("connecting with OAuth 1.0a", () => {
  it("belongs to the browser that began it, once", async () => {
    const browser = openBrowser();
    const { location } = await begin("one", {}, browser);
    const callback = await agree(location);
    const other = openBrowser();
    await begin("two", {}, other);
    expect((await other.visit(callback)).status).toBe(400);
    expect((await openBrowser().visit(callback)).status).toBe(400);
    expect(provider.requests.filter(({ target }) => target === "/oauth/access_token")).toEqual([]);
    expect(outcomeIn((await browser.visit(callback)).location)).toMatchObject({ outcome: "success" });
    expect((await browser.visit(callback)).status).toBe(400);
    expect(await storedOf(harness, application, "two", "signed")).toBeUndefined();
  });

  it("refuses the token and verifier of another attempt, also in the same browser", async () => {
    const browser = openBrowser();
    const mine = new URL(await agree((await begin("mine", {}, browser)).location));
    const theirs = new URL(await agree((await begin("theirs")).location));
    for (const name of ["oauth_token", "oauth_verifier"])
      mine.searchParams.set(name, theirs.searchParams.get(name) ?? "");
    expect(outcomeIn((await browser.visit(mine.href)).location)).toMatchObject({ error: "invalid_response" });
    expect(await storedOf(harness, application, "mine", "signed")).toBeUndefined();
  });

  it.each([
    ["a user who says no", { scope: "none" }, (_: URL) => {}, "access_denied"],
    ["no verifier", {}, (callback: URL) => callback.searchParams.delete("oauth_verifier"), "access_denied"],
    ["no token", {}, (callback: URL) => callback.searchParams.delete("oauth_token"), "invalid_response"],
    ["two verifiers", {}, (callback: URL) => callback.searchParams.append("oauth_verifier", "x"), "invalid_response"],
    ["a wrong verifier", {}, (callback: URL) => callback.searchParams.set("oauth_verifier", "wrong"), "invalid_grant"],
  ])("tells the application of %s", async (_what, query, change, error) => {
    const browser = openBrowser();
    const { location } = await begin("told", query, browser);
    const callback = new URL(await agree(location));
    change(callback);
    expect(outcomeIn((await browser.visit(callback.href)).location)).toEqual({
      ...{ provider: "signed", outcome: "error" },
      error,
    });
  });

  it("asks for the scope in the provider's own parameter, and keeps the query of the endpoint", async () => {
    const { location } = await begin("scoped", { scope: "read write" });
    expect(location).toMatch(/\/oauth\/authorize\?lang=en&perms=read\+write&oauth_token=CANARY_/);
  });

  it("does not begin with a client that the provider refuses, or without an answer, and says so", async () => {
    const machine = await harness.createApplication({ allowedRedirectUris: [BACK] });
    const at = startAt(harness, machine, "ada", { provider: "signed", redirect_uri: BACK });
    expect((await beginAt(openBrowser(), at)).body).toContain("no OAuth client");
    await harness.putClient(machine, "signed", { client_id: "wrong", client_secret: "CANARY_wrong" });
    expect(outcomeIn((await beginAt(openBrowser(), at)).location)).toMatchObject({ error: "invalid_client" });
    await harness.putClient(machine, "signed", { ...provider.consumer, client_secret: "CANARY_wrong" });
    expect(outcomeIn((await beginAt(openBrowser(), at)).location)).toMatchObject({ error: "invalid_client" });
    expect(provider.problems).toEqual(["consumer_key_unknown", "signature_invalid"]);
    // A form may be followed by no redirect to another site.
    await harness.putClient(machine, "signed-site", { client_id: "wrong", client_secret: "CANARY_wrong" });
    const browser = openBrowser();
    const asked = await browser.visit(
      startAt(harness, machine, "ada", { provider: "signed-site", redirect_uri: BACK }),
    );
    const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
    const answered = await browser.visit(`${harness.url}/oauth/connect/signed-site?session=${session}&site=a&answer=1`);
    expect([answered.status, answered.body.includes("error=invalid_client")]).toEqual([200, true]);
  });

  it.each([
    ["without a token", (form: URLSearchParams) => form.delete("oauth_token")],
    ["without a secret", (form: URLSearchParams) => form.delete("oauth_token_secret")],
    ["with two tokens", (form: URLSearchParams) => form.append("oauth_token", "CANARY_second")],
    ["with a line break in it", (form: URLSearchParams) => form.set("oauth_token", "CANARY\r\nx: 1")],
    ["with a token that is no ASCII", (form: URLSearchParams) => form.set("oauth_token", "CANARY_ä")],
    ["of 70 KiB", (form: URLSearchParams) => form.set("more", "x".repeat(70_000))],
  ])("takes no answer %s", async (_what, change) => {
    provider.changeAnswer = change;
    const { location } = await begin("odd");
    expect(outcomeIn(location)).toMatchObject({ error: "invalid_response" });
    provider.changeAnswer = undefined;
    const browser = openBrowser();
    const callback = await agree((await begin("odd", {}, browser)).location);
    provider.changeAnswer = change;
    expect(outcomeIn((await browser.visit(callback)).location)).toMatchObject({ error: "invalid_response" });
    expect(await storedOf(harness, application, "odd", "signed")).toBeUndefined();
  });

  it("looks values up with a signed request", async () => {
    await connect("looker", { provider: "looked-up" });
    expect(last()).toMatchObject({ method: "GET", target: "/me?x=%2B" });
    expect((await storedOf(harness, application, "looker", "looked-up"))?.originParameters).toEqual({ team: "GET" });
  });

  it("is offered on the connect page of an application that has a client", async () => {
    const page = await openBrowser().visit(startAt(harness, application, "ada").replace("/sandbox", ""));
    expect(page.body).toContain("/oauth/connect/signed?");
    const link = createAdminClients(harness).connections.createConnectLink({
      ...keyOf("ada"),
      providerNames: ["signed"],
    });
    expect((await link).connectUri).toContain("/oauth/connect/signed?link=");
  });

  it("asks for a token, and for a client where the application has none, where no page of the provider does", async () => {
    const fields = ["client_id", "client_secret", "oauth_token", "oauth_token_secret"];
    const enter = async (of: TestApplication, given: Record<string, string>) => {
      const browser = openBrowser();
      const asked = await browser.visit(await linkTo(harness, of, "form", { provider_name: "signed-256" }));
      const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
      const done = await browser.post(`${harness.url}/oauth/connect/signed-256`, { session, account: "a", ...given });
      return [fields.filter((name) => asked.body.includes(`name="${name}" required`)), done.status];
    };
    const { client_id, client_secret } = provider.consumer;
    expect(await enter(application, { client_id, client_secret, ...provider.issueToken() })).toEqual([fields, 200]);
    expect(await enter(application, { client_id, ...provider.issueToken() })).toEqual([fields, 400]);
    const machine = await harness.createApplication();
    await harness.putClient(machine, "signed-256", provider.consumer);
    expect(await enter(machine, { ...provider.issueToken() })).toEqual([fields.slice(2), 200]);
    expect(await storedOf(harness, machine, "form", "signed-256")).toMatchObject({ tokenType: "oauth1" });
  });

  it("is explained with the signature masked, and refused where no client is stored", async () => {
    const { calls, connections } = createAdminClients(harness);
    await connections.putConnection({ ...keyOf("shown"), secrets: provider.issueToken() });
    const call = { url: `${provider.origin}/v1`, method: "GET" };
    const { request } = await calls.explainCall({ call: { ...keyOf("shown"), call } });
    expect(request?.headers.find(({ name }) => name === "authorization")?.value).toBe("OAuth ***");
    await harness.store.oauthClients.delete(application.id, "signed");
    const { refusal } = await calls.explainCall({ call: { ...keyOf("shown"), call } });
    expect(refusal).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    const [, perform] = createCallers(harness.url)[0] as readonly [string, Caller];
    expect(await perform({ ...keyOf("shown"), call })).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    await harness.putClient(application, "signed", provider.consumer);
    expect(provider.requests).toEqual([]);
  });
});

describe("a request that is passed through and signed", () => {
  const pass = async (path: string, options: Parameters<typeof send>[1]) => {
    const { host } = new URL(provider.origin);
    const keys = { "x-relay-public-key": application.publicKey, "x-relay-user-id": "via" };
    const headers = { ...keys, ...(options?.headers as object) };
    const answer = await send(`${harness.url}/via/signed/${host}${path}`, { ...options, headers });
    return { statusCode: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
  };
  const form = { "content-type": "application/x-www-form-urlencoded" };
  beforeAll(async () => {
    await createAdminClients(harness).connections.putConnection({ ...keyOf("via"), secrets: provider.issueToken() });
  });

  it.each([
    ["a query", "/v1?b=%2f&a=%7e", { method: "GET" }],
    ["a form of a known length", "/v1?x=1", { method: "POST", headers: form, body: "a=1&b=%C3%A4&c=+" }],
    ["a form that comes in pieces", "/v1", { method: "PUT", headers: form, body: pieces("a=", "1&b=2") }],
    [
      "another body",
      "/v1?x=1",
      { method: "POST", headers: { "content-type": "text/plain" }, body: pieces("oauth_token=1") },
    ],
    ["a body of another type as large as it likes", "/v1", { method: "POST", body: pieces(..."xyz".repeat(9)) }],
  ] as const)("covers %s", async (_what, path, options) => {
    const answer = await pass(path, options);
    expect([answer.statusCode, provider.problems]).toEqual([200, []]);
    expect(last().target).toBe(path);
  });

  it.each([
    ["in the query", "/v1?oauth_token=1", { method: "GET" }, 400],
    ["in a form", "/v1", { method: "POST", headers: form, body: "oauth_token=1" }, 400],
    [
      "in a form that comes in pieces",
      "/v1",
      { method: "POST", headers: form, body: pieces("oau", "th_token=1") },
      400,
    ],
    [
      "nowhere, in a form that says it is too long",
      "/v1",
      { method: "POST", headers: form, body: "x".repeat(65_537) },
      413,
    ],
    [
      "nowhere, in a form that is too long",
      "/v1",
      {
        method: "POST",
        headers: form,
        body: pieces(
          ..."ab"
            .repeat(9)
            .split("")
            .map((each) => each.repeat(4096)),
        ),
      },
      413,
    ],
  ] as const)("is refused with parameters of OAuth %s", async (_what, path, options, status) => {
    const answer = await pass(path, options);
    expect(answer.statusCode).toBe(status);
    expect(provider.requests).toEqual([]);
  });

  it("takes the call token that an SDK has signed for, and none of its signature", async () => {
    const { connections } = createAdminClients(harness);
    await connections.putConnection({ ...keyOf("sdk"), secrets: provider.issueToken() });
    const { callToken } = await createAdminClients(harness).applications.createCallToken({
      ...{ publicKey: application.publicKey, userId: "sdk" },
    });
    const { host } = new URL(provider.origin);
    const authorization = `OAuth oauth_consumer_key="x", oauth_token="${callToken}", oauth_signature="y%3D"`;
    const answer = await send(`${harness.url}/via/signed/${host}/v1`, { headers: { authorization } });
    expect(answer.statusCode).toBe(200);
    expect(await answer.body.text()).not.toContain(callToken);
    expect(last().oauth["oauth_consumer_key"]).toBe(provider.consumer.client_id);
  });

  it("is signed anew when it is repeated with the token that the user has connected meanwhile", async () => {
    const stored = await storedOf(harness, application, "via", "signed");
    const nonces: string[] = [];
    const { connections } = createAdminClients(harness);
    const old = provider.issueToken();
    await connections.putConnection({ ...keyOf("via"), secrets: old });
    expect(stored).toBeDefined();
    const fresh = provider.issueToken();
    let putting: Promise<unknown> = Promise.resolve();
    provider.answer = ({ oauth }) => {
      nonces.push(oauth["oauth_nonce"] ?? "");
      return oauth["oauth_token"] === old.oauth_token
        ? { status: 401, body: '{"oauth_problem":"token_expired"}' }
        : { status: 200, body: "{}" };
    };
    provider.delay = () => (putting = connections.putConnection({ ...keyOf("via"), secrets: fresh }));
    const answer = await pass("/v1", { method: "POST", headers: form, body: pieces("a=", "1") });
    await putting;
    expect([answer.statusCode, new Set(nonces).size, last().body]).toEqual([200, 2, "a=1"]);
  });
});

/** A body whose length nobody says. */
function pieces(...texts: readonly string[]): AsyncIterable<Buffer> & never {
  return (async function* () {
    for (const text of texts) yield Buffer.from(text);
  })() as AsyncIterable<Buffer> & never;
}

describe("a relay that is killed between a token and its commit", () => {
  it("leaves nothing half done: the user connects again", async (context) => {
    const database = process.env["TEST_DATABASE"] === "postgres" ? await createTestDatabase() : undefined;
    const folder = createFolder(context.onTestFinished);
    if (database !== undefined) context.onTestFinished(() => database.remove());
    writeFileSync(join(folder.path, "signed.json"), JSON.stringify(provider.definition("signed")));
    const env = {
      ...{ RELAY_ALLOW_LOOPBACK: "true", RELAY_PROVIDERS: join(folder.path, "signed.json") },
      ...(database === undefined ? {} : { RELAY_DATABASE: database.url }),
    };
    const { publicKey } = await folder.json(["app", "create", "x"], { env });
    const named = ["--app", publicKey, "--provider", "signed"];
    await folder.run(["client", "put", ...named], { env, input: JSON.stringify(provider.consumer) });
    const stateOf = async () => {
      const shown = await folder.run(["connection", "show", ...named, "--user", "ada"], { env });
      return shown.exitCode;
    };
    const connectAt = async ({ url }: { readonly url: string }) => {
      const browser = openBrowser();
      const { location } = await beginAt(browser, startAt({ url }, { publicKey }, "ada", { provider: "signed" }));
      const callback = await agree(location);
      return browser.visit(callback);
    };
    const killed = await startServe(folder, env);
    const ended = once(killed.child, "exit");
    // Stopped first: the answer is in its socket, and it never reads it.
    provider.beforeToken = () => void killed.child.kill("SIGSTOP");
    provider.afterToken = () => void killed.child.kill("SIGKILL");
    await expect(connectAt(killed)).rejects.toThrow();
    await ended;
    provider.beforeToken = undefined;
    provider.afterToken = undefined;
    expect(await stateOf()).not.toBe(0);
    const again = await startServe(folder, env);
    expect((await connectAt(again)).status).toBe(200);
    expect(await stateOf()).toBe(0);
    const [, call] = createCallers(again.url)[0] as readonly [string, Caller];
    const described = { url: `${provider.origin}/v1`, method: "GET" };
    expect(await call({ publicKey, userId: "ada", providerName: "signed", call: described })).toMatchObject({
      statusCode: 200,
    });
  });
});

describe("what was logged of all this", () => {
  it("has no secret and no token", () => {
    const text = harness.logLines.join("\n");
    expect(text).not.toContain("CANARY");
    expect(text).not.toContain(encodeURIComponent(provider.consumer.client_secret));
  });
});
