import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { type Browser, openBrowser, overHttp1, overHttp2, type Seen } from "./browser.js";
import { BACK, connectIn, pageAt, startAt, storedOf } from "./flow.js";

/** More than a page has room for. */
const CROWD = "Zoho,Zoom,Zulip,Äpfel,apple,Asana,Box,Canva,Canvas,Deel,Egnyte,Figma,1Password".split(",");
const MARKUP = `<img src=x onerror=alert(1)>"'&amp;`;
const ESCAPED = "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;amp;";
let revocation: TestTokenEndpoint;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  revocation = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    definitionsFor: (origin) => [
      { name: "odd", displayName: MARKUP, apiOrigins: [origin], oauth2: oauth2At(origin) },
      { name: "watched", apiOrigins: [origin], oauth2: { ...oauth2At(origin), revocationEndpoint: revocation.url } },
      ...CROWD.map((displayName, at) => ({
        ...{ name: `crowd${at}`, aliases: [`alias-${at}`], displayName },
        ...{ apiOrigins: [origin], oauth2: oauth2At(origin) },
      })),
    ],
  });
  application = await newApplication();
});

afterAll(async () => {
  await harness.close();
  await revocation.close();
});

const oauth2At = (origin: string) => ({
  authorizationEndpoint: `${origin}/oauth/authorize`,
  tokenEndpoint: `${origin}/oauth/token`,
});

async function newApplication(name = "Notes"): Promise<TestApplication> {
  const created = await harness.createApplication({ name, allowedRedirectUris: [BACK, `com.example.app:/"><b>`] });
  for (const provider of ["sandbox", "odd", "watched"]) await harness.putClient(created, provider);
  return created;
}

const pageFor = (user: string, query: Record<string, string> = {}, own = application) =>
  pageAt(harness, "/oauth/connect", { public_key: own.publicKey, user_id: user, ...query });
const sessionIn = ({ body }: Seen) => /name="session" value="([\w-]+)"/.exec(body)?.[1] ?? "";

const noticeOn = (body: string) => /role="status"><strong>([^<]*)\.<\/strong>/.exec(body)?.[1];
const statesOn = (body: string) =>
  [...body.matchAll(/<h2>([^<]*)<\/h2><p class="state[^"]*">([^<]*)<\/p>/g)].map(([, name, state]) => [name, state]);

async function disconnect(browser: Browser, provider: string, session: string): Promise<Seen> {
  return browser.post(`${harness.url}/oauth/connect`, { session, provider, action: "disconnect" });
}

describe("the connect page", () => {
  it("has each provider with its state, and what can be done", async () => {
    await harness.connect(application, "ada", { providerName: "odd" });
    await harness.connect(application, "ada", { providerName: "watched", expiresAt: 1 });
    const { status, body } = await openBrowser().visit(pageFor("ada", { redirect_uri: BACK }));
    expect(status).toBe(200);
    expect(body).toContain("<title>Connect accounts to Notes</title>");
    expect(statesOn(body)).toEqual([
      [ESCAPED, "Connected"],
      ["Sandbox", "Not connected"],
      ["watched", "No longer connected: connect again to keep using it"],
    ]);
    expect(body.match(/href="\/oauth\/connect\//g)).toHaveLength(3);
    expect(body).toContain(`<a href="${BACK}">Back to Notes</a>`);
    expect(body.match(/<form method="post"/g)).toHaveLength(2);
  });

  it("groups many providers by what is connected and by their first letter, and finds them", async () => {
    const own = await newApplication("Crowd");
    for (const at of CROWD.keys()) await harness.putClient(own, `crowd${at}`);
    await harness.connect(own, "eve", { providerName: "crowd1" });
    const browser = openBrowser();
    const seen = await browser.visit(pageFor("eve", {}, own));
    const titles = [...seen.body.matchAll(/<h2 class="group">([^<]*)</g)].map(([, title]) => title);
    expect(titles).toEqual(["Your accounts", "I", "1", "Ä", "A", "B", "C", "D", "E", "F", "S", "W", "Z"]);
    expect(statesOn(seen.body)[0]).toEqual(["Zoom", "Connected"]);
    expect(seen.body).toContain('role="search"');
    const find = async (search: string) => {
      const found = await browser.visit(pageAt(harness, "/oauth/connect", { session: sessionIn(seen), search }));
      return statesOn(found.body).map(([name]) => name);
    };
    expect(await find("CANVA")).toEqual(["Canva", "Canvas"]);
    expect(await find("alias-2")).toEqual(["Zulip"]);
    expect(await find("<b>")).toEqual([]);
  });

  it("shows what a template of its own could not hold: STYLE stays a name", async () => {
    const own = await newApplication("STYLE");
    const { body } = await openBrowser().visit(pageFor("ada", {}, own));
    expect(body).toContain("<title>Connect accounts to STYLE</title>");
    expect(body).toContain("<style>\n:root");
  });

  it("escapes every value", async () => {
    const own = await newApplication(MARKUP);
    await harness.connect(own, MARKUP, { providerName: "odd" });
    const { body } = await openBrowser().visit(pageFor(MARKUP, { redirect_uri: `com.example.app:/"><b>` }, own));
    expect(body).not.toContain("<img");
    expect(body).not.toContain(`"><b>`);
    expect(body.split(ESCAPED).length).toBeGreaterThan(6);
    expect(body).toContain('href="com.example.app:/&quot;&gt;&lt;b&gt;"');
  });

  it.each([
    ["an outcome", { provider: "sandbox", outcome: "success" }],
    ["an error", { provider: "sandbox", outcome: "error", error: MARKUP }],
  ])("does not tell of %s that an address from elsewhere claims", async (_, query) => {
    const { body } = await openBrowser().visit(pageFor("ada", query));
    expect(body).not.toContain('role="status"');
  });

  it.each([
    [{ provider: "sandbox", outcome: "success" }, "Sandbox is connected"],
    [{ provider: "sandbox", outcome: "error", error: "access_denied" }, "Sandbox is not connected"],
    [{ provider: "sandbox", outcome: "error", error: MARKUP }, "Sandbox is not connected"],
    [{ provider: "sandbox", outcome: "error", error: "constructor" }, "Sandbox is not connected"],
    [{ provider: "sandbox", outcome: "disconnected" }, "Sandbox is disconnected"],
    [{ provider: "sandbox", outcome: MARKUP }, undefined],
    [{ provider: MARKUP, outcome: "success" }, undefined],
  ])("tells what its own address says: %j", async (query, text) => {
    const browser = openBrowser();
    const session = sessionIn(await browser.visit(await connectedPage(browser)));
    const { body } = await browser.visit(pageAt(harness, "/oauth/connect", { session, ...query }));
    expect(noticeOn(body)).toBe(text);
    expect(body).not.toContain("<img");
  });

  it("takes aliases and names of nobody in its list without widening it", async () => {
    const { body } = await openBrowser().visit(pageFor("ada", { providers: "nobody, constructor" }));
    expect(body).toContain("has nothing to connect yet.");
    const many = Array.from({ length: 201 }, (_, at) => `p${at}`).join(",");
    expect((await openBrowser().visit(pageFor("ada", { providers: many }))).status).toBe(400);
  });
});

async function connectedPage(browser: Browser): Promise<string> {
  await harness.connect(application, "notices");
  return (await browser.visit(pageFor("notices"))).url;
}

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
])("disconnecting over %s", (protocol, send) => {
  it("ends the connection, here and at the provider", async () => {
    const user = `revoked ${protocol}`;
    const browser = openBrowser(send);
    await connectIn(browser, startAt(harness, application, user));
    const session = sessionIn(await browser.visit(pageFor(user)));
    const seen = await disconnect(browser, "sandbox", session);
    expect(seen.status).toBe(303);
    expect(noticeOn((await browser.visit(seen.location)).body)).toBe("Sandbox is disconnected");
    expect(await storedOf(harness, application, user)).toBeUndefined();
    expect(harness.sandbox.requests.at(-1)).toMatchObject({ method: "POST", target: "/oauth/revoke" });
    expect((await disconnect(browser, "sandbox", session)).location).toContain("outcome=disconnected");
  });

  it("says where the access remains when the provider was not told", async () => {
    const browser = openBrowser(send);
    await harness.connect(application, "remains", { providerName: "odd" });
    const session = sessionIn(await browser.visit(pageFor("remains")));
    const seen = await disconnect(browser, "odd", session);
    expect((await browser.visit(seen.location)).body).toContain("may still list the access that you gave");
  });
});

describe("disconnecting", () => {
  async function prepared(user: string): Promise<{ browser: Browser; session: string }> {
    const browser = openBrowser();
    await harness.connect(application, user);
    return { browser, session: sessionIn(await browser.visit(pageFor(user))) };
  }
  const stays = async (user: string) => expect(await storedOf(harness, application, user)).toBeDefined();

  it("needs the session of this browser", async () => {
    const { session } = await prepared("session");
    const other = openBrowser();
    await other.visit(pageFor("somebody"));
    expect((await disconnect(other, "sandbox", session)).status).toBe(403);
    // As a form on another site sends it: SameSite keeps the cookie back.
    expect((await disconnect(openBrowser(), "sandbox", session)).status).toBe(403);
    await stays("session");
  });

  it("needs a session, whatever else proves the user", async () => {
    const { browser } = await prepared("proof");
    const proof = { public_key: application.publicKey, user_id: "proof", provider: "sandbox", action: "disconnect" };
    expect((await browser.post(`${harness.url}/oauth/connect`, proof)).status).toBe(403);
    expect((await browser.post(pageFor("proof"), { provider: "sandbox", action: "disconnect" })).status).toBe(403);
    await stays("proof");
  });

  it.each([
    ["another action", { action: "connect" }, 400],
    ["no action", { action: "" }, 400],
    ["an unknown provider", { provider: "nobody" }, 404],
    ["a provider that is not listed", { provider: "odd" }, 403],
  ])("is refused with %s", async (_, change, status) => {
    const browser = openBrowser();
    await harness.connect(application, "listed");
    const session = sessionIn(await browser.visit(pageFor("listed", { providers: "sandbox" })));
    const form = { session, provider: "sandbox", action: "disconnect", ...change };
    expect((await browser.post(`${harness.url}/oauth/connect`, form)).status).toBe(status);
    await stays("listed");
  });

  it.each([
    ["JSON", "application/json", "{}", 400],
    ["plain text, as a form of another site may be", "text/plain", "session=x&action=disconnect", 400],
    ["twice the same field", "application/x-www-form-urlencoded", "action=disconnect&action=disconnect", 400],
    ["more than 32 KiB", "application/x-www-form-urlencoded", `action=${"x".repeat(33_000)}`, 413],
    ["a private key", "application/x-www-form-urlencoded", "action=disconnect&private_key=x", 403],
    ["bytes that are no UTF-8", "application/x-www-form-urlencoded", "action=disconnect&session=%FF", 400],
  ])("takes no %s", async (_, type, body, status) => {
    for (const send of [overHttp1, overHttp2]) {
      const headers = { "content-type": type };
      const seen = await openBrowser(send).visit(`${harness.url}/oauth/connect`, { method: "POST", headers, body });
      expect([seen.status, seen.headers["content-type"]]).toEqual([status, "text/html; charset=utf-8"]);
    }
  });

  it.each([
    ["answers 503", (response: { writeHead(status: number): { end(): void } }) => void response.writeHead(503).end()],
    ["hangs up", (response: { destroy(): void }) => void response.destroy()],
  ])("is done here even when the provider %s", async (_, play) => {
    revocation.play = (_body, response) => play(response as never);
    const browser = openBrowser();
    await harness.connect(application, "unheard", { providerName: "watched" });
    const session = sessionIn(await browser.visit(pageFor("unheard")));
    expect((await disconnect(browser, "watched", session)).location).toContain("outcome=disconnected_here");
    expect(await storedOf(harness, application, "unheard", "watched")).toBeUndefined();
  });
});
