import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type Browser, openBrowser } from "./browser.js";
import { BACK, connectIn, linkTo, pageAt, storedOf } from "./flow.js";

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({
    definitionsFor: (origin) =>
      ["second", "third"].map((name) => ({
        name,
        aliases: [`${name}-alias`],
        apiOrigins: [origin],
        oauth2: { authorizationEndpoint: `${origin}/oauth/authorize`, tokenEndpoint: `${origin}/oauth/token` },
      })),
  });
  application = await newApplication();
});

afterAll(() => harness.close());

async function newApplication(): Promise<TestApplication> {
  const created = await harness.createApplication({ callerAuth: "PRIVATE_KEY", allowedRedirectUris: [BACK] });
  for (const provider of ["sandbox", "second", "third"]) await harness.putClient(created, provider);
  return created;
}

const linkFor = (user: string, more: object = {}, own = application) => linkTo(harness, own, user, more);

/** Opens a link to the page; returns the page's own address and what stands there. */
async function openPage(browser: Browser, link: string) {
  const opened = await browser.visit(link);
  expect(opened.status).toBe(303);
  return browser.visit(opened.location);
}

const sessionOf = (url: string) => new URL(url).searchParams.get("session") ?? "";
const providersOn = (page: { body: string }) =>
  [...page.body.matchAll(/href="\/oauth\/connect\/(\w+)\?/g)].map(([, name]) => name);

describe("a link to one provider", () => {
  it("connects an account for its user, once", async () => {
    const link = await linkFor("once", { provider_name: "sandbox", redirect_uri: BACK });
    expect(link).toMatch(new RegExp(`^${harness.url}/oauth/connect/sandbox\\?link=[\\w-]{43}$`));
    expect((await connectIn(openBrowser(), link)).location).toBe(`${BACK}?provider=sandbox&outcome=success`);
    expect(await storedOf(harness, application, "once")).toBeDefined();
    const again = await openBrowser().visit(link);
    expect([again.status, again.location]).toEqual([403, ""]);
    expect(again.body).toContain("has already been used or has expired");
  });

  it("is one browser's when two open it at once", async () => {
    const link = await linkFor("race", { provider_name: "sandbox" });
    const seen = await Promise.all(Array.from({ length: 8 }, () => openBrowser().visit(link)));
    expect(seen.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(403)]);
  });

  it("opens no other provider, and works after that was tried", async () => {
    const link = await linkFor("other", { provider_name: "sandbox" });
    expect((await openBrowser().visit(link.replace("/sandbox?", "/second?"))).status).toBe(403);
    expect((await connectIn(openBrowser(), link)).status).toBe(200);
  });

  it("works after a page whose origin is not on the list has opened it", async () => {
    const link = await linkFor("opener", { provider_name: "sandbox" });
    expect((await openBrowser().visit(`${link}&opener_origin=https://elsewhere.example`)).status).toBe(403);
    expect((await connectIn(openBrowser(), link)).status).toBe(200);
  });

  it("opens no page, and so no other account of the user", async () => {
    await harness.connect(application, "page", { providerName: "second" });
    const link = await linkFor("page", { provider_name: "sandbox" });
    const seen = await openBrowser().visit(link.replace("/sandbox?", "?"));
    expect([seen.status, seen.location]).toEqual([403, ""]);
    expect(seen.body).not.toContain("session");
  });

  it("may be asked for by an alias", async () => {
    const link = await linkFor("alias", { provider_name: "second-alias" });
    expect(link).toContain("/oauth/connect/second?");
    expect((await connectIn(openBrowser(), link)).status).toBe(200);
  });
});

describe("a link to the page", () => {
  it("moves to an address that can be reloaded in this browser, and in no other", async () => {
    const browser = openBrowser();
    const link = await linkFor("reload");
    const page = await openPage(browser, link);
    expect(page.status).toBe(200);
    expect((await browser.visit(page.url)).body).toBe(page.body);
    const elsewhere = await openBrowser().visit(page.url);
    expect(elsewhere.status).toBe(403);
    expect(elsewhere.body).not.toContain("Sandbox");
    expect((await browser.visit(link)).status).toBe(403);
  });

  it("lists what it is for, in its order, and connects nothing else", async () => {
    const browser = openBrowser();
    const page = await openPage(browser, await linkFor("listed", { providers: ["third-alias", "sandbox"] }));
    expect(providersOn(page)).toEqual(["third", "sandbox"]);
    const session = sessionOf(page.url);
    expect((await browser.visit(pageAt(harness, "/oauth/connect/second", { session }))).status).toBe(403);
    const third = await connectIn(browser, pageAt(harness, "/oauth/connect/third", { session }));
    expect(third.location).toBe(pageAt(harness, "/oauth/connect", { session, provider: "third", outcome: "success" }));
    expect((await browser.visit(third.location)).body).toContain('role="status"><strong>third is connected.</strong>');
  });

  it("may be for another application's user of the same name, whose accounts stay apart", async () => {
    const own = await newApplication();
    await harness.connect(own, "same");
    const page = await openPage(openBrowser(), await linkFor("same"));
    expect(page.body).not.toContain(">Connected<");
  });

  it.each([
    ["a session is no link", "link"],
    ["a session is no state", "state"],
  ])("%s", async (_, name) => {
    const browser = openBrowser();
    const session = sessionOf((await openPage(browser, await linkFor("kinds"))).url);
    const path = name === "state" ? "/oauth/callback" : "/oauth/connect";
    expect((await browser.visit(pageAt(harness, path, { [name]: session, code: "x" }))).status).toBeGreaterThan(399);
  });
});

describe.each([
  [
    "disabled",
    (own: TestApplication) => harness.store.applications.update(own.publicKey, { state: "DISABLED" }, 1),
    401,
  ],
  ["deleted", (own: TestApplication) => harness.store.applications.delete(own.publicKey), 403],
  ["given a new private key", (own: TestApplication) => rotate(own), 403],
  [
    "left with fewer addresses",
    (own: TestApplication) => harness.store.applications.update(own.publicKey, { allowedRedirectUris: [] }, 1),
    403,
  ],
])("when the application was %s", (_, change, status) => {
  it("links and open pages end", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const back = { redirect_uri: BACK };
    const links = [await linkFor("ada", { provider_name: "sandbox", ...back }, own), await linkFor("ada", back, own)];
    const page = await openPage(browser, await linkFor("ada", back, own));
    const session = sessionOf(page.url);
    await change(own);
    for (const url of [...links, page.url, pageAt(harness, "/oauth/connect/sandbox", { session })]) {
      const seen = await browser.visit(url);
      expect([seen.status, seen.location]).toEqual([status, ""]);
    }
    const disconnected = await browser.post(`${harness.url}/oauth/connect`, {
      session,
      provider: "sandbox",
      action: "disconnect",
    });
    expect(disconnected.status).toBe(status);
  });
});

async function rotate({ publicKey }: TestApplication): Promise<void> {
  const found = await harness.store.applications.findByPublicKey(publicKey);
  await harness.store.applications.update(publicKey, { privateKeyHash: found?.privateKeyHash as Uint8Array }, 1);
}

it.each(["", "x", "A".repeat(43), "A".repeat(9000), "%00"])(
  "a link that nobody made opens nothing: %s",
  async (link) => {
    const seen = await openBrowser().visit(`${harness.url}/oauth/connect/sandbox?link=${link}`);
    expect([seen.status, seen.location]).toEqual([
      link === "A".repeat(43) || link === "x" || link === "%00" ? 403 : 400,
      "",
    ]);
  },
);
