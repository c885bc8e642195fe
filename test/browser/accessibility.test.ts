import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { violationsOn } from "../support/reach.js";
import { signIn } from "./provider-steps.js";
import { PROVIDER, startWorld, type World } from "./world.js";

/** Longer than a narrow screen is wide. */
const LONG_NAME = "Business-Administration-and-Reporting Suite";
const ORIGIN = "https://{shop}.widgets.example";
const ENDPOINTS = { authorizationEndpoint: `${ORIGIN}/authorize`, tokenEndpoint: `${ORIGIN}/token` };
const DEFINITIONS = [
  { name: "widgets", displayName: "Widgets & Co", apiOrigins: [ORIGIN], oauth2: ENDPOINTS },
  { name: "suite", displayName: LONG_NAME, apiOrigins: [ORIGIN], oauth2: ENDPOINTS },
];

/** How the pages are looked at. */
const LOOKS = [
  ["on a wide screen in the light", { colorScheme: "light" }],
  ["on a narrow screen in the dark", { colorScheme: "dark", viewport: { width: 320, height: 640 } }],
] as const;

describe("the pages, for everybody", NEEDS_CHROMIUM, () => {
  let world: World;

  beforeAll(async () => {
    world = await startWorld({ providers: DEFINITIONS });
    const { harness, application } = world;
    for (const name of ["sandbox", "suite", "widgets"]) await harness.putClient(application, name);
    for (const providerName of ["sandbox", "suite"]) await harness.connect(application, "ada", { providerName });
    const key = { applicationId: application.id, userId: "ada", providerName: "suite" };
    const row = await harness.store.connections.find(key);
    if (row !== undefined) await harness.store.connections.requireReauthorization(row, "invalid_grant", Date.now());
  });
  afterAll(() => world?.close());

  const at = (path: string, more: Readonly<Record<string, string>>) =>
    `${world.harness.url}${path}?${new URLSearchParams({ public_key: world.application.publicKey, user_id: "ada", ...more })}`;
  const connectPage = (more: Readonly<Record<string, string>> = {}) => at("/oauth/connect", more);

  /** What has just happened is told only to the browser it happened in. */
  async function openNews(page: Page, happened: Readonly<Record<string, string>>): Promise<unknown> {
    await page.goto(connectPage({ redirect_uri: world.redirectUri }));
    const link = await page.getByRole("link", { name: "Connect Acme" }).getAttribute("href");
    const session = new URL(link ?? "", world.harness.url).searchParams.get("session") ?? "";
    return page.goto(`${world.harness.url}/oauth/connect?${new URLSearchParams({ session, ...happened })}`);
  }

  /** Where the browser stays when the application named no page of its own. */
  async function openOutcome(page: Page): Promise<unknown> {
    await page.goto(at(`/oauth/connect/${PROVIDER}`, {}));
    await signIn(page);
    await page.getByRole("button", { name: "Deny" }).click();
    return page.getByRole("heading", { name: "Acme is not connected" }).waitFor();
  }

  /** The page itself, which otherwise is gone before anybody can look. */
  async function openForward(page: Page): Promise<unknown> {
    await page.goto(at("/oauth/connect/widgets", {}));
    const session = await page.locator('input[name="session"]').inputValue();
    const query = new URLSearchParams({ session, answer: "1", shop: "acme" });
    const answer = await page.context().request.get(`${world.harness.url}/oauth/connect/widgets?${query}`);
    return page.setContent((await answer.text()).replace(/<meta http-equiv="refresh"[^>]*>/, ""));
  }

  /** Every page that there is, by what it shows. */
  const pages: ReadonlyArray<readonly [what: string, open: (page: Page) => Promise<unknown>]> = [
    ["the connect page", (page) => page.goto(connectPage({ redirect_uri: world.redirectUri }))],
    ["good news", (page) => openNews(page, { provider: "sandbox", outcome: "success" })],
    ["bad news", (page) => openNews(page, { provider: PROVIDER, outcome: "error", error: "access_denied" })],
    ["whose account it will be", (page) => page.goto(at(`/oauth/connect/${PROVIDER}`, { scope: "openid email" }))],
    ["what stands at the address itself", (page) => page.goto(`${world.harness.url}/`)],
    ["the form for an address", (page) => page.goto(at("/oauth/connect/widgets", {}))],
    ["the form with a problem", (page) => page.goto(at("/oauth/connect/widgets", { answer: "1", shop: "my shop" }))],
    ["the way to the provider", openForward],
    ["an error", (page) => page.goto(`${world.harness.url}/oauth/connect?link=${"A".repeat(43)}`)],
    ["what is not set up", (page) => page.goto(at("/oauth/connect/github", {}))],
    ["what became of it", openOutcome],
  ];

  it.each(LOOKS)("nothing is out of reach %s", async (_look, options) => {
    // The checker is a script, and the pages allow none.
    const page = await world.newPage({ ...options, bypassCSP: true });
    for (const [what, open] of pages) {
      await open(page);
      expect({ what, violations: await violationsOn(page) }).toEqual({ what, violations: [] });
      const [width, visible] = await page.locator("html").evaluate((root) => [root.scrollWidth, root.clientWidth]);
      expect({ what, width }).toEqual({ what, width: visible });
    }
  });

  it("nothing on them is against their own policy", async () => {
    const page = await world.newPage();
    for (const [, open] of pages) await open(page);
    const others = page.complaints.filter((text) => !/the server responded with a status of [45]\d\d/.test(text));
    expect(others).toEqual([]);
  });

  it("says by names and roles what the eye sees", async () => {
    const page = await world.newPage();
    await openNews(page, { provider: "sandbox", outcome: "success" });
    expect(await page.title()).toBe("Sandbox is connected. Connect accounts to Example Notes");
    expect(await heardOn(page)).toMatchInlineSnapshot(`
      "- main:
        - heading "Connect accounts to Example Notes" [level=1]
        - status:
          - strong: Sandbox is connected.
        - paragraph: Example Notes can use the accounts that you connect here. Before an account is connected, its provider asks you to sign in and to agree. You can disconnect it at any time.
        - paragraph:
          - text: Accounts are connected for
          - strong: ada
          - text: at Example Notes.
        - list:
          - listitem:
            - heading "Acme" [level=2]
            - paragraph: Not connected
            - link "Connect Acme"
          - listitem:
            - heading "Business-Administration-and-Reporting Suite" [level=2]
            - paragraph: "No longer connected: connect again to keep using it"
            - link "Connect again to Business-Administration-and-Reporting Suite"
            - button "Disconnect Business-Administration-and-Reporting Suite"
          - listitem:
            - heading "Sandbox" [level=2]
            - paragraph: Connected
            - link "Connect again to Sandbox"
            - button "Disconnect Sandbox"
          - listitem:
            - heading "Widgets & Co" [level=2]
            - paragraph: Not connected
            - link "Connect Widgets & Co"
        - paragraph:
          - link "Back to Example Notes""
    `);
    await page.goto(at("/oauth/connect/widgets", { answer: "1", shop: "my shop" }));
    expect(await heardOn(page)).toMatchInlineSnapshot(`
      "- main:
        - heading "Connect Widgets & Co" [level=1]
        - paragraph: Your Widgets & Co account has its own address. What is it?
        - paragraph:
          - text: Example Notes wants to use your Widgets & Co account for its user
          - strong: ada
          - text: .
        - alert:
          - strong: This is not an address of Widgets & Co.
          - text: Open Widgets & Co in another window, copy its address from the address bar, and paste it here.
        - text: Widgets & Co shop
        - paragraph:
          - text: The part of your account's address in place of
          - strong: shop
          - text: in https://
          - strong: shop
          - text: .widgets.example. You may paste the whole address.
        - textbox "Widgets & Co shop" [invalid]: my shop
        - button "Continue to Widgets & Co"
        - paragraph: "Continue only if you came here from Example Notes and this is you. If somebody sent you here, close this window: that person would be able to use your account.""
    `);
  });

  it("connects and disconnects by keyboard alone, and shows where the focus is", async () => {
    const page = await world.newPage();
    await page.goto(at("/oauth/connect", { user_id: "keys", providers: PROVIDER, redirect_uri: world.redirectUri }));
    await page.keyboard.press("Tab");
    await requireFocus(page, "link", "Connect Acme");
    await page.keyboard.press("Enter");
    await page.getByLabel("Account").waitFor();
    await page.keyboard.type("ada");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Allow" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("Acme is connected.").waitFor();
    await page.keyboard.press("Tab");
    await requireFocus(page, "link", "Connect again to Acme");
    await page.keyboard.press("Tab");
    await requireFocus(page, "button", "Disconnect Acme");
    await page.keyboard.press("Enter");
    await page.getByText("Acme is disconnected.").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await requireFocus(page, "link", "Back to Example Notes");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  });
});

/** The focused element is the one of this role and name, and has a ring around it. */
async function requireFocus(page: Page, role: "link" | "button", name: string): Promise<void> {
  const focused = page.getByRole(role, { name, exact: true }).and(page.locator(":focus"));
  await focused.waitFor({ timeout: 2000 });
  const ring = await focused.evaluate(
    (element) => element.ownerDocument.defaultView?.getComputedStyle(element).outline,
  );
  expect(ring).toMatch(/ solid [23]px$/);
}

/** Roles, names and states; without addresses, which are new each time. */
async function heardOn(page: Page): Promise<string> {
  const tree = await page.getByRole("main").ariaSnapshot();
  return tree.replace(/:\n *- \/url: .*/g, "");
}
