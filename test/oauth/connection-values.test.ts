import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAdminClients } from "../admin/admin-bed.js";
import { openBrowser } from "../pages/browser.js";
import { begin, pageAt, startAt, storedOf } from "../pages/flow.js";
import { type Caller, createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";

const TOKEN = "CANARY_access_of_crm";
const INSTANCE = "https://acme.my.crm.example";
const GRANTED = { access_token: TOKEN, refresh_token: "CANARY_refresh", instance_url: INSTANCE };
const asText = (answer: object | string) => (typeof answer === "string" ? answer : JSON.stringify(answer));
const asked: string[] = [];
let provider: RecordingProvider;
let harness: Harness;
let application: TestApplication;
let tokenAnswer: object | string = {};

beforeAll(async () => {
  provider = await startRecordingProvider((request) => {
    if (request.target.endsWith("/token")) return { body: asText(tokenAnswer) };
    if (request.target === "/erp") return { body: '\uFEFF{"id":9007199254740993}' };
    if (request.target === "/me") return { body: '{"orgs":[{"id":17}]}' };
    return { body: JSON.stringify(request) };
  });
  harness = await startHarness({
    providers: [crm(provider.origin), erp(provider.origin)],
    upstream: {
      resolve: async (hostname) => {
        asked.push(hostname);
        throw new Error("there is no name service in a test");
      },
    },
  });
  application = await harness.createApplication();
  await harness.putClient(application, "crm", {
    client_id: "client of crm",
    client_secret: "s+cret",
    originParameters: { ru_name: "Acme-RU" },
  });
});
beforeEach(() => {
  asked.length = 0;
  tokenAnswer = GRANTED;
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

function crm(origin: string): object {
  return {
    name: "crm",
    apiOrigins: [origin, "https://{instance}"],
    connectionValues: [
      { name: "instance", tokenMember: "instance_url", hosts: ["*.my.crm.example", "crm.example.com"] },
      { name: "realm", callbackParameter: "realmId", pattern: "[\\d.]{1,9}" },
      { name: "org", lookup: { url: `${origin}/me`, member: "orgs.0.id" } },
      { name: "client_id", client: true },
      { name: "ru_name", client: true },
      { name: "team", optional: true, label: "Team" },
    ],
    defaultHeaders: { "x-org": "{org}", "x-client": "{client_id}", "x-team": "{team}", "x-fixed": "1" },
    oauth2: {
      authorizationEndpoint: `${origin}/authorize`,
      tokenEndpoint: `${origin}/{realm}/token`,
      rawClientSecretBasic: true,
      authorizationParameters: { redirect_uri: "{ru_name}", team: "{team}", prompt: "consent" },
      codeParameters: { redirect_uri: "{ru_name}", state: "{state}" },
      tokenParameters: { realm: "{realm}", team: "{team}" },
      connectParameters: ["login_hint", "prompt"],
      expiresAtMember: "ends",
    },
  };
}

/** Of which some values have defaults, and some are long numbers. */
function erp(origin: string): object {
  return {
    name: "erp",
    apiOrigins: [origin, "https://{api_host}", "https://api.{region}.erp.example"],
    connectionValues: [
      { name: "api_host", tokenMember: "host", hosts: ["*.erp.example"], defaultValue: "www.erp.example" },
      { name: "account", tokenMember: "account.id" },
      { name: "organisation", lookup: { url: `${origin}/erp`, member: "id" } },
      { name: "region", choices: [{ value: "us" }, { value: "eu" }], defaultValue: "us" },
      { name: "unit", optional: true, lookup: { url: "https://{api_host}/units", member: "id" } },
    ],
    oauth2: { authorizationEndpoint: `${origin}/authorize`, tokenEndpoint: `${origin}/erp/token` },
  };
}

/** Goes to the provider and comes back with these parameters. */
async function connect(
  userId: string,
  returned: Record<string, string>,
  start: Record<string, string> = { team: "t1" },
  by = application,
) {
  const browser = openBrowser();
  const begun = await begin(browser, startAt(harness, by, userId, { provider: "crm", ...start }));
  const request = new URL(begun.location).searchParams;
  const back = { code: "c", state: request.get("state") ?? "", ...returned };
  const seen = await browser.visit(pageAt(harness, "/oauth/callback", back));
  return { request, seen };
}

const keyOf = (userId: string) => ({ publicKey: application.publicKey, userId, providerName: "crm" });
async function callAs(userId: string, url: string) {
  const [, call] = createCallers(harness.url)[0] as readonly [string, Caller];
  return call({ ...keyOf(userId), call: { url, method: "GET" } });
}
const values = {
  instance: "acme.my.crm.example",
  realm: "42",
  org: "17",
  client_id: "client of crm",
  ru_name: "Acme-RU",
};

describe("values of a connection", () => {
  it("come from the user, the operator, the callback, the token response and a look-up, and are used", async () => {
    const { request, seen } = await connect("ada", { realmId: "42" }, { team: "t1", login_hint: "ada@example.com" });
    expect([...request]).toEqual(
      expect.arrayContaining([
        ["redirect_uri", "Acme-RU"],
        ["team", "t1"],
        ["prompt", "consent"],
        ["login_hint", "ada@example.com"],
      ]),
    );
    expect(seen.status).toBe(200);
    const [token, me] = provider.requests.slice(-2);
    expect(token?.target).toBe("/42/token");
    expect(Object.fromEntries(new URLSearchParams(token?.body))).toMatchObject({
      realm: "42",
      team: "t1",
      redirect_uri: "Acme-RU",
      state: request.get("state"),
    });
    expect(token?.headers.authorization).toBe(`Basic ${Buffer.from("client of crm:s+cret").toString("base64")}`);
    expect(me).toMatchObject({
      method: "GET",
      target: "/me",
      headers: { authorization: `Bearer ${TOKEN}`, "x-team": "t1" },
    });
    expect((await storedOf(harness, application, "ada", "crm"))?.originParameters).toEqual({ ...values, team: "t1" });
    const row = await callAs("ada", `${provider.origin}/x`);
    expect(row).toMatchObject({ statusCode: 200 });
    expect(provider.requests.at(-1)?.headers).toMatchObject({
      "x-org": "17",
      "x-client": "client of crm",
      "x-team": "t1",
      "x-fixed": "1",
    });
  });

  it("are shown to the application and the operator", async () => {
    const admin = await createAdminClients(harness).connections.getConnection(keyOf("ada"));
    expect(admin.originParameters).toMatchObject(values);
    const query = { public_key: application.publicKey, user_id: "ada" };
    const listed = JSON.parse((await openBrowser().visit(pageAt(harness, "/oauth/connections", query))).body);
    expect(listed.connections[0].originParameters).toMatchObject(values);
  });

  it("say to which host a token may go, and no other", async () => {
    expect(await callAs("ada", `${INSTANCE}/x`)).toMatchObject({ errorType: "PROVIDER_UNREACHABLE" });
    expect(asked).toEqual(["acme.my.crm.example"]);
    for (const url of ["https://other.my.crm.example/x", "https://crm.example.com/x", "https://evil.example/x"]) {
      expect(await callAs("ada", url)).toMatchObject({ errorType: "URL_NOT_ALLOWED" });
    }
    expect(asked).toEqual(["acme.my.crm.example"]);
  });

  it("that are optional and not given leave headers and parameters out", async () => {
    const browser = openBrowser();
    const form = await browser.visit(startAt(harness, application, "bob", { provider: "crm" }));
    expect(form.body).toContain('<label for="team">Team (optional)</label>');
    const [, session = ""] = /name="session" value="([\w-]+)"/.exec(form.body) ?? [];
    const begun = await browser.visit(pageAt(harness, "/oauth/connect/crm", { session, answer: "1" }));
    const [, uri = ""] = /0; url=([^"]+)"/.exec(begun.body) ?? [];
    const request = new URL(uri.replaceAll("&amp;", "&")).searchParams;
    expect(request.has("team")).toBe(false);
    await browser.visit(
      pageAt(harness, "/oauth/callback", { code: "c", state: request.get("state") ?? "", realmId: "7" }),
    );
    expect(new URLSearchParams(provider.requests.at(-2)?.body).has("team")).toBe(false);
    await callAs("bob", `${provider.origin}/x`);
    expect(provider.requests.at(-1)?.headers["x-team"]).toBeUndefined();
  });

  it("change with a refresh that tells others, and stay with one that tells what they cannot be", async () => {
    tokenAnswer = { ...GRANTED, expires_in: 1 };
    await connect("eve", { realmId: "9" });
    const expire = async (answer: object) => {
      const stored = await storedOf(harness, application, "eve", "crm");
      if (stored === undefined) throw new Error("not connected");
      await harness.store.connections.put({ ...stored, obtainedAt: 1, expiresAt: 2 }, Date.now());
      tokenAnswer = { access_token: TOKEN, expires_in: 3600, ...answer };
      expect(await callAs("eve", `${provider.origin}/x`)).toMatchObject({ statusCode: 200 });
      return (await storedOf(harness, application, "eve", "crm"))?.originParameters["instance"];
    };
    expect(await expire({ instance_url: "https://beta.my.crm.example" })).toBe("beta.my.crm.example");
    expect(provider.requests.at(-2)?.target).toBe("/9/token");
    expect(await expire({ instance_url: "https://evil.example" })).toBe("beta.my.crm.example");
    expect(await expire({})).toBe("beta.my.crm.example");
    expect(await expire({ instance_url: "https://crm.example.com" })).toBe("crm.example.com");
  });

  it("stand with tokens that an operator stores", async () => {
    const { connections } = createAdminClients(harness);
    const tokenResponse = JSON.stringify({ access_token: TOKEN, instance_url: INSTANCE, ends: 1 });
    const put = await connections.putConnection({ ...keyOf("pat"), originParameters: { realm: "5" }, tokenResponse });
    expect(put.originParameters).toEqual({
      instance: "acme.my.crm.example",
      realm: "5",
      client_id: "client of crm",
      ru_name: "Acme-RU",
    });
  });
});

describe("what a callback or a token response tells that a value cannot be", () => {
  it.each([
    [{ realmId: ".." }, {}],
    [{ realmId: "a/b" }, {}],
    [{ realmId: "4\r\n2" }, {}],
    [{ realmId: "{org}" }, {}],
    [{ realmId: "4".repeat(5000) }, {}],
    [{}, {}],
    [{ realmId: "42" }, { instance_url: "https://evil.example" }],
    [{ realmId: "42" }, { instance_url: "https://my.crm.example" }],
    [{ realmId: "42" }, { instance_url: "https://acme.my.crm.example@evil.example" }],
    [{ realmId: "42" }, { instance_url: "https://\u0430cme.my.crm.example" }],
    [{ realmId: "42" }, { instance_url: "https://{realm}.my.crm.example" }],
    [{ realmId: "42" }, { instance_url: `https://${"a".repeat(65_536)}.my.crm.example` }],
    [{ realmId: "42" }, { instance_url: { url: INSTANCE } }],
    [{ realmId: "42" }, { instance_url: undefined }],
  ])("%# ends in no connection and no stray look-up: %o %o", async (returned, answer) => {
    tokenAnswer = { ...GRANTED, ...answer };
    const { seen } = await connect("mallory", returned);
    expect(seen.status).toBe(400);
    expect(seen.body).toContain("invalid_response");
    expect(await storedOf(harness, application, "mallory", "crm")).toBeUndefined();
    expect(asked).toEqual([]);
    expect(provider.requests.every(({ target }) => /^\/(?:\d+\/token|me|x)$/.test(target))).toBe(true);
  });
});

describe("habits of a provider", () => {
  it("let an application set the parameters that the definition lists, and no other", async () => {
    const { request } = await connect(
      "hints",
      { realmId: "1" },
      { team: "t", prompt: "login", response_type: "token", scope: "s" },
    );
    expect([request.getAll("prompt"), request.getAll("response_type")]).toEqual([["login"], ["code"]]);
    const CRM = { provider_name: "crm", origin_parameters: { team: "t" } };
    const link = (authorization_parameters: object, target: object = CRM) =>
      fetch(`${harness.url}/oauth/connect-links`, {
        method: "POST",
        headers: { authorization: `Bearer ${application.privateKey}`, "content-type": "application/json" },
        body: JSON.stringify({
          ...{ public_key: application.publicKey, user_id: "hints", authorization_parameters },
          ...target,
        }),
      });
    const made = (await (await link({ login_hint: "a@b.c" })).json()) as { connectUri: string };
    const begun = await begin(openBrowser(), made.connectUri.replace(/^https?:\/\/[^/]+/, harness.url));
    expect(new URL(begun.location).searchParams.get("login_hint")).toBe("a@b.c");
    for (const [target, problem] of [
      [CRM, "does not list in connectParameters"],
      [{}, "authorization_parameters need a single provider"],
    ] as const) {
      const refused = await link({ state: "x" }, target);
      expect(refused.status).toBe(400);
      expect(await refused.text()).toContain(problem);
    }
  });

  it("let a provider's form bring the answer, without the tokens in it", async () => {
    const browser = openBrowser();
    const begun = await begin(browser, startAt(harness, application, "form", { provider: "crm", team: "t" }));
    const state = new URL(begun.location).searchParams.get("state") ?? "";
    const form = { code: "c", state, realmId: "3", id_token: "CANARY", user: '{"name":"Ada"}' };
    // As it comes from another site: without the cookie.
    const posted = await openBrowser().post(`${harness.url}/oauth/callback`, form);
    expect([posted.status, posted.location.includes("CANARY")]).toEqual([303, false]);
    expect((await browser.visit(posted.location)).status).toBe(200);
    expect((await storedOf(harness, application, "form", "crm"))?.originParameters["realm"]).toBe("3");
    const long = await openBrowser().post(`${harness.url}/oauth/callback`, { ...form, user: "x".repeat(7000) });
    expect(long.status).toBe(400);
  });

  it("tell when a token ends by a time of its own", async () => {
    const endsAt = Math.floor(Date.now() / 1000) + 1000;
    for (const ends of [endsAt, String(endsAt), endsAt * 1000, new Date(endsAt * 1000).toISOString()]) {
      tokenAnswer = { access_token: TOKEN, instance_url: INSTANCE, expires_in: 60, ends };
      await connect("ends", { realmId: "1" });
      const { expiresAt = 0 } = (await storedOf(harness, application, "ends", "crm")) ?? {};
      expect(Math.abs(expiresAt / 1000 - endsAt)).toBeLessThan(30);
    }
    tokenAnswer = { access_token: TOKEN, instance_url: INSTANCE, ends: "CANARY" };
    await connect("ends", { realmId: "1" });
    expect((await storedOf(harness, application, "ends", "crm"))?.expiresAt).toBeUndefined();
  });
});

describe("values with defaults, and long numbers", () => {
  const ID = "9007199254740993";
  const answered = (members = "") => `{"access_token":"${TOKEN}","account":{"id":${ID}}${members}}`;
  let ofErp: TestApplication;
  beforeAll(async () => {
    ofErp = await harness.createApplication();
    await harness.putClient(ofErp, "erp", { client_id: "c", originParameters: { region: "eu" } });
  });

  it.each([
    ["nothing", "", "www.erp.example"],
    ["what it cannot be", ',"host":"evil.example"', "www.erp.example"],
    ["another", ',"host":"https://app-eu.erp.example/"', "app-eu.erp.example"],
  ])("a browser brings them where the token response tells %s", async (name, members, api_host) => {
    tokenAnswer = answered(members);
    const { seen } = await connect(name, {}, { provider: "erp" }, ofErp);
    expect(seen.status).toBe(200);
    const stored = await storedOf(harness, ofErp, name, "erp");
    expect(stored?.originParameters).toEqual({ api_host, region: "eu", account: ID, organisation: ID });
    expect(asked).toEqual([api_host]);
  });

  it("a default counts only where neither the operator, nor the client, nor the token response says otherwise", async () => {
    const { connections } = createAdminClients(harness);
    const put = async (of: TestApplication, tokenResponse: string, originParameters = {}) => {
      const key = { publicKey: of.publicKey, userId: "put", providerName: "erp" };
      return (await connections.putConnection({ ...key, tokenResponse, originParameters })).originParameters;
    };
    const other = await harness.createApplication();
    const host = ',"host":"app-eu.erp.example"';
    expect(await put(other, answered())).toEqual({ api_host: "www.erp.example", region: "us", account: ID });
    expect(await put(other, answered(host))).toMatchObject({ api_host: "app-eu.erp.example", region: "us" });
    expect(await put(ofErp, answered())).toMatchObject({ region: "eu" });
    expect(await put(ofErp, answered(host), { region: "us", api_host: "x.erp.example" })).toMatchObject({
      ...{ region: "us", api_host: "x.erp.example" },
    });
  });
});
