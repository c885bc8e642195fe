import type { Page } from "playwright-core";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS } from "../support/harness.js";
import { type ConsoleWorld, go, MARKUP, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

/** An address that runs, markup, entities, and the marks of templates: the first begins it, since only there it would run. */
const HOSTILE = `javascript:globalThis.ran=1//${MARKUP}&lt;img src=x onerror=globalThis.ran=1&gt;<!--?lit$1$-->\${globalThis.ran=1}</svg></style>`;

/** What is no text of anybody: enums, times, lengths, numbers, and where the next page begins. */
const OWN = /^(?:[A-Z][A-Z_]+|\d{4}-\d\d-\d\dT.*|[\d.]+s?)$/;
const OWN_NAMES = ["nextPageToken", "bodyStart", "etag"];

/** An answer of the API in which every text, and every name of a map, is a hostile one. @param onText called for each. */
function hostileFrom(value: unknown, onText: () => void, name = ""): unknown {
  if (typeof value === "string") {
    if (OWN_NAMES.includes(name) || (OWN.test(value) && name !== "errorType")) return value;
    onText();
    return HOSTILE;
  }
  if (Array.isArray(value)) return value.map((each) => hostileFrom(each, onText, name));
  if (typeof value !== "object" || value === null) return value;
  const isMap = ["originParameters", "headers"].includes(name);
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [isMap ? HOSTILE : key, hostileFrom(each, onText, key)]),
  );
}

/** Nothing is asked for any more. */
async function settled(page: Page): Promise<void> {
  await expect.poll(() => page.getByText(/^(?:Loading|Working)…$/).count()).toBe(0);
}

/** Everything in the page that an answer of the API could have made, if it could. */
async function requireTextAlone(page: Page): Promise<void> {
  expect(await page.evaluate("globalThis.ran")).toBeUndefined();
  expect(await page.locator("img, script:not([src]), iframe, style, [onerror], [onload], [style]").count()).toBe(0);
  const addresses = await page
    .locator("[href], [src], [action]")
    .evaluateAll((all) =>
      all.map((each) => ["href", "src", "action"].map((name) => each.getAttribute(name) ?? "").join("")),
    );
  expect(addresses.filter((address) => !/^(?:#|https?:\/\/|[\w.-]+$)/.test(address))).toEqual([]);
}

/** What can be pressed on each view; the answers to that are hostile as well. */
const BUTTONS =
  /^(?:Explain|Perform the call|Make the connect link|Make the call token|See what it would allow|Send a test event|Refresh it now|Save|Store the client|Set the webhook)$/;

describe("whatever the API answers", NEEDS_CHROMIUM, () => {
  it("is text in every view and in what forms say", async () => {
    const { harness } = world;
    const application = await harness.createApplication({ captureUntil: Date.now() + 60_000 });
    const { publicKey } = application;
    await harness.connect(application, "ada");
    await harness.putClient(application);
    const webhook = { publicKey, uri: `${harness.sandbox.origin}/status/500` };
    await request(`${harness.adminUrl}/relay.admin.v1.WebhookService/PutWebhook`, {
      ...{
        method: "POST",
        headers: { authorization: `Bearer ${ADMIN_TOKENS.operator}`, "content-type": "application/json" },
      },
      body: JSON.stringify({ webhook }),
    });
    const { callId } = await world.call("/status/403", { publicKey });
    let texts = 0;
    const page = await world.openView("Start");
    await go(page, `#/call?callId=${callId}`);
    await page.getByRole("region", { name: "Record" }).waitFor();
    await page.route(/relay\.admin\.v1\.(?!CallRecordService\/Watch)/, async (route) => {
      const response = await route.fetch();
      const json: unknown = await response.json();
      await route.fulfill({ response, json: hostileFrom(json, () => (texts += 1)) });
    });
    const key = new URLSearchParams({ publicKey });
    const whole = new URLSearchParams({ publicKey, userId: "ada", providerName: "sandbox" });
    for (const view of [
      ...["start", "figures", "live", "calls", "connections", "applications", "providers", "audit", "find?text=ada"],
      ...[`call?callId=${callId}`, `try?${whole}&url=${harness.sandbox.origin}/me`, `link?${whole}`, `token?${whole}`],
      ...["application", "clients", "webhook"].map((name) => `${name}?${key}`),
      ...[`clients?${whole}`, `connection?${whole}`],
    ]) {
      await go(page, `#/${view}`);
      await settled(page);
      await requireTextAlone(page);
      for (const button of await page.getByRole("button", { name: BUTTONS }).all()) {
        await button.click();
        await settled(page);
        await requireTextAlone(page);
      }
    }
    expect(texts).toBeGreaterThan(1000);
    expect(page.complaints.filter((each) => !/status of 4\d\d/.test(each))).toEqual([]);
  });

  it("is text as well where it stands in the address of a view", async () => {
    const page = await world.openView("Start");
    const names = "publicKey userId providerName text callId state errorType from until url method headers payload";
    const hostile = new URLSearchParams(Object.fromEntries(names.split(" ").map((name) => [name, MARKUP])));
    for (const view of "start figures live calls connections applications providers audit try find call application clients connection link token webhook".split(
      " ",
    )) {
      await go(page, `#/${view}?${hostile}`);
      await settled(page);
      await requireTextAlone(page);
    }
  });
});
