import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { onTestFinished } from "vitest";

/** A page, and what its console complained about. */
export type WatchedPage = Page & { readonly complaints: readonly string[] };

/**
 * A page in a browser of its own: no cookie and no storage of any other. It is closed when the test has finished: one
 * that goes on watching calls is busy with those of every test that follows.
 */
export async function newWatchedPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()} at ${message.location().url}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  return Object.assign(page, { complaints });
}
