import type { Page } from "playwright-core";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import type { TestApplication } from "../support/harness.js";
import { signInAndAllow } from "./provider-steps.js";
import { PROVIDER, startWorld, type World } from "./world.js";

/** Keeps the provider's answer from arriving; `arrival` resolves to its address. */
async function stopAtCallback(page: Page): Promise<{ readonly arrival: Promise<string> }> {
  const session = await page.context().newCDPSession(page);
  await session.send("Fetch.enable", { patterns: [{ urlPattern: "*/oauth/callback*" }] });
  const arrival = new Promise<string>((resolve) => {
    session.on("Fetch.requestPaused", ({ requestId, request: { url } }) => {
      resolve(url);
      void session.send("Fetch.failRequest", { requestId, errorReason: "Aborted" });
    });
  });
  return { arrival };
}

describe("what one browser has, in another browser", NEEDS_CHROMIUM, () => {
  let world: World;

  /** An application that proves itself with its private key. */
  let application: TestApplication;

  beforeAll(async () => {
    world = await startWorld();
    application = await world.harness.createApplication({ name: "Example Ledger", callerAuth: "PRIVATE_KEY" });
    await world.harness.putClient(application, PROVIDER, world.client);
  });
  afterAll(() => world?.close());

  async function linkFor(userId: string): Promise<string> {
    const answer = await request(`${world.harness.url}/oauth/connect-links`, {
      method: "POST",
      headers: { authorization: `Bearer ${application.privateKey}`, "content-type": "application/json" },
      body: JSON.stringify({ publicKey: application.publicKey, userId }),
    });
    return ((await answer.body.json()) as { connectUri: string }).connectUri;
  }

  it("does not open the page by its address", async () => {
    const first = await world.newPage();
    await first.goto(world.connectUrl("owner"));
    const link = await first.getByRole("link", { name: "Connect Acme" }).getAttribute("href");
    const session = new URL(link ?? "", world.harness.url).searchParams.get("session") ?? "";
    expect(session).toHaveLength(43);
    const second = await world.newPage();
    for (const path of ["/oauth/connect", `/oauth/connect/${PROVIDER}`]) {
      const address = `${world.harness.url}${path}?session=${session}`;
      expect((await second.goto(address))?.status()).toBe(403);
      await second.getByRole("heading", { name: "This link does not work" }).waitFor();
      expect((await first.goto(address))?.status()).toBe(200);
    }
  });

  it("does not take the provider's answer to the first, which still ends what it began", async () => {
    const first = await world.newPage();
    const authorization = first.waitForRequest((each) => each.url().startsWith(`${world.server.origin}/auth?`));
    await first.goto(world.connectUrl("victim"));
    await first.getByRole("link", { name: "Connect Acme" }).click();
    const state = new URL((await authorization).url()).searchParams.get("state") ?? "";
    const query = new URLSearchParams({ state, code: "of-somebody-else", iss: world.server.origin });
    const second = await world.newPage();
    expect((await second.goto(`${world.harness.url}/oauth/callback?${query}`))?.status()).toBe(400);
    await second.getByRole("heading", { name: "This link does not work" }).waitFor();
    await signInAndAllow(first);
    await first.getByText("Acme is connected.").waitFor();
  });

  it("does not connect somebody else's account to the user of the second", async () => {
    const first = await world.newPage();
    const { arrival } = await stopAtCallback(first);
    await first.goto(world.connectUrl("attacker"));
    await first.getByRole("link", { name: "Connect Acme" }).click();
    await signInAndAllow(first, "mallory");
    const second = await world.newPage();
    await second.goto(world.connectUrl("victim-of-mallory"));
    expect((await second.goto(await arrival))?.status()).toBe(400);
    for (const userId of ["attacker", "victim-of-mallory"]) expect(await world.statesOf(userId)).toEqual([]);
  });

  it("does not open a link that was opened", async () => {
    const link = await linkFor("linked");
    const first = await world.newPage();
    expect((await first.goto(link))?.status()).toBe(200);
    const second = await world.newPage();
    expect((await second.goto(link))?.status()).toBe(403);
    await second.getByText("This link has already been used or has expired.").waitFor();
  });

  it("connects through a link of an application whose key no browser may have", async () => {
    const page = await world.newPage();
    await page.goto(await linkFor("linked"));
    expect(page.url()).not.toContain("link=");
    await page.getByRole("link", { name: "Connect Acme" }).click();
    await signInAndAllow(page);
    await page.getByText("Acme is connected.").waitFor();
    await page.reload();
    await page.getByText("Acme is connected.").waitFor();
    expect(page.complaints).toEqual([]);
  });
});
