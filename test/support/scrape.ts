import { request } from "undici";
import { parseExposition, type Sample } from "./exposition.js";
import { ADMIN_TOKENS } from "./harness.js";

/** Asks for the metrics of a relay, as Prometheus does. */
export async function scrape(adminUrl: string, token: string = ADMIN_TOKENS.readOnly): Promise<Sample[]> {
  return parseExposition(await scrapeText(adminUrl, token));
}

/** The same, as it came. */
export async function scrapeText(adminUrl: string, token: string = ADMIN_TOKENS.readOnly): Promise<string> {
  const answer = await request(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text}`);
  return text;
}
