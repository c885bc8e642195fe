import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAuthority } from "../support/certificates.js";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import type { WatchedPage } from "../support/watched-page.js";
import { startWorld, type World } from "./world.js";

const SIGN_IN = "https://signin.accounts.example";

/** A provider whose accounts have addresses of their own; its sign-in is on another host, as at many providers. */
const DEFINITION = {
  name: "widgets",
  displayName: "Widgets & Co",
  apiOrigins: ["https://{shop}.widgets.example"],
  oauth2: {
    authorizationEndpoint: "https://{shop}.widgets.example/authorize",
    tokenEndpoint: "https://{shop}.widgets.example/token",
    pkce: true,
  },
};

describe("asking for an account's address in a browser", NEEDS_CHROMIUM, () => {
  let provider: Server;
  /** What the provider was asked for: host and path with query. */
  const visits: URL[] = [];
  let world: World;
  let page: WatchedPage;

  beforeAll(async () => {
    const names = ["acme.widgets.example", "signin.accounts.example"];
    provider = createServer(createAuthority("test").issue({ names }), (request, response) => {
      const url = new URL(request.url ?? "", `https://${request.headers.host}`);
      visits.push(url);
      const isAuthorize = url.pathname === "/authorize";
      response.writeHead(isAuthorize ? 302 : 200, { location: SIGN_IN, "content-type": "text/html" });
      response.end(isAuthorize ? "" : `<!doctype html><link rel="icon" href="data:,"><h1>Sign in</h1>`);
    });
    provider.listen(0, "127.0.0.1");
    await once(provider, "listening");
    const there = `127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const rules = `MAP *.widgets.example ${there},MAP *.accounts.example ${there}`;
    world = await startWorld({ providers: [DEFINITION] }, [`--host-resolver-rules=${rules}`]);
    await world.harness.putClient(world.application, "widgets");
  });
  afterAll(async () => {
    await world?.close();
    provider.closeAllConnections();
    provider.close();
  });

  beforeEach(async () => {
    visits.length = 0;
    page = await world.newPage({ ignoreHTTPSErrors: true });
  });
  afterEach(() => page.context().close());

  it("goes on to the provider and from there to its sign-in, by keyboard alone", async () => {
    await page.goto(world.connectUrl("keyboard"));
    await page.getByRole("link", { name: "Connect Widgets & Co" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("textbox", { name: "Widgets & Co shop" }).waitFor();
    expect(await page.locator(":focus").getAttribute("name")).toBe("shop");
    await page.keyboard.type("Acme");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(visits.map(({ origin }) => origin)).toEqual(["https://acme.widgets.example", SIGN_IN]);
    expect(visits[0]?.searchParams.get("redirect_uri")).toBe(`${world.harness.url}/oauth/callback`);
    expect(visits[0]?.searchParams.get("state")).toHaveLength(43);
    expect(page.complaints).toEqual([]);
  });

  it("says what is wrong, keeps what was written, and takes a whole address", async () => {
    await page.goto(world.connectUrl("mends"));
    await page.getByRole("link", { name: "Connect Widgets & Co" }).click();
    const field = page.getByRole("textbox", { name: "Widgets & Co shop" });
    await field.fill("my shop");
    await page.getByRole("button", { name: "Continue to Widgets & Co" }).click();
    await page.getByRole("alert").waitFor();
    expect(await page.title()).toBe("No such address. Connect Widgets & Co");
    expect(await field.inputValue()).toBe("my shop");
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    await field.fill("https://acme.widgets.example/home?tab=1");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(visits[0]?.origin).toBe("https://acme.widgets.example");
  });
});
