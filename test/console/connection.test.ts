import jsQR from "jsqr";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS, type TestApplication } from "../support/harness.js";
import { failRefresh } from "../support/refresh-failure.js";
import { startWebhookReceiver } from "../support/webhook-receiver.js";
import { type ConsoleWorld, go, MARKUP, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const command = (page: Page, name: string) => page.locator(`pre[aria-label="Command: ${name}"]`);
const state = (page: Page) => page.getByRole("region", { name: "State" });

/** A user who is connected with tokens that can be refreshed. */
async function connected(userId: string, application?: TestApplication) {
  const own = application ?? (await world.harness.createApplication({ name: `Shop of ${userId}` }));
  await world.harness.putClient(own);
  const { access_token: accessToken, refresh_token: refreshToken } = world.harness.sandbox.issueToken();
  const expiresAt = Date.now() + 3_600_000;
  await world.harness.connect(own, userId, { accessToken, refreshToken: String(refreshToken), expiresAt });
  return { application: own, key: { applicationId: own.id, userId, providerName: "sandbox" } };
}

async function open(view: string, parameters: Readonly<Record<string, string>>, token: string = ADMIN_TOKENS.operator) {
  const page = await world.openView("Applications", { token });
  await go(page, `#/${view}?${new URLSearchParams(parameters)}`);
  return page;
}

const openConnection = ({ publicKey }: TestApplication, userId: string, token?: string) =>
  open("connection", { publicKey, userId, providerName: "sandbox" }, token);

describe("the page of a connection", NEEDS_CHROMIUM, () => {
  it("says how it stands, in words, and refreshes it on request", async () => {
    const { application, key } = await connected("ada");
    await failRefresh(world.harness.store, key);
    const page = await openConnection(application, "ada");
    await state(page).getByText("Refreshing fails").waitFor();
    await state(page).getByText("answers with an error of its own").waitFor();
    await state(page).getByText("This may resolve itself.").waitFor();
    expect(await state(page).getByRole("definition").allTextContents()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/expires in 59 minutes; \d+ % of its lifetime of \d+ (hour|minutes) has passed/),
        "server_error",
      ]),
    );
    await state(page).getByRole("link", { name: "Shop of ada" }).waitFor();
    await page.getByText("Equivalent command: Refresh it now").click();
    expect(await command(page, "Refresh it now").textContent()).toBe(
      `relay connection refresh --app ${application.publicKey} --user ada --provider sandbox`,
    );
    await page.getByText("None recorded.").waitFor();
    await press(page, "Refresh it now");
    await page.getByText("Refreshed: it has a new access token.").waitFor();
    const row = page.getByRole("table", { name: "Last refreshes" }).locator("tbody tr");
    expect((await row.getByRole("cell").allTextContents()).slice(1, 4)).toEqual([
      expect.stringContaining("Refreshed"),
      "An operator asked",
      "New token",
    ]);
    await state(page).getByText("Works").waitFor();
    expect((await world.harness.store.connections.find(key))?.failCount).toBe(0);
  });

  it("says what the provider answered when a refresh fails, and leads to where that is mended", async () => {
    const { application } = await connected("bea");
    await world.harness.putClient(application, "sandbox", { client_secret: "wrong" });
    const page = await openConnection(application, "bea");
    await press(page, "Refresh it now");
    await page.getByText("The provider refuses the application's OAuth client. The operator must").waitFor();
    await page.getByRole("table", { name: "Last refreshes" }).getByText("invalid_client").waitFor();
    await state(page).getByRole("link", { name: "Correct the OAuth client" }).click();
    await page.getByRole("heading", { level: 1, name: "OAuth clients" }).waitFor();
    expect(await page.getByLabel("Provider", { exact: true }).inputValue()).toBe("sandbox");
  });

  it("says who can help when nobody but the user can, and makes a link for exactly that user", async () => {
    const { application, key } = await connected("cleo");
    const connection = (await world.harness.store.connections.find(key)) ?? expect.unreachable();
    await world.harness.store.connections.requireReauthorization(connection, "invalid_grant", Date.now());
    const page = await openConnection(application, "cleo");
    await state(page).getByText("The provider no longer accepts the refresh token").waitFor();
    expect(await page.getByRole("button", { name: "Refresh it now" }).count()).toBe(0);
    await state(page).getByRole("link", { name: "Make a connect link" }).click();
    await press(page, "Make the connect link");
    const link = await page.getByRole("region", { name: "Connect link" }).textContent();
    const code = page.getByRole("img", { name: "QR code of the connect link" });
    const size = Number((await code.getAttribute("viewBox"))?.split(" ")[2]);
    const squares = await code.locator("path").getAttribute("d");
    expect(textOfCode(size, squares ?? "")).toBe(link);
  });

  it("lists its calls, also those before the user was connected, and the webhooks sent", async () => {
    const receiver = await startWebhookReceiver();
    onTestFinished(() => receiver.close());
    const application = await world.harness.createApplication();
    const { publicKey } = application;
    await open("webhook", { publicKey }).then(async (page) => {
      await page.getByLabel("Address that events are sent to").fill(receiver.url);
      await press(page, "Set the webhook");
      await page.getByText("Signing secret, shown only once").waitFor();
      await press(page, "Send a test event");
      await page.getByRole("cell", { name: "webhook.test" }).waitFor();
      await page.getByRole("cell", { name: /Delivered \(status 204\)/ }).waitFor();
    });
    await world.call("/me", { publicKey, userId: MARKUP });
    await connected(MARKUP, application);
    const callId = (await world.call("/items?count=1", { publicKey, userId: MARKUP })).callId;
    await world.call("/items?count=2", { publicKey, userId: "somebody else" });
    await receiver.arrived(2);
    const page = await openConnection(application, MARKUP);
    await expect
      .poll(async () => {
        await page.reload();
        await page.getByRole("table", { name: "Its calls" }).or(page.getByText("No call of this user")).waitFor();
        return page.getByRole("table", { name: "Its calls" }).locator("tbody tr").count();
      })
      .toBe(2);
    await page.getByRole("table", { name: "Its calls" }).getByText("INVALID_OAUTHID").waitFor();
    await page.getByRole("table", { name: "Last events" }).getByText("connection.created").waitFor();
    expect(await page.getByRole("cell", { name: "webhook.test" }).count()).toBe(0);
    await page.getByRole("table", { name: "Its calls" }).getByRole("link").first().click();
    await page.getByRole("region", { name: "Record" }).getByText(String(callId)).waitFor();
    await page.getByRole("region", { name: "Record" }).getByRole("link", { name: "Connection" }).click();
    await state(page).getByText("onerror=").waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(page.complaints).toEqual([]);
  });

  it("is greyed with the reason for who may only look", async () => {
    const { application } = await connected("eva");
    const page = await openConnection(application, "eva", ADMIN_TOKENS.readOnly);
    await state(page).getByText("Works").waitFor();
    for (const name of ["Refresh it now", "Delete the connection", "Store the connection"])
      expect([name, await page.getByRole("button", { name, exact: true }).isDisabled()]).toEqual([name, true]);
    expect(await page.getByText("This token is read-only").count()).toBe(3);
    await go(page, `#/token?publicKey=${application.publicKey}`);
    expect(await page.getByRole("button", { name: "See what it would allow" }).isDisabled()).toBe(false);
  });
});

describe("call tokens in the console", NEEDS_CHROMIUM, () => {
  it("say what terms would allow before a token is made, by the checks of a call", async () => {
    const { application } = await connected("fay");
    const page = await open("token", { publicKey: application.publicKey, userId: "fay" });
    const before = world.harness.sandbox.requests.length;
    await page.getByLabel("Paths").fill("/items/**");
    await page.getByLabel("Provider of the call").fill("sandbox");
    await page.getByLabel("URL", { exact: true }).fill(`${world.harness.sandbox.origin}/me`);
    await press(page, "See what it would allow");
    await page.getByText("CALL_NOT_PERMITTED").waitFor();
    await page.getByLabel("Paths").fill("/me");
    await press(page, "See what it would allow");
    await page.getByRole("heading", { name: "This would be sent" }).waitFor();
    await page.getByRole("definition").getByText("Allowed by call-token").waitFor();
    expect(world.harness.sandbox.requests.length).toBe(before);
    const [last] = await world.harness.store.audit.list({
      beforeId: undefined,
      publicKey: application.publicKey,
      limit: 1,
    });
    expect(last).toBeUndefined();
  });
});

describe("settings in the console", NEEDS_CHROMIUM, () => {
  it("write what was changed and nothing else, so that what others change meanwhile stays", async () => {
    const { publicKey } = await world.harness.createApplication({ name: "Before", callsPerMinute: 5 });
    const page = await open("application", { publicKey });
    await page.getByLabel("Calls per minute, for all users").waitFor();
    await press(page, "Save");
    await page.getByText("Nothing was changed.").waitFor();
    const masks: unknown[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/UpdateApplication")) masks.push(JSON.parse(request.postData() ?? "{}").updateMask);
    });
    await page.getByLabel("Calls per minute, for all users").fill("7");
    expect(await command(page, "Save").textContent()).toBe(`relay app update --calls-per-minute 7 ${publicKey}`);
    await press(page, "Save");
    await page.getByText("Saved.").waitFor();
    expect(masks).toEqual(["callsPerMinute"]);
  });
});

/** What a phone reads. */
function textOfCode(size: number, squares: string): string | undefined {
  const scale = 4;
  const side = size * scale;
  const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
  for (const [, x = "", y = ""] of squares.matchAll(/M(\d+) (\d+)/g))
    for (let dy = 0; dy < scale; dy += 1)
      for (let dx = 0; dx < scale; dx += 1) {
        const at = ((Number(y) * scale + dy) * side + Number(x) * scale + dx) * 4;
        pixels.fill(0, at, at + 3);
      }
  return jsQR.default(pixels, side, side)?.data;
}
