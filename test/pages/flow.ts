import { request } from "undici";
import type { Connection } from "../../src/oauth/connection.js";
import type { Harness, TestApplication } from "../support/harness.js";
import { type Browser, openBrowser, type Seen } from "./browser.js";

/** Where the tests' applications want their browsers back. */
export const BACK = "https://app.example.com/connected";

/** Address of a page, with a query. */
export function pageAt(harness: Pick<Harness, "url">, path: string, query: Readonly<Record<string, string>>): string {
  return `${harness.url}${path}?${new URLSearchParams(query)}`;
}

/** Address that begins the connection of one provider. */
export function startAt(
  harness: Pick<Harness, "url">,
  { publicKey }: Pick<TestApplication, "publicKey">,
  userId: string,
  { provider = "sandbox", ...query }: Readonly<Record<string, string>> = {},
): string {
  return pageAt(harness, `/oauth/connect/${provider}`, { public_key: publicKey, user_id: userId, ...query });
}

/** A link as the application's server makes one: to one provider, or to the page. @param more further members. */
export async function linkTo(...link: Parameters<typeof answerToLink>): Promise<string> {
  const { connectUri } = (await answerToLink(...link)) as { connectUri: string };
  return connectUri;
}

/** The row of one that is refused. */
export async function refusedLinkTo(...link: Parameters<typeof answerToLink>): Promise<Record<string, unknown>> {
  const { rows } = (await answerToLink(...link)) as { rows: [Record<string, unknown>] };
  return rows[0];
}

async function answerToLink(
  harness: Pick<Harness, "url">,
  { publicKey, privateKey }: TestApplication,
  userId: string,
  more: object = {},
): Promise<unknown> {
  const body = JSON.stringify({ public_key: publicKey, user_id: userId, ...more });
  const headers = { authorization: `Bearer ${privateKey}` };
  const answer = await request(`${harness.url}/oauth/connect-links`, { method: "POST", headers, body });
  return answer.body.json();
}

/** Opens an address that begins a connection, and goes on from the page that says whose it will be. */
export async function begin(browser: Browser, start: string): Promise<Seen> {
  const seen = await browser.visit(start);
  const [, onward] = /<p><a class="button main" href="([^"]+)"/.exec(seen.body) ?? [];
  return onward === undefined ? seen : browser.visit(new URL(onward.replaceAll("&amp;", "&"), start).href);
}

/** Goes from an address of the relay to the provider, which consents; returns where that sends the browser back to. */
export async function consent(browser: Browser, start: string): Promise<string> {
  const begun = await begin(browser, start);
  if (begun.status !== 303) throw new Error(`not sent to the provider: ${begun.status} ${begun.body}`);
  return (await openBrowser().visit(begun.location)).location;
}

/** The whole way, up to the callback's answer. */
export async function connectIn(browser: Browser, start: string): Promise<Seen> {
  return browser.visit(await consent(browser, start));
}

/** The stored connection; undefined for none. */
export function storedOf(
  { store }: Pick<Harness, "store">,
  { id: applicationId }: Pick<TestApplication, "id">,
  userId: string,
  providerName = "sandbox",
): Promise<Connection | undefined> {
  return store.connections.find({ applicationId, userId, providerName });
}

/** The same address with other parameters; undefined takes one away. */
export function withQuery(url: string, changes: Readonly<Record<string, string | undefined>>): string {
  const changed = new URL(url);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) changed.searchParams.delete(name);
    else changed.searchParams.set(name, value);
  }
  return changed.href;
}
