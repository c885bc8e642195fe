/**
 * Makes a picture of every view of the console, in three widths, light and dark: `npm run screenshots FOLDER`. They are
 * looked at, and compared with nothing: what must hold is tested by structure (test/console).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { createCallers } from "./callers.js";
import { launchChromium } from "./chromium.js";
import { ADMIN_TOKENS, type Harness, startHarness } from "./harness.js";
import { failRefresh } from "./refresh-failure.js";

const LOOKS = [
  { name: "wide", colorScheme: "light", viewport: { width: 1440, height: 900 } },
  { name: "middle", colorScheme: "dark", viewport: { width: 820, height: 1180 } },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 780 } },
] as const;

/** A relay with something to see in each view; resolves to the addresses of the views by their names. */
async function prepare(harness: Harness): Promise<Readonly<Record<string, string>>> {
  const shop = await harness.createApplication({ name: "Shop", callerAuth: "PUBLIC_KEY" });
  const { publicKey, id: applicationId } = shop;
  await harness.putClient(shop);
  for (const userId of ["ada", "bea", "cleo"]) await harness.connect(shop, userId, { refreshToken: "r" });
  const key = { applicationId, userId: "bea", providerName: "sandbox" };
  await failRefresh(harness.store, key);
  const cleo = await harness.store.connections.find({ ...key, userId: "cleo" });
  if (cleo !== undefined) await harness.store.connections.requireReauthorization(cleo, "invalid_grant", Date.now());
  const [[, call] = []] = createCallers(harness.url);
  let callId = "";
  for (const path of ["/me", "/items?count=2", "/status/404", "/me", "/drip?bytes=3&ms=100"]) {
    const description = { url: harness.sandbox.origin + path, method: "GET" };
    const row = await call?.({ providerName: "sandbox", userId: "ada", publicKey, call: description });
    callId = String(row?.["callId"]);
  }
  await harness.store.audit.add({
    ...{ id: "00000000-0000-7000-8000-000000000001", at: Date.now(), actor: "alice", method: "relay key rotate" },
    ...{ resource: "keys/1", publicKey: "", changedFields: [], outcome: "DONE" },
  });
  // Until figures are written.
  await new Promise((resolve) => setTimeout(resolve, 6000));
  const whose = new URLSearchParams({ publicKey, userId: "bea", providerName: "sandbox" });
  const views = ["start", "figures", "live", "calls", "connections", "applications", "providers", "audit", "try"];
  const ofOne = ["application", "clients", "webhook", "token", "link"].map((view) => [
    view,
    `${view}?publicKey=${publicKey}`,
  ]);
  return {
    ...Object.fromEntries([...views.map((view) => [view, view]), ...ofOne]),
    ...{ connection: `connection?${whose}`, call: `call?callId=${callId}`, find: "find?text=ada" },
  };
}

async function signIn(page: Page, adminUrl: string): Promise<void> {
  await page.goto(adminUrl);
  await page.getByLabel("Admin token").fill(ADMIN_TOKENS.operator);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Views" }).waitFor();
}

async function shoot(browser: Browser, { adminUrl }: Harness, views: Readonly<Record<string, string>>, folder: string) {
  for (const { name, ...options } of LOOKS) {
    const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
    const page = await context.newPage();
    await signIn(page, adminUrl);
    for (const [view, hash] of Object.entries(views)) {
      await page.goto(`${adminUrl}/console/#/${hash}`);
      await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => {});
      await page.getByText("Loading…", { exact: true }).first().waitFor({ state: "hidden" });
      await page.screenshot({ path: join(folder, `${view}-${name}.png`), fullPage: view !== "providers" });
    }
    await context.close();
  }
}

const [folder = "screenshots"] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const harness = await startHarness();
const browser = await launchChromium();
try {
  await shoot(browser, harness, await prepare(harness), folder);
} finally {
  await browser.close();
  await harness.close();
}
