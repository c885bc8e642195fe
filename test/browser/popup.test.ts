import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createRelayClient, type RelayClient } from "../../client/src/client.js";
import { bundleForBrowser } from "../client/bundle.js";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import type { TestApplication } from "../support/harness.js";
import type { WatchedPage } from "../support/watched-page.js";
import { goToProvider, signIn, signInAndAllow } from "./provider-steps.js";
import { PROVIDER, startWorld, type World } from "./world.js";

/** What a page's own code does with the package. */
const PAGE_CODE = `
import { connectAccount } from "./browser.js";
import { createRelayClient } from "./client.js";
globalThis.connect = (options) => { globalThis.result = connectAccount(options); };
globalThis.createRelayClient = createRelayClient;
`;

/** A page of the application, at an origin that is not the relay's. */
async function startPage(): Promise<{ readonly server: Server; readonly origin: string }> {
  const { script } = await bundleForBrowser(PAGE_CODE);
  const server = createServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(
      isScript
        ? script
        : `<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>`,
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, origin: `http://localhost:${(server.address() as AddressInfo).port}` };
}

describe("a page of the application", NEEDS_CHROMIUM, () => {
  let world: World;
  let pageServer: Server;
  let origin: string;
  let application: TestApplication;
  let relay: RelayClient;
  let page: WatchedPage;

  beforeAll(async () => {
    world = await startWorld();
    ({ server: pageServer, origin } = await startPage());
    application = await world.harness.createApplication({ callerAuth: "PRIVATE_KEY", allowedOrigins: [origin] });
    await world.harness.putClient(application, PROVIDER, world.client);
    const { publicKey, privateKey } = application;
    relay = createRelayClient({ url: world.harness.url, publicKey, privateKey });
  });
  afterAll(async () => {
    pageServer?.close();
    await world?.close();
  });
  beforeEach(async () => {
    page = await world.newPage();
    await page.goto(origin);
  });

  const linkFor = async (userId: string) => (await relay.connectLink({ userId, provider: PROVIDER })).connectUri;
  const result = () => page.evaluate("globalThis.result");

  /** Begins to connect; the window that opens. */
  async function openFor(link: string, more = ""): Promise<Page> {
    const opened = page.waitForEvent("popup");
    await page.evaluate(`connect({ link: ${JSON.stringify(link)}${more} })`);
    return opened;
  }

  it("connects an account in a window that closes when it is done, and calls with a call token", async () => {
    const popup = await openFor(await linkFor("ada"));
    const closed = popup.waitForEvent("close");
    await signInAndAllow(popup);
    expect(await result()).toEqual({ outcome: "success", provider: PROVIDER });
    await closed;

    const { publicKey } = application;
    const callToken = await relay.account("ada", PROVIDER).token();
    const url = world.server.meUrl;
    const account = `createRelayClient(${JSON.stringify({ url: world.harness.url, publicKey, callToken })}).account("ada", "${PROVIDER}")`;
    const called = await page.evaluate(`${account}.call({ url: "${url}" })`);
    expect(called).toMatchObject({ status: 200, data: { sub: "ada" } });
    const fetched = await page.evaluate(
      `${account}.fetch("${url}").then(async (answer) => [answer.status, answer.headers.get("x-call-id"), await answer.json()])`,
    );
    expect(fetched).toEqual([200, expect.stringMatching(/^[0-9a-f-]{36}$/), expect.objectContaining({ sub: "ada" })]);
    const put = await page.evaluate(
      `${account}.fetch("${url}", { method: "PUT", headers: { "x-odd": "1" }, body: "{}" }).then(({ status }) => status)`,
    );
    expect(put).toBe(404);
    const request = `new Request("${url}", { method: "PUT", body: "{}" })`;
    expect(await page.evaluate(`${account}.fetch(${request}).then(({ status }) => status)`)).toBe(404);
    expect(page.complaints.filter((complaint) => !complaint.includes("404"))).toEqual([]);
  });

  it("hears of a refusal, from the page of all providers as well", async () => {
    const { connectUri } = await relay.connectLink({ userId: "bob" });
    const popup = await openFor(connectUri);
    await popup.getByRole("link", { name: "Connect Acme" }).click();
    await signIn(popup);
    await popup.getByRole("button", { name: "Deny" }).click();
    expect(await result()).toEqual({ outcome: "error", provider: PROVIDER, error: "access_denied" });
  });

  it("opens the window before it has a link, and takes no address that runs a script", async () => {
    const opened = page.waitForEvent("popup");
    await page.evaluate("connect({ link: new Promise((resolve) => { globalThis.giveLink = resolve; }) })");
    const popup = await opened;
    expect(popup.url()).toBe("about:blank");
    await page.evaluate(`giveLink(${JSON.stringify(await linkFor("carl"))})`);
    await signInAndAllow(popup);
    expect(await result()).toEqual({ outcome: "success", provider: PROVIDER });
    await openFor("javascript:alert(document.domain)");
    await expect(result()).rejects.toThrow(/not an http or https URL/);
  });

  it("is told when no window opens, when the user closes it, and when it takes too long", async () => {
    const popup = await openFor(await linkFor("dora"));
    await goToProvider(popup);
    await popup.close();
    expect(await result()).toEqual({ outcome: "closed" });
    await openFor(await linkFor("dora"), ", timeoutMs: 1");
    expect(await result()).toEqual({ outcome: "timeout" });
    await page.evaluate("window.open = () => null");
    await page.evaluate("connect({ link: 'https://relay.example.com' })");
    expect(await result()).toEqual({ outcome: "blocked" });
  });

  it("ends when its link never comes: with the window, and with the time", async () => {
    const opened = page.waitForEvent("popup");
    await page.evaluate("connect({ link: new Promise(() => {}) })");
    const popup = await opened;
    await popup.close();
    expect(await result()).toEqual({ outcome: "closed" });
    await page.evaluate("connect({ link: new Promise(() => {}), timeoutMs: 1 })");
    expect(await result()).toEqual({ outcome: "timeout" });
  });

  it("believes no other origin and no other window", async () => {
    const popup = await openFor(await linkFor("emil"));
    await goToProvider(popup);
    const lie = `{ type: "provider-call-relay.connect", outcome: "success", provider: "lie" }`;
    // The provider's page, in the right window; and the right page, in another.
    await popup.evaluate(`opener.postMessage(${lie}, "*")`);
    const opened = page.waitForEvent("popup");
    await page.evaluate(`void window.open("${world.harness.url}/oauth/callback")`);
    const other = await opened;
    await other.waitForLoadState();
    expect(new URL(other.url()).origin).toBe(world.harness.url);
    await other.evaluate(`opener.postMessage(${lie}, "*")`);
    await signInAndAllow(popup);
    expect(await result()).toEqual({ outcome: "success", provider: PROVIDER });
  });

  it("cannot open the window for an origin that is not on the list", async () => {
    const { publicKey } = world.application;
    const query = new URLSearchParams({ public_key: publicKey, user_id: "frida" });
    const popup = await openFor(`${world.harness.url}/oauth/connect/${PROVIDER}?${query}`);
    await popup.getByText("is not on the application's list").waitFor();
    await popup.close();
    expect(await result()).toEqual({ outcome: "closed" });
  });

  it("waits for the user to come back where the provider's page cuts the tie between the windows", async () => {
    await page.evaluate(
      "globalThis.isBack = false; globalThis.asked = 0; document.hasFocus = () => { asked += 1; return isBack; }",
    );
    world.server.openerPolicy = "same-origin";
    onTestFinished(() => {
      world.server.openerPolicy = undefined;
    });
    const popup = await openFor(await linkFor("gerd"));
    await goToProvider(popup);
    expect(await popup.evaluate("opener")).toBeNull();
    await signInAndAllow(popup);
    await page.waitForFunction("asked > 1");
    await expect.poll(() => relay.connections("gerd")).toHaveLength(1);
    expect(await page.evaluate(`Promise.race([result, "waits"])`)).toBe("waits");
    await page.evaluate("isBack = true");
    expect(await result()).toEqual({ outcome: "closed" });
    expect(await relay.connections("gerd")).toMatchObject([{ providerName: PROVIDER, state: "ACTIVE" }]);
  });
});
