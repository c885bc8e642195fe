import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { textsFor } from "../../src/pages/texts/language.js";
import { launchChromium, NEEDS_CHROMIUM } from "../support/chromium.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { JPEG, pngOf, WEBP, WEBP_LOSSLESS, WEBP_WITH_ALPHA } from "../support/pictures.js";
import { openBrowser, type Seen } from "./browser.js";
import { BACK, begin, consent, linkTo, pageAt, startAt, storedOf } from "./flow.js";

const MARKUP = `"><img src=x onerror=alert(1)>`;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({
    name: "Notes",
    allowedRedirectUris: [BACK],
    allowedOrigins: ["https://app.example.com"],
  });
  await harness.putClient(application, "sandbox", { scope: "profile items" });
  await harness.putClient(application, "shopify");
});
afterAll(() => harness.close());

const start = (user: string, query: Record<string, string> = {}) =>
  startAt(harness, application, user, { redirect_uri: BACK, ...query });
const onwardFrom = ({ body, url }: Seen) =>
  new URL(/<p><a class="button main" href="([^"]+)"/.exec(body)?.[1]?.replaceAll("&amp;", "&") ?? "", url);
const requestsToProvider = () => harness.sandbox.requests.length;

describe("the page in front of a provider", () => {
  it("says whose account it will be, of which application, and what is asked for", async () => {
    const { status, body, location } = await openBrowser().visit(start("ada"));
    expect([status, location]).toEqual([200, ""]);
    expect(body).toContain("<h1>Connect Sandbox to Notes?</h1>");
    expect(body).toContain("Notes wants to use your Sandbox account for its user <strong><bdi>ada</bdi></strong>.");
    expect([...body.matchAll(/<code>([^<]*)<\/code>/g)].map(([, scope]) => scope)).toEqual(["profile", "items"]);
    expect(body).toContain("If somebody sent you here, close this window");
    expect(body).not.toContain("<script");
  });

  it("leads on in the browser that saw it, with what the address said", async () => {
    const browser = openBrowser();
    const seen = await browser.visit(start("goes on", { scope: "items", opener_origin: "https://app.example.com" }));
    const begun = await browser.visit(onwardFrom(seen).href);
    expect([begun.status, new URL(begun.location).searchParams.get("scope")]).toEqual([303, "items"]);
    const shop = await begin(browser, start("goes on", { provider: "shopify", shop: "acme" }));
    expect(new URL(shop.location).host).toBe("acme.myshopify.com");
  });

  it.each(["a link", "an address of the application's"])(
    "keeps %s of a stranger from connecting the account of whoever opens it",
    async (what) => {
      const user = `mallory by ${what}`;
      const before = requestsToProvider();
      const sent =
        what === "a link" ? await linkTo(harness, application, user, { provider_name: "sandbox" }) : start(user);
      const victim = openBrowser();
      const seen = await victim.visit(sent);
      // What the stranger has, and a page of theirs could make the victim's browser send.
      for (const url of [
        sent,
        start(user, { answer: "1" }),
        start(user, { session: "" }),
        start(user, { confirmed: "1" }),
      ]) {
        const forced = await victim.visit(url);
        expect([forced.status === 200 || forced.status === 403, forced.location]).toEqual([true, ""]);
      }
      // The session of the page that the stranger's own browser is shown.
      const own = onwardFrom(await openBrowser().visit(start(user)));
      expect((await victim.visit(own.href)).status).toBe(403);
      expect(requestsToProvider()).toBe(before);
      expect(await storedOf(harness, application, user)).toBeUndefined();
      // And the victim's is of no use elsewhere.
      expect((await openBrowser().visit(onwardFrom(seen).href)).status).toBe(403);
    },
  );

  it("may not be framed, and cannot be posted over", async () => {
    const browser = openBrowser();
    const seen = await browser.visit(start("framed"));
    expect(seen.headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(seen.headers["x-frame-options"]).toBe("DENY");
    const session = onwardFrom(seen).searchParams.get("session") ?? "";
    const posted = await browser.post(`${harness.url}/oauth/connect/sandbox`, { session, answer: "1" });
    expect([posted.status, posted.location]).toEqual([400, ""]);
  });

  it.each([
    ["#ffe082", "#000000"],
    ["#0b3d91", "#ffffff"],
  ])(
    "has the application's mark in its colour %s, in letters that can be read, under a hash of that",
    async (accentColor, letters) => {
      const own = await harness.createApplication({ name: "Ärzte", accentColor });
      await harness.putClient(own);
      const { body, headers } = await openBrowser().visit(startAt(harness, own, "ada"));
      expect(body).toContain('<p class="mark" aria-hidden="true">Ä</p>');
      const rule = `.mark { background: ${accentColor}; color: ${letters}; }`;
      expect(body).toContain(`<style>${rule}</style>`);
      const hash = createHash("sha256").update(rule).digest("base64");
      expect(headers["content-security-policy"]).toContain(` 'sha256-${hash}'; form-action 'self'`);
    },
  );

  it("has the application's icon in it, under a policy that lets nothing be loaded", async () => {
    const own = await harness.createApplication({ name: "Shown" });
    await harness.putClient(own);
    const plain = (await openBrowser().visit(startAt(harness, own, "ada"))).headers["content-security-policy"] ?? "";
    const png = pngOf(3, 2);
    await harness.store.applications.update(own.publicKey, { icon: png }, Date.now());
    const browser = openBrowser();
    const { location } = await browser.visit(await linkTo(harness, own, "ada"));
    for (const start of [startAt(harness, own, "ada"), location]) {
      const { status, body, headers } = await browser.visit(start);
      expect([status, body.match(/<img /g)?.length]).toEqual([200, 1]);
      expect(body).toContain(
        `<p class="mark picture" aria-hidden="true"><img src="data:image/png;base64,${png.toString("base64")}" alt=""></p>`,
      );
      expect(headers["content-security-policy"]).toBe(plain.replace("; form-action", "; img-src data:; form-action"));
    }
    expect(plain).not.toContain("img-src");
  });

  it("has the initial where what the store holds is no picture", async () => {
    const own = await harness.createApplication({ name: "Shown" });
    await harness.putClient(own);
    await harness.store.applications.update(own.publicKey, { icon: Buffer.from(MARKUP) }, Date.now());
    const { body, headers } = await openBrowser().visit(startAt(harness, own, "ada"));
    expect(body).toContain('<p class="mark" aria-hidden="true">S</p>');
    expect(headers["content-security-policy"]).not.toContain("img-src");
  });

  describe("in Chromium", NEEDS_CHROMIUM, () => {
    it.each([
      ["PNG", pngOf(3, 2)],
      ["JPEG", JPEG],
      ["WebP", WEBP],
      ["WebP with alpha", WEBP_WITH_ALPHA],
      ["lossless WebP", WEBP_LOSSLESS],
    ])("shows an icon of the kind %s", async (_kind, icon) => {
      const own = await harness.createApplication({ name: "Shown" });
      await harness.putClient(own);
      await harness.store.applications.update(own.publicKey, { icon }, Date.now());
      const chromium = await launchChromium();
      try {
        const page = await chromium.newPage();
        await page.goto(startAt(harness, own, "ada"));
        expect(await page.evaluate("[document.images[0].naturalWidth, document.images[0].naturalHeight]")).toEqual([
          3, 2,
        ]);
      } finally {
        await chromium.close();
      }
    });
  });

  it("opens this one provider, and no page", async () => {
    const browser = openBrowser();
    const session = onwardFrom(await browser.visit(start("one"))).searchParams.get("session") ?? "";
    expect((await browser.visit(pageAt(harness, "/oauth/connect/shopify", { session, shop: "a" }))).status).toBe(403);
    expect((await browser.visit(pageAt(harness, "/oauth/connect", { session }))).status).toBe(403);
  });

  it.each([
    ["markup", MARKUP],
    ["a text that turns around", "ada\u202egnp.exe"],
    ["a line break", "a\nb"],
    ["256 characters", "W".repeat(256)],
  ])("shows a user's id with %s as text, and connects it as it is", async (_, user) => {
    const browser = openBrowser();
    const seen = await browser.visit(start(user, { scope: MARKUP }));
    expect(seen.body).not.toContain("<img");
    expect(seen.body).not.toMatch(/[\u202e\u2028]/u);
    const callback = await consent(browser, start(user));
    expect((await browser.visit(callback)).location).toContain("outcome=success");
    expect((await storedOf(harness, application, user))?.userId).toBe(user);
  });
});

describe("the language of a page", () => {
  it.each([
    ["", "en"],
    ["de", "de"],
    ["DE-AT,de;q=0.9", "de"],
    ["fr;q=0.4, es;q=0.9, en;q=0.1", "es"],
    ["nl,pt-BR;q=0.8", "pt"],
    ["ja-JP", "ja"],
    ["zh-CN", "en"],
    ["de;q=0, fr;q=0.001", "fr"],
    ["*", "en"],
    ["de;q=2", "en"],
    [`${"x,".repeat(40)}de`, "en"],
    ["constructor", "en"],
    [`de${" ".repeat(100_000)}`, "en"],
    [`<script>,${MARKUP}`, "en"],
  ])("is for %j %s", async (accepted, language) => {
    expect(textsFor(accepted).language).toBe(language);
  });

  it.each(["en", "de", "fr", "es", "pt", "ja"])("%s is on every page, with its name and its Vary", async (language) => {
    const headers = { "accept-language": `${language};q=0.9` };
    const query = { public_key: application.publicKey, user_id: "ada" };
    const browser = openBrowser();
    for (const url of [
      `${harness.url}/`,
      start("ada"),
      start("ada", { provider: "shopify" }),
      pageAt(harness, "/oauth/connect", query),
      pageAt(harness, "/oauth/connect", { link: "x" }),
    ]) {
      const seen = await browser.visit(url, { headers });
      expect(seen.body).toContain(`<html lang="${language}">`);
      expect([seen.headers["content-language"], seen.headers["vary"]]).toEqual([language, "accept-language"]);
    }
    const { body } = await browser.visit(start("ada"), { headers });
    expect(body).toContain(`<h1>${textsFor(language).confirm("Sandbox", "Notes")}</h1>`);
  });

  it("has a file for each, in which every text differs from the English one, names aside", () => {
    const languages = readdirSync("src/pages/texts").flatMap((name) => /^([a-z]{2})\.ts$/.exec(name)?.[1] ?? []);
    expect(languages.sort()).toEqual(["de", "en", "es", "fr", "ja", "pt"]);
    const printed = (language: string) => textsOf(textsFor(language), "");
    const english = printed("en");
    for (const language of languages.filter((each) => each !== "en")) {
      const same = [...printed(language)].filter(([name, text]) => english.get(name) === text).map(([name]) => name);
      // A word that both have, and names alone.
      expect(same.filter((name) => name !== ".errorCode" && !name.endsWith(".1"))).toEqual([]);
    }
  });
});

/** Every text by the place where it stands, with the same values in all of them. */
function textsOf(value: unknown, name: string): ReadonlyMap<string, string> {
  const made = typeof value === "function" ? value(...["A", "B", "C"].slice(0, value.length)) : value;
  if (typeof made === "string") return new Map([[name, made]]);
  return new Map(Object.entries(made as object).flatMap(([key, inner]) => [...textsOf(inner, `${name}.${key}`)]));
}
