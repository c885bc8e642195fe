import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFolder, finished, RELAY } from "../cli/run-relay.js";
import { launchChromium, NEEDS_CHROMIUM } from "../support/chromium.js";
import { startSandbox } from "../support/sandbox.js";
import { newWatchedPage } from "../support/watched-page.js";
import { startConsoleWorld } from "./world.js";

/** What a person does with a mouse and a keyboard; each press and each field is a step. */
function createHands() {
  let steps = 0;
  return {
    get steps() {
      return steps;
    },
    async press(what: Locator): Promise<void> {
      steps += 1;
      await what.click();
    },
    async type(field: Locator, text: string): Promise<void> {
      steps += 1;
      await field.fill(text);
    },
  };
}

const link = (page: Page, name: string | RegExp) => page.getByRole("link", { name });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });

/** `relay` alone in an empty folder, with a provider on this machine; resolves to a link to its console. */
async function startEmptyRelay(definition: object): Promise<string> {
  const { path } = createFolder();
  writeFileSync(join(path, "sandbox.json"), JSON.stringify(definition));
  const env = { PATH: process.env["PATH"] ?? "", RELAY_ALLOW_LOOPBACK: "true", RELAY_PROVIDERS: "sandbox.json" };
  const run = (args: readonly string[], adminListen: string) =>
    spawn(process.execPath, [RELAY, ...args], {
      ...{ cwd: path, env: { ...env, RELAY_LISTEN: "127.0.0.1:0", RELAY_ADMIN_LISTEN: adminListen } },
    });
  const relay = run([], "127.0.0.1:0");
  const ended = once(relay, "close");
  onTestFinished(async () => {
    relay.kill("SIGKILL");
    await ended;
  });
  const adminUrl = await new Promise<string>((resolve, reject) => {
    let told = "";
    relay.stderr.on("data", (chunk) => {
      told += chunk;
      const url = /console is at (http:\S+)\/console\//.exec(told)?.[1];
      if (url !== undefined) resolve(url);
    });
    relay.once("close", () => reject(new Error(told)));
  });
  return (await finished(run(["console"], new URL(adminUrl).host))).stdout.trim();
}

describe("a new operator with nothing but a browser", NEEDS_CHROMIUM, () => {
  it("goes from an empty relay to a connected user, a call that succeeds, and a connection that is revoked", async () => {
    const sandbox = await startSandbox();
    onTestFinished(() => sandbox.close());
    const browser = await launchChromium();
    onTestFinished(() => browser.close());
    const page = await newWatchedPage(browser);
    const hands = createHands();
    await page.goto(await startEmptyRelay(sandbox.providerDefinition("sandbox")));

    await hands.press(link(page, "Create an application"));
    await hands.type(field(page, "Name"), "Notes");
    await hands.press(button(page, "Create the application"));
    // Whoever goes back to the start finds the next step there.
    await page.goto(`${page.url().split("#")[0]}#/start`);
    await page.getByRole("listitem").filter({ hasText: "Create an application" }).getByText("Done").waitFor();
    await hands.press(link(page, "Enter its OAuth client"));
    await page.getByText(/\/oauth\/callback$/).waitFor();
    await hands.type(field(page, "Provider"), "sandbox");
    const { client_id, client_secret = "" } = sandbox.client;
    await hands.type(field(page, "Client id"), client_id);
    await hands.type(field(page, "Client secret"), client_secret);
    await hands.press(button(page, "Store the client"));
    await hands.press(link(page, "make a connect link for a user"));
    await hands.type(field(page, "User id"), "ada");
    await hands.press(button(page, "Make the connect link"));

    const opened = page.context().waitForEvent("page");
    await hands.press(link(page, "open it here"));
    const user = await opened;
    await user.getByText("for its user ada").waitFor();
    await hands.press(link(user, "Continue to Sandbox"));
    await user.getByText("Sandbox is connected").first().waitFor();
    await user.close();

    await hands.press(link(page, "what this user has connected"));
    await hands.press(link(page, "Open the connection of ada at sandbox"));
    await page.getByRole("region", { name: "State" }).getByText("Works").waitFor();
    await hands.press(link(page, "Try a call").last());
    await hands.type(field(page, "URL"), `${sandbox.origin}/me`);
    await hands.press(button(page, "Perform the call"));
    await page.getByText("The call carried less proof than the application requires.").waitFor();
    // The button belongs to what is shown, whatever stands in the form by now.
    await field(page, "User id").fill("eve");
    await field(page, "URL").fill(`${sandbox.origin}/items`);
    const [made, performed] = ["CreateCallToken", "PerformCall"].map((name) => page.waitForRequest(new RegExp(name)));
    await hands.press(button(page, "Perform it with a call token for this user"));
    await page.getByText("Success, status 200").waitFor();
    expect((await made)?.postDataJSON()).toEqual({
      ...{ publicKey: expect.any(String), userId: "ada", providerNames: ["sandbox"], lifetimeSeconds: 60 },
    });
    expect((await performed)?.postDataJSON()).toMatchObject({
      call: { userId: "ada", call: { url: `${sandbox.origin}/me` } },
    });
    expect(await page.getByRole("region", { name: "The call as curl" }).textContent()).toContain("$RELAY_PRIVATE_KEY");

    const sent = sandbox.requests.at(-1)?.rawHeaders ?? [];
    const authorization = sent.find((value) => value.startsWith("Bearer ")) ?? "";
    const status = () =>
      request(`${sandbox.origin}/me`, { headers: { authorization } }).then(({ statusCode }) => statusCode);
    expect(await status()).toBe(200);
    await hands.press(link(page, "Connections"));
    await hands.press(link(page, "Open the connection of ada at sandbox"));
    await hands.press(page.getByLabel("Calls for this user will fail"));
    await hands.press(button(page, "Delete the connection"));
    await page.getByText("The token was revoked at the provider.").waitFor();
    expect(await status()).toBe(401);
    expect(hands.steps).toBe(23);
  });

  it("finds out in three steps why a call of a user failed, and is led to what helps", async () => {
    const world = await startConsoleWorld();
    onTestFinished(() => world.close());
    await world.call("/me", { userId: "bob" });
    await world.call("/status/403");
    const page = await world.openView("Start");
    const why = async (userId: string) => {
      const hands = createHands();
      const call = page.getByRole("table", { name: "Calls for this user" }).getByRole("link").first();
      // A record is written a moment after its call.
      await expect
        .poll(async () => {
          await page.getByLabel("Find a call, a request, a user or an application").fill(userId);
          await button(page, "Find").click();
          await page.getByText("A user's calls are searched").waitFor();
          return call.count();
        })
        .toBe(1);
      await hands.press(call);
      expect(hands.steps + 2).toBe(3);
      return page.getByRole("region", { name: "Record" }).locator(".notice");
    };
    await (await why("bob")).getByText("The user has not connected this provider.").waitFor();
    await link(page, "Make a connect link").click();
    expect(await field(page, "User id").inputValue()).toBe("bob");
    expect(await page.getByLabel("Providers").inputValue()).toBe("sandbox");
    await (await why("ada")).getByText("The provider answered with 403").waitFor();
    await link(page, "Try it again").click();
    expect(await field(page, "URL").inputValue()).toBe(`${world.harness.sandbox.origin}/status/403`);
    expect(await field(page, "User id").inputValue()).toBe("ada");
  });
});
