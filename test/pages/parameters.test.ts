import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type Browser, openBrowser, type Seen } from "./browser.js";
import { BACK, begin, linkTo, refusedLinkTo, startAt, storedOf } from "./flow.js";

const MARKUP = `"><script>alert(1)</script>`;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({
    providers: [
      {
        ...{ name: "desk", apiOrigins: ["https://{tenant}.desk.example.com"] },
        connectionValues: [{ name: "tenant" }, { name: "region", choices: [{ value: "us" }, { value: "eu" }] }],
        oauth2: {
          authorizationEndpoint: "https://{tenant}.desk.example.com/authorize",
          tokenEndpoint: "https://{tenant}.desk.example.com/token",
          authorizationParameters: { region: "{region}" },
        },
      },
    ],
  });
  application = await harness.createApplication({ allowedRedirectUris: [BACK] });
  for (const provider of ["shopify", "zendesk", "mastodon", "okta", "desk"])
    await harness.putClient(application, provider);
});

afterAll(() => harness.close());

const start = (provider: string, query: Record<string, string> = {}, own = application) =>
  startAt(harness, own, "ada", { provider, redirect_uri: BACK, ...query });
const sessionIn = ({ body }: Seen) => /name="session" value="([\w-]+)"/.exec(body)?.[1] ?? "";
const endpointOf = ({ location }: Seen) => location.split("?")[0];
const answer = (browser: Browser, provider: string, session: string, fields: Record<string, string>) =>
  browser.visit(`${harness.url}/oauth/connect/${provider}?${new URLSearchParams({ session, answer: "1", ...fields })}`);

describe("the parameter of an origin", () => {
  it.each([
    ["acme", "acme"],
    ["ACME", "acme"],
    ["  acme  ", "acme"],
    ["acme.myshopify.com", "acme"],
    ["https://acme.myshopify.com/", "acme"],
    ["http://Acme.MyShopify.com/admin?x=1#y", "acme"],
    ["a-1", "a-1"],
  ])("may be written as a person does: %s", async (shop, label) => {
    const seen = await begin(openBrowser(), start("shopify", { shop }));
    expect([seen.status, endpointOf(seen)]).toEqual([303, `https://${label}.myshopify.com/admin/oauth/authorize`]);
  });

  it.each([
    "evil.com/",
    "evil.com",
    "a.b",
    "acme.myshopify.com.evil.com",
    "acme.myshopify.com@evil.com",
    "acme@evil.com",
    "evil.com#.myshopify.com",
    "evil.com?.myshopify.com",
    "evil.com\\.myshopify.com",
    "acme:8443",
    "https://evil.com",
    "https://https://acme.myshopify.com",
    "//evil.com",
    "..",
    ".",
    "-a",
    "a-",
    "a_b",
    "a b",
    "a\u0000",
    "a\r\nb",
    "аcme",
    "acme。evil",
    "ⓐcme",
    "%61cme",
    "{shop}",
    "$&",
    "x".repeat(64),
    "x".repeat(4000),
    MARKUP,
  ])("is asked for again, and leads nowhere, when it is %j", async (shop) => {
    const seen = await begin(openBrowser(), start("shopify", { shop }));
    expect([seen.status, seen.location]).toEqual([200, ""]);
    const browser = openBrowser();
    const session = sessionIn(await browser.visit(start("shopify")));
    const again = await answer(browser, "shopify", session, { shop });
    expect([again.status, again.location]).toEqual([400, ""]);
    expect(again.body).toContain('aria-invalid="true"');
    expect(again.body).not.toContain("http-equiv");
    expect(again.body).not.toContain("<script");
  });

  it("is asked for on a page that a person understands, and then leads to the provider", async () => {
    const browser = openBrowser();
    const asked = await browser.visit(start("zendesk"));
    expect(asked.status).toBe(200);
    expect(asked.body).toMatch(/<label for="subdomain">[^<]+<\/label>/);
    expect(asked.body).toContain("</strong>.zendesk.com");
    const seen = await answer(browser, "zendesk", sessionIn(asked), { subdomain: "https://acme.zendesk.com/agent" });
    // No redirect: browsers hold a form's against form-action.
    expect([seen.status, seen.location]).toEqual([200, ""]);
    const [, uri = ""] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(seen.body) ?? [];
    expect(uri).toMatch(/^https:\/\/acme\.zendesk\.com\/oauth\/authorizations\/new\?response_type=code&amp;/);
    expect(seen.body).toContain(`<a href="${uri}">Continue to Zendesk</a>`);
  });

  it("is asked in this browser, for this provider, and no page comes with it", async () => {
    const browser = openBrowser();
    const session = sessionIn(await browser.visit(start("shopify")));
    const shop = { shop: "acme" };
    expect((await answer(openBrowser(), "shopify", session, shop)).status).toBe(403);
    expect((await answer(browser, "zendesk", session, { subdomain: "acme" })).status).toBe(403);
    expect((await browser.visit(`${harness.url}/oauth/connect?session=${session}`)).status).toBe(403);
    await harness.connect(application, "ada", { providerName: "shopify", originParameters: shop });
    const form = { session, provider: "shopify", action: "disconnect" };
    expect((await browser.post(`${harness.url}/oauth/connect`, form)).status).toBe(403);
    expect(await storedOf(harness, application, "ada", "shopify")).toBeDefined();
  });
});

describe("a value that a link has fixed", () => {
  it("is not asked for, and no form and no address changes it", async () => {
    const browser = openBrowser();
    const fixed = { provider_name: "desk", origin_parameters: { tenant: "acme" } };
    const asked = await browser.visit(`${await linkTo(harness, application, "ada", fixed)}&tenant=evil`);
    expect([asked.body.includes('name="tenant"'), asked.body.includes('name="region"')]).toEqual([false, true]);
    const wrong = await answer(browser, "desk", sessionIn(asked), { tenant: "evil", region: "mars" });
    expect([wrong.status, wrong.body.includes('name="tenant"')]).toEqual([400, false]);
    const seen = await answer(browser, "desk", sessionIn(asked), { tenant: "evil", region: "eu" });
    const [, uri = ""] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(seen.body) ?? [];
    expect(uri).toMatch(/^https:\/\/acme\.desk\.example\.com\/authorize\?.*&amp;region=eu$/);
  });
});

describe("a value that the operator has to give with the client", () => {
  it("is asked for when a link is made, and of whoever opens an address", async () => {
    const own = await harness.createApplication();
    await harness.putClient(own, "ebay");
    const { errorType, inernalError } = await refusedLinkTo(harness, own, "ada", { provider_name: "ebay" });
    expect([errorType, inernalError]).toEqual([
      "PROVIDER_MISCONFIGURED",
      expect.stringContaining("relay client put --param ru_name=VALUE"),
    ]);
    const seen = await openBrowser().visit(start("ebay", { redirect_uri: "" }, own));
    expect([seen.status, seen.body.includes("relay client put --param ru_name=VALUE")]).toEqual([500, true]);
    await harness.putClient(own, "ebay", { originParameters: { ru_name: "Acme-RU" } });
    const connecting = await begin(openBrowser(), await linkTo(harness, own, "ada", { provider_name: "ebay" }));
    expect(new URL(connecting.location).searchParams.get("redirect_uri")).toBe("Acme-RU");
  });
});

describe("a host that a user names", () => {
  it.each([{}, { host: "mastodon.social" }, { host: "evil.example" }])("is gone to by nobody: %j", async (query) => {
    const seen = await begin(openBrowser(), start("mastodon", query));
    expect([seen.status, seen.location]).toEqual([500, ""]);
    expect(seen.body).toContain("relay client put --param host=HOST");
  });

  it.each([{}, { host: "mastodon.social" }, { host: "evil.example" }, { host: "https://evil.example/" }])(
    "counts for nothing where the operator has named one: %j",
    async (query) => {
      const own = await harness.createApplication({ allowedRedirectUris: [BACK] });
      await harness.putClient(own, "mastodon", { originParameters: { host: "mastodon.social" } });
      const seen = await begin(openBrowser(), start("mastodon", query, own));
      expect([seen.status, endpointOf(seen)]).toEqual([303, "https://mastodon.social/oauth/authorize"]);
    },
  );
});

describe("a client that is for one customer of the provider", () => {
  it.each([{}, { shop: "acme" }, { shop: "other" }, { shop: "evil.com/" }])("goes to that one: %j", async (query) => {
    const own = await harness.createApplication({ allowedRedirectUris: [BACK] });
    await harness.putClient(own, "shopify", { originParameters: { shop: "acme" } });
    const seen = await begin(openBrowser(), start("shopify", query, own));
    expect(endpointOf(seen)).toBe("https://acme.myshopify.com/admin/oauth/authorize");
  });
});

describe("a client that the provider makes for one tenant", () => {
  it.each([{}, { subdomain: "acme" }, { subdomain: "evil" }])(
    "goes nowhere until the operator names it: %j",
    async (query) => {
      const seen = await begin(openBrowser(), start("okta", query));
      expect([seen.status, seen.location]).toEqual([500, ""]);
      expect(seen.body).toContain("relay client put --param subdomain=VALUE");
    },
  );

  it.each([{}, { subdomain: "acme" }, { subdomain: "evil" }])("goes to that one then: %j", async (query) => {
    const own = await harness.createApplication({ allowedRedirectUris: [BACK] });
    await harness.putClient(own, "okta", { originParameters: { subdomain: "acme" } });
    const seen = await begin(openBrowser(), start("okta", query, own));
    expect([seen.status, endpointOf(seen)]).toEqual([303, "https://acme.okta.com/oauth2/v1/authorize"]);
  });
});
