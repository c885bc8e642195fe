/**
 * Makes a picture of every view of the console and the pages of the connect flow, in three widths, light and dark: `npm run screenshots FOLDER`. They are
 * looked at, and compared with nothing: what must hold is tested by structure (test/console).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { createCallers } from "./callers.js";
import { launchChromium } from "./chromium.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "./harness.js";
import { pngOf } from "./pictures.js";
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

/** Pages of the connect flow by their names: of an application with an icon, and of one with a colour. */
async function preparePages({ createApplication, putClient, connect, store, url }: Harness) {
  const accentColor = "#7b1fa2";
  const shop = await createApplication({ name: "Harbour Books", accentColor });
  const notes = await createApplication({ name: "Notes", accentColor });
  await store.applications.update(shop.publicKey, { icon: pngOf(64, 64) }, Date.now());
  for (const application of [shop, notes]) {
    for (const name of ["sandbox", "slack", "spotify", "shopify"]) await putClient(application, name);
    await putClient(application, "github", { scope: "repo read:user user:email admin:gpg_key" });
    await putClient(application, "googledrive", { scope: "" });
    await connect(application, "ada@example.com", { refreshToken: "r" });
  }
  const at = (path: string, { publicKey }: TestApplication) =>
    `${url}/oauth/connect${path}?${new URLSearchParams({ public_key: publicKey, user_id: "ada@example.com" })}`;
  return {
    "connect-page": at("", shop),
    "connect-page-colour": at("", notes),
    "connect-confirm": at("/github", shop),
    "connect-confirm-german": at("/googledrive", notes),
    "connect-asks": at("/shopify", shop),
    "connect-wrong": at("/nobody", shop),
  };
}

async function shootPages(browser: Browser, pages: Readonly<Record<string, string>>, folder: string): Promise<void> {
  for (const { name, ...options } of LOOKS) {
    for (const [view, address] of Object.entries(pages)) {
      const locale = view.endsWith("-german") ? "de-DE" : "en-GB";
      const context = await browser.newContext({ ...options, locale, reducedMotion: "reduce" });
      const page = await context.newPage();
      await page.goto(address);
      await page.screenshot({ path: join(folder, `${view}-${name}.png`), fullPage: true });
      await context.close();
    }
  }
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
  await shootPages(browser, await preparePages(harness), folder);
  await shoot(browser, harness, await prepare(harness), folder);
} finally {
  await browser.close();
  await harness.close();
}
