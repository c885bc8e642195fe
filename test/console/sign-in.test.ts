import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseTokenFile } from "../../src/admin/admit.js";
import { createSignInLink } from "../../src/admin/sign-in.js";
import { launchChromium, NEEDS_CHROMIUM } from "../support/chromium.js";
import { type Harness, startHarness } from "../support/harness.js";
import { newWatchedPage } from "../support/watched-page.js";

describe("a sign-in link in a browser", NEEDS_CHROMIUM, () => {
  let harness: Harness;
  let browser: Browser;

  beforeAll(async () => {
    harness = await startHarness();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await harness?.close();
  });

  const newLink = async () => {
    const tokens = parseTokenFile(readFileSync(join(harness.folder, "admin.tokens"), "utf8"), "");
    return (
      (await createSignInLink(harness.adminUrl, { folder: join(harness.folder, "spool"), tokens }, Date.now())) ?? ""
    );
  };

  it("opens the console, leaves nothing in the address, lasts for a reload, and opens no other browser", async () => {
    const link = await newLink();
    const page = await newWatchedPage(browser);
    await page.goto(link);
    await page.getByText("alice (operator)").waitFor();
    expect(page.url()).toBe(`${harness.adminUrl}/console/`);
    expect(await page.evaluate("history.length")).toBeLessThan(3);
    await page.reload();
    await page.getByText("alice (operator)").waitFor();
    const other = await newWatchedPage(browser);
    await other.goto(link);
    await other.getByText("This sign-in link was already used or has expired.").waitFor();
    expect(await other.getByLabel("Admin token").isVisible()).toBe(true);
    expect(page.complaints).toEqual([]);
    // A link that is pasted over the address of an open page counts as well.
    await other.goto(await newLink());
    await other.getByText("alice (operator)").waitFor();
  });

  it("cannot be redeemed by a page of another origin, nor in a frame of one", async () => {
    const link = await newLink();
    const secret = link.split("#sign-in=")[1] ?? "";
    const evil = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<title>evil</title><iframe src="${link}"></iframe>`);
    }).listen(0, "127.0.0.1");
    await new Promise((done) => evil.once("listening", done));
    const page = await newWatchedPage(browser);
    await page.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`);
    const tried = await page.evaluate(
      ([url, token]) =>
        Promise.all(
          [
            { headers: { authorization: `Bearer ${token}` } },
            { body: `token=${token}` },
            { mode: "no-cors" as const },
          ].map((options) =>
            fetch(`${url}/console/sign-in`, { method: "POST", ...options }).then(
              ({ status, type }) => (type === "opaque" ? "opaque" : String(status)),
              () => "blocked",
            ),
          ),
        ),
      [harness.adminUrl, secret] as const,
    );
    expect(tried).toEqual(["blocked", "blocked", "opaque"]);
    expect(page.complaints.join("\n")).toMatch(/frame-ancestors|X-Frame-Options/i);
    evil.close();
    const own = await newWatchedPage(browser);
    await own.goto(link);
    await own.getByText("alice (operator)").waitFor();
  });
});
