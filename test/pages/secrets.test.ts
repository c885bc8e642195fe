import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLeakFinder, PART_LENGTH } from "../fuzz/canary.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answerJson, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { openBrowser, type Seen } from "./browser.js";
import { BACK, consent, pageAt, startAt, storedOf, withQuery } from "./flow.js";

const canary = (name: string) => `CANARY_${name}_${randomBytes(24).toString("hex")}`;
const ACCESS = canary("access");
const REFRESH = canary("refresh");
const REFRESHED = canary("refreshed");
const ID = canary("id");
const CLIENT_SECRET = canary("client");
const CODE = canary("code");

/** By name, all secrets that a run has made; those of one browser are its own to see. */
const secrets = new Map<string, string>();
const seen: Seen[] = [];
let endpoint: TestTokenEndpoint;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    definitionsFor: (origin) => [
      {
        name: "watched",
        apiOrigins: [origin],
        oauth2: {
          authorizationEndpoint: `${origin}/oauth/authorize`,
          tokenEndpoint: endpoint.url,
          revocationEndpoint: endpoint.url,
          pkce: true,
          clientAuthentication: "client_secret_post",
        },
      },
    ],
  });
  application = await harness.createApplication({ allowedRedirectUris: [BACK] });
  await harness.putClient(application, "watched", { client_secret: CLIENT_SECRET });
  for (const [name, secret] of Object.entries({ ACCESS, REFRESH, REFRESHED, ID, CLIENT_SECRET, CODE })) {
    secrets.set(name, secret);
  }
  secrets.set("private key", application.privateKey);
  await everythingOnce();
}, 30_000);

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

/** Every way a secret takes, those that fail too; a provider that says all it knows in its errors. */
async function everythingOnce(): Promise<void> {
  const granted = { access_token: ACCESS, refresh_token: REFRESH, id_token: ID, expires_in: 3600, scope: "a" };
  await flow(200, granted, "connected");
  await flow(400, { error: "invalid_grant", error_description: `${CODE} ${CLIENT_SECRET}` }, "refused");
  await flow(200, { access_token: `${ACCESS}\n`, refresh_token: REFRESH }, "malformed");
  await flow(500, { error: CLIENT_SECRET }, "failed");
  const link = await linkTo("linked");
  secrets.set("link", new URL(link).searchParams.get("link") ?? "");
  const browser = openBrowser();
  const { location } = await browser.visit(link);
  secrets.set("session", new URL(location).searchParams.get("session") ?? "");
  secrets.set("cookie", browser.cookies.get("relay-browser") ?? "");
  await browser.visit(location);
  for (const [name, secret] of secrets) {
    for (const path of ["/oauth/callback", "/oauth/connect", "/oauth/connect/watched", "/oauth/connections"]) {
      const query = { state: secret, code: secret, link: secret, error: secret, user_signature: secret, user_id: "a" };
      const asked = { ...query, public_key: application.publicKey, redirect_uri: secret, providers: secret };
      // The link itself would be opened by it.
      if (name !== "link") seen.push(await openBrowser().visit(pageAt(harness, path, asked)));
    }
  }
  endpoint.play = (_, response) => answerJson(response, 400, { error: "invalid_grant", error_description: REFRESH });
  await refresh("refused");
  endpoint.play = (_, response) => answerJson(response, 200, { access_token: REFRESHED, refresh_token: REFRESH });
  harness.sandbox.acceptToken(REFRESHED);
  await refresh("refreshed");
  const one = `/oauth/connections/watched`;
  const key = { public_key: application.publicKey, user_id: "connected" };
  seen.push(await openBrowser().visit(pageAt(harness, "/oauth/connections", key)));
  seen.push(await openBrowser().visit(pageAt(harness, one, key), { method: "DELETE" }));
}

async function flow(status: number, answer: object, user: string): Promise<void> {
  endpoint.play = (_, response) => answerJson(response, status, answer);
  const browser = openBrowser();
  const start = startAt(harness, application, user, { provider: "watched", redirect_uri: BACK });
  const callback = withQuery(await consent(browser, start), { code: CODE });
  secrets.set(`state, ${user}`, new URL(callback).searchParams.get("state") ?? "");
  secrets.set(`cookie, ${user}`, browser.cookies.get("relay-browser") ?? "");
  seen.push(await browser.visit(callback), await browser.visit(callback), await openBrowser().visit(callback));
  secrets.set(`verifier, ${user}`, endpoint.received.at(-1)?.get("code_verifier") ?? "");
}

async function linkTo(user: string): Promise<string> {
  const headers = { authorization: `Bearer ${application.privateKey}` };
  const body = JSON.stringify({ public_key: application.publicKey, user_id: user });
  const answer = await request(`${harness.url}/oauth/connect-links`, { method: "POST", headers, body });
  return ((await answer.body.json()) as { connectUri: string }).connectUri;
}

async function refresh(user: string): Promise<void> {
  const tokens = { accessToken: ACCESS, refreshToken: REFRESH, providerName: "watched", expiresAt: 1 };
  await harness.connect(application, user, tokens);
  const call = pageAt(harness, "/oauth/method/watched/call", { public_key: application.publicKey, user_id: user });
  const body = JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });
  seen.push(await openBrowser().visit(call, { method: "POST", body }));
}

/** Names of the secrets of which a text holds a part. */
function leaksIn(text: string): string[] {
  const finders = [...secrets].map(([name, secret]) => [name, createLeakFinder(secret, PART_LENGTH)] as const);
  return finders.filter(([, find]) => find(text) !== undefined).map(([name]) => name);
}

describe("the secrets of connecting", () => {
  it("are all there, and would be found", async () => {
    expect(secrets.size).toBe(7 + 3 * 4 + 3);
    expect([...secrets].filter(([, secret]) => secret.length < 40)).toEqual([]);
    expect(leaksIn(`x${Buffer.from(CLIENT_SECRET).toString("base64")}`)).toEqual(["CLIENT_SECRET"]);
    expect(endpoint.received.some((form) => form.get("client_secret") === CLIENT_SECRET)).toBe(true);
    expect(endpoint.received.some((form) => form.get("token") === REFRESH)).toBe(true);
    expect(await storedOf(harness, application, "refreshed", "watched")).toMatchObject({ version: 2 });
  });

  it("are in no log line", () => {
    const log = harness.logLines.join("");
    expect(log).toContain('"outcome":"success"');
    expect(log).toContain('"outcome":"invalid_grant"');
    expect(log).toContain('"msg":"disconnect"');
    expect(leaksIn(log)).toEqual([]);
  });

  it("are in no file of the store", () => {
    const files = readdirSync(harness.folder).filter((name) => name.startsWith("relay.db"));
    expect(files).toEqual(expect.arrayContaining(["relay.db", "relay.db-wal"]));
    for (const name of files) expect(leaksIn(readFileSync(join(harness.folder, name), "latin1"))).toEqual([]);
  });

  it("are in no page, address or field that a browser gets", () => {
    expect(seen.length).toBeGreaterThan(80);
    for (const { status, headers, body } of seen) {
      expect([status, leaksIn(JSON.stringify(headers) + body)]).toEqual([status, []]);
    }
  });
});
