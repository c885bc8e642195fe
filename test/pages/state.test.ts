import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { openBrowser } from "./browser.js";
import { BACK, connectIn, consent, startAt, storedOf, withQuery } from "./flow.js";

const ISSUER = "https://issuer.example";
const PROVIDERS = ["watched", "other", "named", "promised"];
let endpoint: TestTokenEndpoint;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    definitionsFor: (origin) =>
      PROVIDERS.map((name) => ({
        name,
        apiOrigins: [origin],
        oauth2: {
          authorizationEndpoint: `${origin}/oauth/authorize`,
          tokenEndpoint: endpoint.url,
          ...(name === "named" || name === "promised" ? { issuer: ISSUER } : {}),
          ...(name === "promised" ? { authorizationResponseIssParameterSupported: true } : {}),
        },
      })),
  });
  application = await newApplication();
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

async function newApplication(): Promise<TestApplication> {
  const created = await harness.createApplication({ allowedRedirectUris: [BACK] });
  for (const provider of PROVIDERS) await harness.putClient(created, provider);
  return created;
}

const start = (user: string, query: Record<string, string> = {}) =>
  startAt(harness, application, user, { provider: "watched", redirect_uri: BACK, ...query });

/** Redeemed codes so far. */
const redeemed = () => endpoint.received.length;

describe("state", () => {
  it("counts once", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("once"));
    expect((await browser.visit(callback)).location).toContain("outcome=success");
    const before = redeemed();
    const again = await browser.visit(callback);
    expect([again.status, again.location]).toEqual([400, ""]);
    expect(again.body).toContain("has already finished");
    expect(redeemed()).toBe(before);
  });

  it("counts once when the same answer comes ten times at once", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("at-once"));
    const before = redeemed();
    const seen = await Promise.all(Array.from({ length: 10 }, () => browser.visit(callback)));
    expect(seen.map(({ status }) => status).sort()).toEqual([303, ...Array(9).fill(400)]);
    expect(redeemed()).toBe(before + 1);
    expect(await storedOf(harness, application, "at-once", "watched")).toBeDefined();
  });

  it("counts once when it comes to two relays of one store at once", async () => {
    const peer = await harness.startPeer();
    const browser = openBrowser();
    const callback = await consent(browser, start("two-relays"));
    const elsewhere = callback.replace(harness.url, peer);
    const seen = await Promise.all([callback, elsewhere, callback, elsewhere].map((url) => browser.visit(url)));
    expect(seen.map(({ status }) => status).sort()).toEqual([303, 400, 400, 400]);
  });

  it.each([
    [
      "another browser that has begun one too",
      async () => {
        const other = openBrowser();
        await consent(other, start("other"));
        return other;
      },
    ],
    ["a browser that was never here", async () => openBrowser()],
    [
      "a browser with a cookie that is none",
      async () => {
        const other = openBrowser();
        other.cookies.set("relay-browser", "x");
        return other;
      },
    ],
  ])("is of no use to %s, and stays good for its own", async (_, open) => {
    const browser = openBrowser();
    const callback = await consent(browser, start("victim"));
    const before = redeemed();
    const stolen = await (await open()).visit(callback);
    expect([stolen.status, stolen.location]).toEqual([400, ""]);
    expect(redeemed()).toBe(before);
    expect((await browser.visit(callback)).location).toContain("outcome=success");
  });

  it("does not fix a stranger's attempt on a browser: its own code ends nowhere", async () => {
    const attacker = openBrowser();
    const callback = await consent(attacker, start("attacker"));
    const victim = openBrowser();
    const own = new URL(await consent(victim, start("victim-2")));
    const mixed = withQuery(callback, { code: own.searchParams.get("code") ?? "" });
    expect((await victim.visit(mixed)).status).toBe(400);
    expect(await storedOf(harness, application, "attacker", "watched")).toBeUndefined();
  });

  it("is not a browser's when somebody else has set a second cookie", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("tossed"));
    const good = `relay-browser=${browser.cookies.get("relay-browser")}`;
    const other = `relay-browser=${"A".repeat(43)}`;
    for (const cookie of [
      `${good}; ${other}`,
      `${other}; ${good}`,
      good.slice(0, -1),
      `${good}A`,
      `x${good}`,
      `"${good}"`,
    ]) {
      expect((await browser.visit(callback, { headers: { cookie } })).status).toBe(400);
    }
    expect((await browser.visit(callback, { headers: { cookie: `a=b;;${good} ; relay-browserx=1` } })).status).toBe(
      303,
    );
  });

  it("keeps two attempts of one browser apart, whichever ends first", async () => {
    const browser = openBrowser();
    const first = await consent(browser, start("two", { provider: "watched" }));
    const second = await consent(browser, start("two", { provider: "other" }));
    expect((await browser.visit(second)).location).toBe(`${BACK}?provider=other&outcome=success`);
    expect((await browser.visit(first)).location).toBe(`${BACK}?provider=watched&outcome=success`);
    const third = await consent(browser, start("two"));
    const fourth = await consent(browser, start("two"));
    expect((await browser.visit(third)).location).toContain("success");
    expect((await browser.visit(fourth)).location).toContain("success");
  });

  it("carries the user and the application: what the callback's address adds changes nothing", async () => {
    const other = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, start("mine"));
    const added = {
      user_id: "theirs",
      public_key: other.publicKey,
      provider: "other",
      redirect_uri: "https://evil.example",
    };
    expect((await browser.visit(withQuery(callback, added))).location).toBe(`${BACK}?provider=watched&outcome=success`);
    expect(await storedOf(harness, application, "mine", "watched")).toBeDefined();
    expect(await storedOf(harness, other, "theirs", "other")).toBeUndefined();
  });

  it.each([
    ["missing", undefined],
    ["empty", ""],
    ["short", "x"],
    ["of another alphabet", "/".repeat(43)],
    ["unknown", "A".repeat(43)],
    ["huge", "A".repeat(9000)],
    ["not UTF-8", "\ufffd".repeat(43)],
  ])("is refused when it is %s", async (_, state) => {
    const browser = openBrowser();
    const callback = await consent(browser, start("odd"));
    expect((await browser.visit(withQuery(callback, { state }))).status).toBe(400);
    expect((await browser.visit(callback)).status).toBe(303);
  });

  it("is refused when it stands twice, and stays good", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("twice"));
    const { searchParams } = new URL(callback);
    expect((await browser.visit(`${callback}&state=${searchParams.get("state")}`)).status).toBe(400);
    expect((await browser.visit(callback)).status).toBe(303);
  });
});

describe("an authorization response", () => {
  it.each([
    ["no code", { code: undefined }, "invalid_response"],
    ["an empty code", { code: "" }, "invalid_response"],
    ["an error beside the code", { error: "access_denied" }, "access_denied"],
    ["an error of no known form", { error: "<script>" }, "server_error"],
    ["an error that would begin a header", { error: "a\r\nset-cookie: x=y" }, "server_error"],
    ["an error that is a word of JavaScript", { error: "constructor" }, "constructor"],
    ["a token of the implicit grant", { token: "x" }, "invalid_response"],
    ["an id_token", { id_token: "x" }, "invalid_response"],
    ["a signed response", { response: "a.b.c" }, "invalid_response"],
    ["an unknown code", { code: "unknown" }, "invalid_grant"],
    ["a code of control characters", { code: "\u0000\r\n" }, "invalid_grant"],
    ["a huge code", { code: "x".repeat(9000) }, "invalid_grant"],
  ])("with %s ends in an error that the application can read", async (_, changes, error) => {
    const browser = openBrowser();
    const callback = await consent(browser, start("odd-answer"));
    const before = redeemed();
    const seen = await browser.visit(withQuery(callback, changes));
    expect(seen.headers["location"]).toBe(`${BACK}?provider=watched&outcome=error&error=${error}`);
    expect(redeemed() - before).toBe(error === "invalid_grant" ? 1 : 0);
    expect((await browser.visit(callback)).status).toBe(400);
    expect(await storedOf(harness, application, "odd-answer", "watched")).toBeUndefined();
  });

  it.each(["code", "error", "iss"])("with %s twice is none", async (name) => {
    const browser = openBrowser();
    const callback = await consent(browser, start("repeated"));
    const before = redeemed();
    const seen = await browser.visit(`${callback}&${name}=access_denied&${name}=access_denied`);
    expect(seen.location).toContain("error=invalid_response");
    expect(redeemed()).toBe(before);
  });

  it.each([
    ["named", "another issuer", () => "https://evil.example", "error&error=invalid_response"],
    ["named", "the issuer in another case", () => ISSUER.toUpperCase(), "error&error=invalid_response"],
    ["named", "the issuer with a slash", () => `${ISSUER}/`, "error&error=invalid_response"],
    ["named", "an endpoint's origin", () => harness.sandbox.origin, "error&error=invalid_response"],
    ["named", "the issuer", () => ISSUER, "success"],
    // As most providers that have an issuer answer.
    ["named", "no issuer", () => undefined, "success"],
    ["promised", "no issuer", () => undefined, "error&error=invalid_response"],
    ["promised", "another issuer", () => "https://evil.example", "error&error=invalid_response"],
    ["promised", "the issuer", () => ISSUER, "success"],
    ["watched", "another issuer", () => "https://evil.example", "error&error=invalid_response"],
    ["watched", "what is no url", () => "unknown", "error&error=invalid_response"],
    ["watched", "what is no url of a server", () => "data:,x", "error&error=invalid_response"],
    ["watched", "another port", () => "http://127.0.0.1:1", "error&error=invalid_response"],
    ["watched", "an issuer at the authorization endpoint", () => `${harness.sandbox.origin}/tenant/v2.0`, "success"],
    ["watched", "an issuer at the token endpoint", () => new URL(endpoint.url).origin, "success"],
  ])("of the provider %s that names %s is judged by RFC 9207", async (provider, _, iss, outcome) => {
    const browser = openBrowser();
    const callback = await consent(browser, start("issuer", { provider }));
    const before = redeemed();
    const seen = await browser.visit(withQuery(callback, { iss: iss() }));
    expect(seen.headers["location"]).toBe(`${BACK}?provider=${provider}&outcome=${outcome}`);
    expect(redeemed() - before).toBe(outcome === "success" ? 1 : 0);
  });

  it("that says no is not believed when it is another issuer's", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("issuer-error"));
    const changes = { iss: "https://evil.example", error: "access_denied", code: undefined };
    expect((await browser.visit(withQuery(callback, changes))).location).toContain("error=invalid_response");
  });
});

describe("what changed while the user was at the provider", () => {
  it("a disabled application connects nobody", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: "watched", redirect_uri: BACK }));
    await harness.store.applications.update(own.publicKey, { state: "DISABLED" }, Date.now());
    const before = redeemed();
    expect((await browser.visit(callback)).status).toBe(401);
    expect(redeemed()).toBe(before);
  });

  it("another application with the same public key is another one", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: "watched", redirect_uri: BACK }));
    await harness.store.applications.delete(own.publicKey);
    expect((await browser.visit(callback)).status).toBe(400);
  });

  it("an address that is no longer listed is not gone back to", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: "watched", redirect_uri: BACK }));
    await harness.store.applications.update(own.publicKey, { allowedRedirectUris: [] }, Date.now());
    const seen = await browser.visit(callback);
    expect([seen.status, seen.location]).toEqual([200, ""]);
    expect(seen.body).toContain("watched is connected");
  });

  it("a client that was taken away is told as the operator's trouble", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: "watched", redirect_uri: BACK }));
    await harness.store.oauthClients.delete(own.id, "watched");
    expect((await browser.visit(callback)).location).toContain("error=invalid_client");
  });

  it("a provider that was taken out of the catalogue is named as the reason", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, start("removed", { provider: "other" }));
    const file = join(harness.folder, `provider-${1 + PROVIDERS.indexOf("other")}.json`);
    const definition = readFileSync(file, "utf8");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(definition), name: "renamed" }));
    const restarted = await harness.startPeer();
    writeFileSync(file, definition);
    const before = redeemed();
    const seen = await browser.visit(callback.replace(harness.url, restarted));
    expect([seen.status, seen.location]).toEqual([404, ""]);
    expect(seen.body).toContain("This relay has no definition for other.");
    expect(redeemed()).toBe(before);
  });

  it("a new private key ends every attempt", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, own, "ada", { provider: "watched", redirect_uri: BACK }));
    const { privateKeyHash } = (await harness.store.applications.findByPublicKey(own.publicKey)) ?? {};
    await harness.store.applications.update(
      own.publicKey,
      { privateKeyHash: privateKeyHash as Uint8Array },
      Date.now(),
    );
    expect((await browser.visit(callback)).status).toBe(400);
  });
});

it("an error that is a word of JavaScript is told on the page, too", async () => {
  const browser = openBrowser();
  const callback = await consent(browser, startAt(harness, application, "ada", { provider: "watched" }));
  const seen = await browser.visit(withQuery(callback, { error: "constructor" }));
  expect(seen.status).toBe(400);
  expect(seen.body).toContain("constructor</p>");
});

it("a user who connects again gets the new tokens", async () => {
  await connectIn(openBrowser(), start("again"));
  const first = await storedOf(harness, application, "again", "watched");
  await connectIn(openBrowser(), start("again"));
  const second = await storedOf(harness, application, "again", "watched");
  expect(second?.version).toBe(2);
  expect(second?.id).not.toBe(first?.id);
});
