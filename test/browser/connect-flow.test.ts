import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import type { WatchedPage } from "../support/watched-page.js";
import { signIn, signInAndAllow } from "./provider-steps.js";
import { PROVIDER, startWorld, type World } from "./world.js";

describe("connecting in a browser, at a real authorization server", NEEDS_CHROMIUM, () => {
  let world: World;
  let page: WatchedPage;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world?.close());

  beforeEach(async () => {
    page = await world.newPage();
    world.server.tokenRequests.length = 0;
    world.server.accessTokenSeconds = 600;
  });
  afterEach(async () => {
    await page.context().close();
    expect(page.complaints).toEqual([]);
    expect(world.server.reuses).toEqual([]);
  });

  const status = () => page.getByRole("status").textContent();
  const item = () => page.getByRole("listitem").textContent();

  /** From the connect page through the provider and back to it. */
  async function connect(userId: string): Promise<void> {
    await page.goto(world.connectUrl(userId));
    await page.getByRole("link", { name: "Connect Acme" }).click();
    await signInAndAllow(page);
    await page.getByRole("status").waitFor();
  }

  /** In real time: the server itself says when. */
  async function untilEnded(token: string): Promise<void> {
    const requireEnded = async () => expect(await world.server.takes(token)).toBe(false);
    await vi.waitFor(requireEnded, { timeout: 10_000, interval: 100 });
  }

  /** A user whose access token has ended, and that token. Tokens that are given from then on last. */
  async function connectedAndEnded(userId: string): Promise<string> {
    world.server.accessTokenSeconds = 1;
    await connect(userId);
    const token = await world.tokenOf(userId, "access_token");
    await untilEnded(token);
    world.server.accessTokenSeconds = 600;
    return token;
  }

  it("connects on the page, and calls go through", async () => {
    await connect("calls");
    expect(await status()).toBe("Acme is connected.");
    expect(await item()).toContain("Connected");
    expect(await world.call("calls")).toMatchObject({ pincStatus: "success", statusCode: 200, data: { sub: "ada" } });
    expect(world.server.tokenRequests).toEqual(["authorization_code"]);
  });

  it("connects without the page, and brings the user back to the application", async () => {
    const { publicKey } = world.application;
    const query = new URLSearchParams({ public_key: publicKey, user_id: "direct", redirect_uri: world.redirectUri });
    await page.goto(`${world.harness.url}/oauth/connect/${PROVIDER}?${query}`);
    await signInAndAllow(page);
    await page.getByRole("heading", { name: "Welcome back" }).waitFor();
    expect(page.url()).toBe(`${world.redirectUri}?provider=acme&outcome=success`);
    expect(await world.statesOf("direct")).toEqual([["acme", "ACTIVE", ""]]);
  });

  it("leads from the page back to the application", async () => {
    await page.goto(world.connectUrl("leaves", { redirect_uri: world.redirectUri }));
    await page.getByRole("link", { name: "Back to Example Notes" }).click();
    await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  });

  it("refreshes an access token that has ended, once", async () => {
    const ended = await connectedAndEnded("refreshes");
    expect(await world.call("refreshes")).toMatchObject({ statusCode: 200, data: { sub: "ada" } });
    expect(await world.call("refreshes")).toMatchObject({ statusCode: 200 });
    expect(world.server.tokenRequests).toEqual(["authorization_code", "refresh_token"]);
    expect(await world.tokenOf("refreshes", "access_token")).not.toBe(ended);
  });

  it("refreshes it once for 20 calls at the same moment", async () => {
    await connectedAndEnded("crowd");
    const rows = await Promise.all(Array.from({ length: 20 }, () => world.call("crowd")));
    expect(rows.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(200));
    expect(world.server.tokenRequests).toEqual(["authorization_code", "refresh_token"]);
  });

  it("ends the connection at the provider too, and connects again afterwards", async () => {
    await connect("ends");
    const tokens = [await world.tokenOf("ends", "access_token"), await world.tokenOf("ends", "refresh_token")];
    for (const token of tokens) expect(await world.server.isActive(world.client, token)).toBe(true);
    await page.getByRole("button", { name: "Disconnect Acme" }).click();
    await page.getByText("Not connected").waitFor();
    expect(await status()).toBe("Acme is disconnected.");
    for (const token of tokens) expect(await world.server.isActive(world.client, token)).toBe(false);
    expect(await world.statesOf("ends")).toEqual([]);
    expect(await world.call("ends")).toMatchObject({ errorType: "INVALID_OAUTHID" });

    await page.getByRole("link", { name: "Connect Acme" }).click();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Acme is connected.").waitFor();
    expect(await world.call("ends")).toMatchObject({ statusCode: 200 });
  });

  it("says on the page that the user did not allow it", async () => {
    await page.goto(world.connectUrl("denies"));
    await page.getByRole("link", { name: "Connect Acme" }).click();
    await signIn(page);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("status").waitFor();
    expect(await status()).toContain("Acme is not connected. ");
    expect(await item()).toContain("Not connected");
    expect(world.server.tokenRequests).toEqual([]);
  });

  it("tells the application that the user did not allow it", async () => {
    const { publicKey } = world.application;
    const query = new URLSearchParams({ public_key: publicKey, user_id: "denies", redirect_uri: world.redirectUri });
    await page.goto(`${world.harness.url}/oauth/connect/${PROVIDER}?${query}`);
    await signIn(page);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("heading", { name: "Welcome back" }).waitFor();
    expect(page.url()).toBe(`${world.redirectUri}?provider=acme&outcome=error&error=access_denied`);
  });

  it("asks the user to connect again when the provider has ended the connection", async () => {
    await connect("revoked");
    await world.server.revoke(world.client, await world.tokenOf("revoked", "refresh_token"));
    expect(await world.call("revoked")).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED", statusCode: 401 });
    expect(await world.statesOf("revoked")).toEqual([["acme", "REAUTHORIZATION_REQUIRED", "invalid_grant"]]);

    await page.goto(world.connectUrl("revoked"));
    expect(await item()).toContain("No longer connected");
    await page.getByRole("link", { name: "Connect again to Acme" }).click();
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByText("Acme is connected.").waitFor();
    expect(await world.statesOf("revoked")).toEqual([["acme", "ACTIVE", ""]]);
    expect(await world.call("revoked")).toMatchObject({ statusCode: 200 });
  });

  it("would have heard of a refresh token that was used twice", async () => {
    await connectedAndEnded("replays");
    const used = await world.tokenOf("replays", "refresh_token");
    await world.call("replays");
    const form = { grant_type: "refresh_token", refresh_token: used };
    expect(await world.server.post("/token", world.client, form)).toMatchObject({ statusCode: 400 });
    expect(world.server.tokenRequests.at(-1)).toBe("refresh_token invalid_grant: refresh token already used");
    expect(world.server.reuses.splice(0)).toHaveLength(1);
    expect(await world.call("replays")).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
  });
});
