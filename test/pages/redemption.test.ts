import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answerJson, type PlayToken, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { openBrowser } from "./browser.js";
import { BACK, begin, connectIn, consent, pageAt, startAt, storedOf } from "./flow.js";

const PROVIDER = "watched";
let endpoint: TestTokenEndpoint;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startWatched();
  application = await newApplication(harness);
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

function startWatched(): Promise<Harness> {
  return startHarness({
    definitionsFor: (origin) => [
      {
        name: PROVIDER,
        apiOrigins: [origin],
        oauth2: {
          authorizationEndpoint: `${origin}/oauth/authorize`,
          tokenEndpoint: endpoint.url,
          revocationEndpoint: `${origin}/oauth/revoke`,
          pkce: true,
        },
      },
    ],
  });
}

async function newApplication(of: Harness): Promise<TestApplication> {
  const created = await of.createApplication({ allowedRedirectUris: [BACK] });
  await of.putClient(created, PROVIDER);
  return created;
}

const start = (user: string) => startAt(harness, application, user, { provider: PROVIDER, redirect_uri: BACK });
const pass: PlayToken = (_body, _response, through) => through();

/** Connects with a token endpoint that plays this; returns the error that the application is told. */
async function errorWith(play: PlayToken): Promise<string | null> {
  endpoint.play = play;
  const before = endpoint.received.length;
  const seen = await connectIn(openBrowser(), start("refused"));
  expect(endpoint.received.length).toBe(before + 1);
  expect(await storedOf(harness, application, "refused", PROVIDER)).toBeUndefined();
  return new URL(seen.location).searchParams.get("error");
}

describe("the request for the tokens", () => {
  it("carries code, redirect address and verifier, each once, and no token of ours", async () => {
    endpoint.play = pass;
    await connectIn(openBrowser(), start("request"));
    const form = endpoint.received.at(-1);
    expect([...(form?.keys() ?? [])].sort()).toEqual(["code", "code_verifier", "grant_type", "redirect_uri"]);
    expect(form?.get("redirect_uri")).toBe(`${harness.url}/oauth/callback`);
  });
});

describe("a token endpoint that", () => {
  it.each<[string, string, PlayToken]>([
    ["says invalid_grant", "invalid_grant", (_, response) => answerJson(response, 400, { error: "invalid_grant" })],
    ["says invalid_client", "invalid_client", (_, response) => answerJson(response, 401, { error: "invalid_client" })],
    ["answers 401 without a word", "server_error", (_, response) => void response.writeHead(401).end()],
    ["says something else", "server_error", (_, response) => answerJson(response, 400, { error: "<b>" })],
    ["answers 500", "temporarily_unavailable", (_, response) => void response.writeHead(500).end("<html>")],
    ["answers 429", "temporarily_unavailable", (_, response) => answerJson(response, 429, {})],
    ["answers garbage", "temporarily_unavailable", (_, response) => void response.writeHead(200).end("\u0000garbage")],
    ["answers nothing", "temporarily_unavailable", (_, response) => void response.writeHead(200).end()],
    ["answers without a token", "temporarily_unavailable", (_, response) => answerJson(response, 200, { ok: true })],
    ["hangs up", "temporarily_unavailable", (_, response) => void response.destroy()],
    [
      "redirects",
      "temporarily_unavailable",
      (_, response) => void response.writeHead(307, { location: `${harness.sandbox.origin}/oauth/token` }).end(),
    ],
    [
      "gives a token that would begin a header",
      "temporarily_unavailable",
      (_, response) => answerJson(response, 200, { access_token: "a\r\nset-cookie: b=c" }),
    ],
    [
      "gives a token that is none",
      "temporarily_unavailable",
      (_, response) => answerJson(response, 200, { access_token: { toString: "x" } }),
    ],
    [
      "answers with more than a token response can be",
      "temporarily_unavailable",
      (_, response) => answerJson(response, 200, { access_token: "x", more: "x".repeat(1024 * 1024) }),
    ],
  ])("%s: the application is told %s, and the code is not shown again", async (_, error, play) => {
    expect(await errorWith(play)).toBe(error);
  });

  it("answers as a form is understood", async () => {
    endpoint.play = (_, response) => void response.writeHead(200).end("access_token=form-token&scope=a%20b");
    expect((await connectIn(openBrowser(), start("form"))).location).toContain("outcome=success");
    expect(await storedOf(harness, application, "form", PROVIDER)).toMatchObject({ scope: "a b" });
  });
});

/** Keeps the answer back until it is let go. */
function held(): { readonly play: PlayToken; readonly asked: Promise<void>; letGo(): void } {
  let asked: () => void;
  let letGo: () => void;
  const whenAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const whenFree = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const play: PlayToken = async (_body, _response: ServerResponse, through) => {
    asked();
    await whenFree;
    await through();
  };
  return { play, asked: whenAsked, letGo: () => letGo() };
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Longer than one write is tried, which tells that it is tried again. Milliseconds. */
const LOCKED_MS = 1500;

/** Keeps everybody else from writing until it is called. */
function lock({ folder }: Pick<Harness, "folder">): () => void {
  const db = new Database(join(folder, "relay.db"));
  db.exec("BEGIN IMMEDIATE");
  return () => {
    db.exec("COMMIT");
    db.close();
  };
}

describe("while the code is redeemed", () => {
  it("the browser may leave: the connection is stored", async () => {
    const hold = held();
    endpoint.play = hold.play;
    const browser = openBrowser();
    const { pathname, search, port } = new URL(await consent(browser, start("leaves")));
    const socket = connect(Number(port), "127.0.0.1");
    const cookie = `relay-browser=${browser.cookies.get("relay-browser")}`;
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: relay\r\ncookie: ${cookie}\r\n\r\n`);
    await hold.asked;
    socket.destroy();
    hold.letGo();
    expect(await until(() => storedOf(harness, application, "leaves", PROVIDER))).toMatchObject({ state: "ACTIVE" });
  });

  it("the store may be locked for a while: the connection is stored", async () => {
    const hold = held();
    endpoint.play = hold.play;
    const browser = openBrowser();
    const seen = consent(browser, start("locked")).then((callback) => browser.visit(callback));
    await hold.asked;
    const unlock = lock(harness);
    hold.letGo();
    await new Promise((resolve) => setTimeout(resolve, LOCKED_MS));
    expect(await storedOf(harness, application, "locked", PROVIDER)).toBeUndefined();
    unlock();
    expect((await seen).location).toContain("outcome=success");
    expect(await storedOf(harness, application, "locked", PROVIDER)).toBeDefined();
  });

  it("the application may be deleted: nothing is stored, the tokens are revoked, and the page says so", async () => {
    const hold = held();
    endpoint.play = hold.play;
    const own = await newApplication(harness);
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: PROVIDER, redirect_uri: BACK }));
    const seen = browser.visit(callback);
    await hold.asked;
    await harness.store.applications.delete(own.publicKey);
    const revocations = () => harness.sandbox.requests.filter(({ target }) => target === "/oauth/revoke").length;
    const before = revocations();
    hold.letGo();
    expect(await seen).toMatchObject({ status: 401, location: "" });
    expect(revocations()).toBe(before + 1);
  });

  it("the service may be told to stop: it waits for what it has begun", async () => {
    const own = await startWatched();
    const ownApplication = await newApplication(own);
    const hold = held();
    endpoint.play = async (body, response) => {
      await hold.play(body, response, async () => answerJson(response, 200, { access_token: "late-token-1" }));
    };
    const browser = openBrowser();
    const begun = await begin(browser, startAt(own, ownApplication, "stop", { provider: PROVIDER }));
    const callback = (await openBrowser().visit(begun.location)).location;
    const left = browser.visit(callback).catch(() => "left");
    await hold.asked;
    const stored = new Database(join(own.folder, "relay.db"), { readonly: true });
    const closed = own.closeRelay();
    // The grace of a second is over before the provider answers.
    expect(await left).toBe("left");
    // The tokens come while nothing can be written: it is the writing that must be waited for.
    const unlock = lock(own);
    hold.letGo();
    await new Promise((resolve) => setTimeout(resolve, LOCKED_MS));
    unlock();
    await closed;
    expect(stored.prepare("SELECT user_id FROM connections").pluck().all()).toEqual(["stop"]);
    stored.close();
    await own.close();
  });
});

describe("disconnecting while a token is refreshed", () => {
  it("stays done, whatever the provider answers then", async () => {
    const hold = held();
    endpoint.play = hold.play;
    const { refresh_token: refreshToken } = harness.sandbox.issueToken();
    await harness.connect(application, "racing", { providerName: PROVIDER, refreshToken, expiresAt: 1 });
    const query = { user_id: "racing", public_key: application.publicKey };
    const call = openBrowser().visit(pageAt(harness, `/oauth/method/${PROVIDER}/call`, query), {
      method: "POST",
      body: JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" }),
    });
    await hold.asked;
    const deleted = await openBrowser().visit(pageAt(harness, `/oauth/connections/${PROVIDER}`, query), {
      method: "DELETE",
    });
    expect(deleted.status).toBe(200);
    hold.letGo();
    expect(JSON.parse((await call).body)).toMatchObject({ rows: [{ pincStatus: "error", statusCode: 401 }] });
    expect(await storedOf(harness, application, "racing", PROVIDER)).toBeUndefined();
  });
});
