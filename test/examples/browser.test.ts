import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Browser } from "playwright-core";
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

  /** What the page shows, served by the example's own server for the application. */
  async function show(
    { publicKey, privateKey }: TestApplication,
    port: number,
  ): Promise<{ outcome: string | null; text: string }> {
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
      await page.goto(line);
      await page.waitForSelector("output[data-outcome]");
      const output = page.locator("output");
      return { outcome: await output.getAttribute("data-outcome"), text: (await output.textContent()) ?? "" };
    } finally {
      await end(server);
    }
  }

  it("calls over Connect with a signature that the page's server made", async () => {
    const port = await freePort();
    const application = await harness.createApplication({
      callerAuth: "SIGNED_USER",
      allowedOrigins: [`http://127.0.0.1:${port}`],
    });
    await harness.connect(application, "ada");
    const shown = await show(application, port);
    expect(shown.outcome).toBe("success");
    expect(JSON.parse(shown.text)).toMatchObject({ login: "ada" });
  });

  it("says so where the page's origin is not on the application's list", async () => {
    const application = await harness.createApplication({ allowedOrigins: ["https://elsewhere.example"] });
    expect((await show(application, await freePort())).outcome).toBe("failed");
  });
});

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  if (child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  await ended;
}
