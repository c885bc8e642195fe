import { join } from "node:path";
import Database from "better-sqlite3";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { CONNECTION_COLUMNS } from "../../src/store/connection-row.js";
import { createCallers, type Row, type ScenarioCall } from "../support/callers.js";
import { launchChromium } from "../support/chromium.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { newWatchedPage, type WatchedPage } from "../support/watched-page.js";

/** Text that would run, wherever it became markup. */
export const MARKUP = `"'><img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>`;

/** The names of the console's views. */
export const VIEWS = [
  ...(["Start", "Figures", "Live calls", "Recorded calls", "Connections", "Applications"] as const),
  ...(["Providers", "Audit trail", "Try a call"] as const),
] as const;

/** A relay with calls, users and hostile texts in it, and Chromium in front of its console. */
export interface ConsoleWorld {
  readonly harness: Harness;
  readonly application: TestApplication;
  /** Access token of the user `ada`. */
  readonly token: string;
  /** The console's page in a browser of its own, not signed in. */
  open(options?: BrowserContextOptions): Promise<WatchedPage>;
  /** The same, signed in and with the view shown. */
  openView(view: (typeof VIEWS)[number], options?: BrowserContextOptions & { token?: string }): Promise<WatchedPage>;
  /** Calls the relay for `ada` unless told. */
  call(path: string, outer?: Partial<ScenarioCall>): Promise<Row>;
  close(): Promise<void>;
}

/** Starts everything; `ada` is connected at the sandbox, and so is a user whose id is markup. */
export async function startConsoleWorld(): Promise<ConsoleWorld> {
  const harness = await startHarness({
    providers: [{ name: "hostile", displayName: MARKUP, apiOrigins: ["https://api.example.com"], notes: MARKUP }],
  });
  const application = await harness.createApplication({ name: MARKUP });
  const token = await harness.connect(application, "ada");
  await harness.connect(application, MARKUP);
  await harness.putClient(application);
  const browser = await launchChromium();
  const [, [, callOverConnect]] = createCallers(harness.url) as [
    unknown,
    [string, (call: ScenarioCall) => Promise<Row>],
  ];
  const open = (options?: BrowserContextOptions) => openConsole(browser, harness, options);
  return {
    ...{ harness, application, token, open },
    async openView(view, { token: adminToken = ADMIN_TOKENS.operator, ...options } = {}) {
      const page = await open(options);
      await signIn(page, adminToken);
      await showView(page, view);
      return page;
    },
    call: (path, outer) =>
      callOverConnect({
        ...{ providerName: "sandbox", userId: "ada", publicKey: application.publicKey },
        call: { url: `${harness.sandbox.origin}${path}`, method: "GET" },
        ...outer,
      }),
    async close() {
      await browser.close();
      await harness.close();
    },
  };
}

/** Pastes a token as an operator does. */
export async function signIn(page: WatchedPage, token: string): Promise<void> {
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Views", exact: true }).waitFor();
}

/** Goes to an address within the console. */
export async function go(page: Page, hash: string): Promise<void> {
  await page.goto(`${page.url().split("#")[0]}${hash}`);
  await page.locator("h1").waitFor();
}

/** Follows the link to a view. */
export async function showView(page: WatchedPage, view: string): Promise<void> {
  await page.getByRole("link", { name: view, exact: true }).click();
  await page.getByRole("heading", { level: 1, name: view }).waitFor();
}

/** Fills the store with users `user-000000` and on, one in a hundred of whom must connect again; no token of theirs opens. */
export function addUsers({ folder }: Harness, { id }: TestApplication, count: number): void {
  const db = new Database(join(folder, "relay.db"));
  const own: Readonly<Record<string, string>> = {
    id: "'bulk-' || i",
    user_id: "printf('user-%06d', i)",
    state: "iif(i % 100 = 0, 'REAUTHORIZATION_REQUIRED', 'ACTIVE')",
    state_reason: "iif(i % 100 = 0, 'invalid_grant', NULL)",
  };
  const columns = [...CONNECTION_COLUMNS.split(",").map((name) => name.trim()), "state_reason"];
  const values = columns.map((name) => own[name] ?? name);
  db.prepare(
    `INSERT INTO connections (${columns.join(", ")})
     WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < ?)
     SELECT ${values.join(", ")} FROM numbers, connections WHERE application_id = ? AND user_id = 'ada'`,
  ).run(count, id);
  db.close();
}

async function openConsole(browser: Browser, { adminUrl }: Harness, options?: BrowserContextOptions) {
  const page = await newWatchedPage(browser, options);
  await page.goto(adminUrl);
  await page.getByLabel("Admin token").waitFor();
  return page;
}
