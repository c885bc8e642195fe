import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS } from "../support/harness.js";
import { violationsOn } from "../support/reach.js";
import { type ConsoleWorld, showView, signIn, startConsoleWorld, VIEWS } from "./world.js";

/** Of the checker, which looks at every element of fifteen pages, on a busy machine. */
const CHECK_TIMEOUT_MS = 120_000;

/** How the console is looked at. */
const LOOKS = [
  ["on a wide screen in the light", { colorScheme: "light" }],
  ["on a narrow screen in the dark", { colorScheme: "dark", viewport: { width: 320, height: 640 } }],
] as const;

describe("the console, for everybody", NEEDS_CHROMIUM, () => {
  let world: ConsoleWorld;

  beforeAll(async () => {
    world = await startConsoleWorld();
    await Promise.all(["/me", "/status/404", "/items?count=1"].map((path) => world.call(path)));
    await world.harness.connect(world.application, "ended", { expiresAt: 1 });
    await world.harness.store.audit.add({
      ...{ id: "00000000-0000-7000-8000-000000000001", at: 1, actor: "alice", method: "relay key rotate" },
      ...{ resource: "keys/1", publicKey: "", changedFields: [], outcome: "DONE" },
    });
  });
  afterAll(() => world?.close());

  async function requireWidth(page: Page, what: string): Promise<void> {
    const [width, visible] = await page.locator("html").evaluate((root) => [root.scrollWidth, root.clientWidth]);
    expect({ what, width }).toEqual({ what, width: visible });
  }

  async function requireReach(page: Page, what: string): Promise<void> {
    await requireWidth(page, what);
    expect({ what, found: await violationsOn(page) }).toEqual({ what, found: [] });
  }

  async function tryCall(page: Page, userId: string, button: string): Promise<void> {
    await page.getByLabel("Application", { exact: true }).fill(world.application.publicKey);
    await page.getByLabel("User id", { exact: true }).fill(userId);
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    await page.getByLabel("URL", { exact: true }).fill(`${world.harness.sandbox.origin}/me`);
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("heading", { level: 2 }).first().waitFor();
  }

  it.each(LOOKS)(
    "nothing is out of reach %s",
    async (_look, options) => {
      // The checker is a script that is not the console's own.
      const page = await world.open({ ...options, bypassCSP: true });
      await requireReach(page, "sign in");
      await signIn(page, ADMIN_TOKENS.operator);
      for (const view of VIEWS) {
        await showView(page, view);
        if (!["Start", "Figures", "Try a call"].includes(view)) await page.getByRole("table").first().waitFor();
        await requireWidth(page, view);
        // The checker takes seconds for a long table.
        if (view === "Providers") await page.getByLabel("Name or origin contains").fill("github");
        if (view === "Applications") await page.getByText("New application").click();
        await requireReach(page, view);
      }
      await showView(page, "Applications");
      await page.getByRole("table").getByRole("link").first().click();
      await page.getByRole("form", { name: "Save" }).waitFor();
      await page.getByRole("button", { name: "Delete the application" }).click();
      await page.getByText("Tick this to go on.").waitFor();
      for (const summary of await page.locator("details.command summary").all()) await summary.click();
      await requireReach(page, "an application");
      for (const [part, button] of [
        ["OAuth clients", "Store the client"],
        ["Webhook", "Set the webhook"],
        ["Call tokens", "Make the call token"],
        ["Connect link", "Make the connect link"],
        ["Store a connection", "Store the connection"],
      ] as const) {
        await page.getByRole("navigation", { name: "The application's views" }).getByText(part).click();
        await page.getByRole("form", { name: button }).waitFor();
        await page.locator("details.command summary").first().click();
        await requireReach(page, part);
      }
      await showView(page, "Live calls");
      await page.getByRole("table", { name: "Last calls" }).getByRole("link").first().click();
      await page.getByRole("region", { name: "Record" }).waitFor();
      await requireReach(page, "a record");
      await showView(page, "Try a call");
      await tryCall(page, "ada", "Perform the call");
      await page.getByText("Payload, headers, private key").click();
      await page.getByText("header fields").click();
      await requireReach(page, "a call");
      await tryCall(page, "ended", "Explain");
      await page.getByText("REAUTHORIZATION_REQUIRED").waitFor();
      await requireReach(page, "a refusal");
    },
    CHECK_TIMEOUT_MS,
  );

  it("has landmarks, headings and a title for each view, and follows with the focus", async () => {
    const page = await world.openView("Try a call");
    for (const view of VIEWS) {
      await showView(page, view);
      expect(await page.title()).toBe(`${view} – Relay console`);
      await page.locator("h1:focus").waitFor();
      expect(await page.getByRole("heading", { level: 1 }).allTextContents()).toEqual([view]);
      const current = page.getByRole("navigation", { name: "Views" }).locator("[aria-current=page]");
      expect(await current.textContent()).toBe(view);
    }
    for (const landmark of ["banner", "main"] as const) expect(await page.getByRole(landmark).count()).toBe(1);
  });

  it("is used by keyboard alone, and shows where the focus is", async () => {
    const page = await world.open();
    await page.keyboard.press("Tab");
    await requireFocus(page, "textbox", "Admin token");
    await page.keyboard.type(ADMIN_TOKENS.operator);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Start" }).waitFor();
    await page.keyboard.press("Tab");
    await requireFocus(page, "link", "Skip to the content");
    for (const view of VIEWS) {
      await page.keyboard.press("Tab");
      await requireFocus(page, "link", view);
    }
    await page.keyboard.press("Enter");
    await page.locator("h1:focus").waitFor();
    await page.keyboard.press("Tab");
    await requireFocus(page, "combobox", "Application");
    await page.keyboard.type(world.application.publicKey);
    await page.keyboard.press("Tab");
    await requireFocus(page, "combobox", "User id");
    await page.keyboard.type("ada");
    await page.keyboard.press("Tab");
    await page.keyboard.type("sandbox");
    await page.keyboard.press("Tab");
    await requireFocus(page, "combobox", "Method");
    await page.keyboard.press("Tab");
    await page.keyboard.type(`${world.harness.sandbox.origin}/me`);
    await page.keyboard.press("Enter");
    await page.locator("#explanation:focus").waitFor();
  });
});

/** The focused element is the one of this role and name, and has a ring around it. */
async function requireFocus(page: Page, role: "link" | "textbox" | "combobox", name: string): Promise<void> {
  const named =
    role === "textbox" && name === "Admin token" ? page.getByLabel(name) : page.getByRole(role, { name, exact: true });
  const focused = named.and(page.locator(":focus"));
  await focused.waitFor({ timeout: 2000 });
  const ring = await focused.evaluate(
    (element) => element.ownerDocument.defaultView?.getComputedStyle(element).outline,
  );
  expect(ring).toMatch(/ solid [23]px$/);
}
