import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchChromium, NEEDS_CHROMIUM } from "../support/chromium.js";
import { freePort } from "../support/free-port.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

describe("docs/examples/browser", NEEDS_CHROMIUM, () => {
  let harness: Harness;
  let browser: Browser;
  beforeAll(async () => {
    harness = await startHarness();
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await harness.close();
  });

  interface Shown {
    readonly outcome: string | null;
    readonly text: string;
  }

  /** What a page shows, served by the example's own server for the application. */
  async function show(
    { publicKey, privateKey }: TestApplication,
    port: number,
    path: string,
    before = async (_page: Page): Promise<void> => {},
  ): Promise<Shown> {
    const { url } = harness;
    const env = { RELAY_URL: url, API_URL: harness.sandbox.origin, PUBLIC_KEY: publicKey, PRIVATE_KEY: privateKey };
    const server = spawn("npx", ["tsx", "docs/examples/browser/server.ts"], {
      env: { ...process.env, ...env, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"],
      // tsx and node are two processes.
      detached: true,
    });
    try {
      const [line] = await once(createInterface({ input: server.stdout as NodeJS.ReadableStream }), "line");
      const page = await browser.newPage();
      await page.goto(line + path);
      await page.waitForSelector("output[data-outcome]");
      await before(page);
      const output = page.locator("output");
      return { outcome: await output.getAttribute("data-outcome"), text: (await output.textContent()) ?? "" };
    } finally {
      await end(server);
    }
  }

  async function applicationFor(port: number): Promise<TestApplication> {
    const allowedOrigins = [`http://127.0.0.1:${port}`];
    const application = await harness.createApplication({ callerAuth: "SIGNED_USER", allowedOrigins });
    await harness.putClient(application);
    return application;
  }

  it.each([
    ["with a call token", ""],
    ["over Connect with a signature", "/contract"],
  ])("calls %s that the page's server made", async (_how, path) => {
    const port = await freePort();
    const application = await applicationFor(port);
    await harness.connect(application, "ada");
    const shown = await show(application, port, path);
    expect(shown.outcome).toBe("success");
    expect(JSON.parse(shown.text)).toMatchObject({ login: "ada" });
  });

  it("connects the account in a window of its own, and calls then", async () => {
    const port = await freePort();
    const shown = await show(await applicationFor(port), port, "", async (page) => {
      expect(await page.locator("output").getAttribute("data-outcome")).toBe("INVALID_OAUTHID");
      const opened = page.waitForEvent("popup");
      await page.getByRole("button", { name: "Connect my account" }).click();
      await (await opened).getByRole("link", { name: "Continue to Sandbox" }).click();
      await page.waitForSelector('output[data-outcome="success"]');
    });
    expect(JSON.parse(shown.text)).toMatchObject({ login: "ada" });
  });

  it.each([
    ["", "RELAY_UNREACHABLE"],
    ["/contract", "failed"],
  ])("says so at %j where the page's origin is not on the application's list", async (path, outcome) => {
    const application = await harness.createApplication({ allowedOrigins: ["https://elsewhere.example"] });
    expect((await show(application, await freePort(), path)).outcome).toBe(outcome);
  });
});

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  await ended;
}
