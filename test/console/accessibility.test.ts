import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS } from "../support/harness.js";
import { violationsOn } from "../support/reach.js";
import { failRefresh } from "../support/refresh-failure.js";
import type { WatchedPage } from "../support/watched-page.js";
import { outlineOf } from "./outline.js";
import { type ConsoleWorld, go, showView, signIn, startConsoleWorld, VIEWS } from "./world.js";

/** Of the checker, which looks at every element of twenty pages, on a busy machine. */
const CHECK_TIMEOUT_MS = 240_000;

/** How the console is looked at, each in the light and in the dark. */
const LOOKS = [
  ["on a wide screen", {}],
  ["at 200 % zoom", { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2, reducedMotion: "reduce" }],
  ["on a narrow screen", { viewport: { width: 320, height: 640 } }],
] as const;

/** How many elements move by themselves. */
const MOVING = `[...document.querySelectorAll("*")].map((each) => getComputedStyle(each))
  .filter(({ animationName, transitionDuration }) => animationName !== "none" || transitionDuration !== "0s").length`;

describe("the console, for everybody", NEEDS_CHROMIUM, () => {
  let world: ConsoleWorld;

  beforeAll(async () => {
    world = await startConsoleWorld();
    const { harness, application } = world;
    await Promise.all(["/me", "/status/404", "/items?count=1"].map((path) => world.call(path)));
    await harness.connect(application, "ended", { expiresAt: 1 });
    await harness.connect(application, "failing", { refreshToken: "r" });
    await failRefresh(harness.store, { applicationId: application.id, userId: "failing", providerName: "sandbox" });
    await harness.store.audit.add({
      ...{ id: "00000000-0000-7000-8000-000000000001", at: 1, actor: "alice", method: "relay key rotate" },
      ...{ resource: "keys/1", publicKey: "", changedFields: [], outcome: "DONE" },
    });
    const countFigures = async () => {
      const points = [];
      const all = { span: "HOUR", fromAt: 0, kind: "ALL", id: "" } as const;
      for await (const point of harness.store.figures.read(all)) points.push(point);
      return points.length;
    };
    await vi.waitFor(async () => expect(await countFigures()).toBeGreaterThan(0), { timeout: 20_000 });
  });
  afterAll(() => world?.close());

  /** Checks a page, and notes what it is made of. */
  type Check = (page: Page, what: string) => Promise<void>;

  async function requireWidth(page: Page, what: string): Promise<void> {
    const own = page.viewportSize() ?? expect.unreachable();
    for (const width of own.width < 1000 ? [own.width] : [800, 1000, own.width]) {
      await page.setViewportSize({ ...own, width });
      const [needed, visible] = await page.locator("html").evaluate((root) => [root.scrollWidth, root.clientWidth]);
      expect({ what, width, needed }).toEqual({ what, width, needed: visible });
    }
  }

  async function requireReach(page: Page, what: string): Promise<void> {
    await page.getByText("Loading…", { exact: true }).first().waitFor({ state: "hidden" });
    await requireWidth(page, what);
    expect({ what, found: await violationsOn(page) }).toEqual({ what, found: [] });
    await page.emulateMedia({ colorScheme: "dark" });
    const found = await violationsOn(page, ["color-contrast", "link-in-text-block"]);
    expect({ what: `${what} in the dark`, found }).toEqual({ what: `${what} in the dark`, found: [] });
    await page.emulateMedia({ colorScheme: "light" });
  }

  async function tryCall(page: Page, userId: string, button: string): Promise<void> {
    await page.getByLabel("Application", { exact: true }).fill(world.application.publicKey);
    await page.getByLabel("User id", { exact: true }).fill(userId);
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    await page.getByLabel("URL", { exact: true }).fill(`${world.harness.sandbox.origin}/me`);
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("heading", { level: 2 }).first().waitFor();
  }

  async function walkViews(page: WatchedPage, check: Check): Promise<void> {
    for (const view of VIEWS) {
      await showView(page, view);
      if (view !== "Try a call") await page.getByRole("table").first().waitFor();
      await requireWidth(page, view);
      for (const filters of await page.locator("summary", { hasText: /^Filters/ }).all()) await filters.click();
      // The checker takes seconds for a long table.
      if (view === "Providers") await page.getByLabel("Name or origin contains").fill("github");
      if (view === "Applications") await page.getByText("New application").click();
      await check(page, view);
    }
  }

  async function walkApplication(page: WatchedPage, check: Check): Promise<void> {
    const { publicKey } = world.application;
    await go(page, `#/application?publicKey=${publicKey}`);
    await page.getByRole("form", { name: "Save" }).waitFor();
    await page.getByRole("button", { name: "Delete the application" }).click();
    await page.getByText("Tick this box to continue.").waitFor();
    for (const summary of await page.locator("details.command summary").all()) await summary.click();
    await check(page, "an application");
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
      await check(page, part);
    }
    await go(page, `#/connection?publicKey=${publicKey}&userId=failing&providerName=sandbox`);
    await page.getByRole("region", { name: "State" }).getByText("Refreshing fails").waitFor();
    await check(page, "a connection");
    await go(page, "#/find?text=ada");
    // Comes last.
    await page.getByText("A user's calls are searched").waitFor();
    await check(page, "what is found");
  }

  async function walkCalls(page: WatchedPage, check: Check): Promise<void> {
    await showView(page, "Live calls");
    await page.getByRole("table", { name: "Last calls" }).getByRole("link").first().click();
    await page.getByRole("region", { name: "Record" }).waitFor();
    await check(page, "a record");
    await showView(page, "Try a call");
    await tryCall(page, "ada", "Perform the call");
    await page.getByText("Payload, headers, private key").click();
    await page.getByText("header fields").click();
    await check(page, "a call");
    await tryCall(page, "ended", "Explain");
    await page.getByText("REAUTHORIZATION_REQUIRED").waitFor();
    await check(page, "a refusal");
  }

  it.each(LOOKS)(
    "nothing is out of reach %s",
    async (look, options) => {
      // The checker is a script that is not the console's own.
      const page = await world.open({ ...options, bypassCSP: true });
      const outlines: string[] = [];
      const check: Check = async (shown, what) => {
        await requireReach(shown, what);
        if ("reducedMotion" in options)
          expect({ what, moving: await shown.evaluate(MOVING) }).toEqual({ what, moving: 0 });
        outlines.push(`# ${what}\n\n${await outlineOf(shown.locator("main"))}\n`);
      };
      await check(page, "sign in");
      await signIn(page, ADMIN_TOKENS.operator);
      outlines.push(`# above each view\n\n${await outlineOf(page.locator("header"))}\n`);
      await walkViews(page, check);
      await walkApplication(page, check);
      await walkCalls(page, check);
      // Written anew by: npx vitest run --project long test/console/accessibility.test.ts -u
      if (look === "on a wide screen") await expect(outlines.join("\n")).toMatchFileSnapshot("outline.txt");
    },
    CHECK_TIMEOUT_MS,
  );

  it("moves, but not for those who ask for that", async () => {
    const page = await world.openView("Figures");
    expect(await page.evaluate(MOVING)).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    expect(await page.evaluate(MOVING)).toBe(0);
  });

  it("leaves the first screen of a phone to what is listed, and says how many filters are in use", async () => {
    const page = await world.openView("Recorded calls", { viewport: { width: 360, height: 640 } });
    await page.getByRole("table").waitFor();
    expect((await page.getByRole("table").boundingBox())?.y).toBeLessThan(320);
    const current = await page.locator("header [aria-current=page]").boundingBox();
    expect((current?.x ?? 0) + (current?.width ?? 360)).toBeLessThan(360);
    await page.getByText("Filters", { exact: true }).click();
    await page.getByLabel("Provider", { exact: true }).fill("sandbox");
    await page.getByLabel("Error type").fill("API_ERROR");
    await page.getByRole("button", { name: "Search" }).click();
    await page.locator("summary:focus", { hasText: "Filters (2 in use)" }).waitFor();
    expect(await page.getByLabel("Error type").isVisible()).toBe(false);
    await page.setViewportSize({ width: 1200, height: 640 });
    await expect.poll(() => page.getByLabel("Error type").inputValue()).toBe("API_ERROR");
    await expect.poll(() => page.getByLabel("Error type").isVisible()).toBe(true);
  });

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

  it.each([1440, 1100, 820, 480, 360])(
    "is gone through in the order in which it is seen, %i pixels wide",
    async (width) => {
      const page = await world.openView("Connections", { viewport: { width, height: 900 } });
      await page.getByRole("table", { name: "Connections" }).waitFor();
      const places = await page.evaluate<Array<readonly [name: string, x: number, y: number]>>(`
      [...document.querySelectorAll(":is(header, form) :is(a, button, input, select)")].map((each) => {
        const { x, y, height } = each.getBoundingClientRect();
        return [each.textContent || each.id, Math.round(x), Math.round(y + height / 2)];
      }).filter(([, , y]) => y > 0)`);
      expect(places.length).toBeGreaterThan(12);
      // Line by line, and in each from the left; two of a line need not be equally tall.
      const seen = places.toSorted((one, other) =>
        Math.abs(one[2] - other[2]) > 12 ? one[2] - other[2] : one[1] - other[1],
      );
      expect(places).toEqual(seen);
    },
  );

  it("is used by keyboard alone, and shows where the focus is", async () => {
    const page = await world.open();
    await page.keyboard.press("Tab");
    await requireFocus(page, "textbox", "Admin token");
    await page.keyboard.type(ADMIN_TOKENS.operator);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Start" }).waitFor();
    await page.keyboard.press("Tab");
    await requireFocus(page, "link", "Skip to the content");
    await page.keyboard.press("Tab");
    await requireFocus(page, "textbox", "Find a call, a request, a user or an application");
    for (const button of ["Find", "Sign out"]) {
      await page.keyboard.press("Tab");
      await requireFocus(page, "button", button);
    }
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
async function requireFocus(page: Page, role: "link" | "textbox" | "combobox" | "button", name: string): Promise<void> {
  const named =
    role === "textbox" && name === "Admin token" ? page.getByLabel(name) : page.getByRole(role, { name, exact: true });
  const focused = named.and(page.locator(":focus"));
  await focused.waitFor({ timeout: 2000 });
  const ring = await focused.evaluate(
    (element) => element.ownerDocument.defaultView?.getComputedStyle(element).outline,
  );
  expect(ring).toMatch(/ solid [23]px$/);
}
