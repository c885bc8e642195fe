import { createHash } from "node:crypto";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { openBrowser, type Seen } from "./browser.js";
import { BACK, connectIn, consent, pageAt, startAt, withQuery } from "./flow.js";

const OPENER = "https://app.example.com";
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await newApplication();
});

afterAll(() => harness.close());

async function newApplication(callerAuth: "PUBLIC_KEY" | "PRIVATE_KEY" = "PUBLIC_KEY"): Promise<TestApplication> {
  const lists = { allowedOrigins: [OPENER], allowedRedirectUris: [BACK] };
  const created = await harness.createApplication({ callerAuth, ...lists });
  await harness.putClient(created);
  return created;
}

async function linkFor({ publicKey, privateKey }: TestApplication, more: object): Promise<string> {
  const body = JSON.stringify({ public_key: publicKey, user_id: "ada", redirect_uri: BACK, ...more });
  const headers = { authorization: `Bearer ${privateKey}` };
  const answer = await request(`${harness.url}/oauth/connect-links`, { method: "POST", headers, body });
  return ((await answer.body.json()) as { connectUri: string }).connectUri;
}

/** What the page tells, and whom; undefined for nothing. */
function toldBy({ body }: Seen): unknown {
  const [, origin, message] = /<script data-origin="([^"]*)" data-message="([^"]*)">/.exec(body) ?? [];
  return message && { origin, ...JSON.parse(message.replaceAll("&quot;", '"')) };
}

const SUCCESS = { origin: OPENER, type: "provider-call-relay.connect", provider: "sandbox", outcome: "success" };

describe("a page that was opened by another one", () => {
  it("tells the origin that its address names how connecting ended", async () => {
    for (const more of [{}, { redirect_uri: BACK }]) {
      const seen = await connectIn(
        openBrowser(),
        startAt(harness, application, "ada", { opener_origin: OPENER, ...more }),
      );
      expect([seen.status, toldBy(seen)]).toEqual([200, SUCCESS]);
    }
  });

  it("runs this one script, and nothing else", async () => {
    const seen = await connectIn(openBrowser(), startAt(harness, application, "ada", { opener_origin: OPENER }));
    const scripts = [...seen.body.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)].map(([, text = ""]) => text);
    expect(scripts).toHaveLength(1);
    const hash = createHash("sha256")
      .update(scripts[0] ?? "")
      .digest("base64");
    const policy = seen.headers["content-security-policy"] ?? "";
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/]{43}='; form-action 'self'; frame-ancestors /);
    expect(policy.split("; ").at(-1)).toBe(`script-src 'sha256-${hash}'`);
  });

  it("says what a link or a page that it came from was opened with", async () => {
    const own = await newApplication("PRIVATE_KEY");
    const link = withQuery(await linkFor(own, { provider_name: "sandbox" }), { opener_origin: OPENER });
    expect(toldBy(await connectIn(openBrowser(), link))).toEqual(SUCCESS);
    const browser = openBrowser();
    const opened = await browser.visit(withQuery(await linkFor(own, {}), { opener_origin: OPENER }));
    const session = new URL(opened.location).searchParams.get("session") ?? "";
    const start = pageAt(harness, "/oauth/connect/sandbox", { session });
    expect(toldBy(await connectIn(browser, start))).toEqual(SUCCESS);
  });

  it("tells the provider's error code, and nothing that the provider wrote", async () => {
    const browser = openBrowser();
    const callback = await consent(browser, startAt(harness, application, "ada", { opener_origin: OPENER }));
    const denial = { code: undefined, error: "access_denied", error_description: "</script><b>" };
    const seen = await browser.visit(withQuery(callback, denial));
    expect([seen.status, toldBy(seen)]).toEqual([400, { ...SUCCESS, outcome: "error", error: "access_denied" }]);
    expect(seen.body).not.toContain("<b>");
  });

  it.each([
    ["another one", "https://evil.example"],
    ["one that begins so", `${OPENER}.evil.example`],
    ["another scheme", "http://app.example.com"],
    ["another case", "https://APP.example.com"],
    ["with a path", `${OPENER}/`],
    ["any", "*"],
    ["none", "null"],
    ["a place to go back to, which is no origin", BACK],
  ])("opens for no origin that is not on the list: %s", async (_, opener_origin) => {
    const own = await newApplication("PRIVATE_KEY");
    const query = { public_key: application.publicKey, user_id: "ada" };
    for (const url of [
      startAt(harness, application, "ada"),
      pageAt(harness, "/oauth/connect", query),
      await linkFor(own, { provider_name: "sandbox" }),
      await linkFor(own, {}),
    ]) {
      const seen = await openBrowser().visit(withQuery(url, { opener_origin }));
      expect([seen.status, seen.location]).toEqual([403, ""]);
      expect(seen.body).toContain("relay app update --allow-origin");
      expect(seen.body).not.toContain("<script");
    }
  });

  it("tells nobody when the origin was taken off the list meanwhile", async () => {
    const own = await newApplication();
    const browser = openBrowser();
    const query = { opener_origin: OPENER, redirect_uri: BACK };
    const callback = await consent(browser, startAt(harness, own, "ada", query));
    await harness.store.applications.update(own.publicKey, { allowedOrigins: [] }, Date.now());
    expect((await browser.visit(callback)).location).toBe(`${BACK}?provider=sandbox&outcome=success`);
  });
});
