import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS, type TestApplication } from "../support/harness.js";
import { type ConsoleWorld, go, showView, signIn, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
const nameOf = (page: Page) => page.getByLabel("Name", { exact: true });
const addressOf = (view: string, { publicKey }: TestApplication, more = "") =>
  `#/${view}?publicKey=${publicKey}${more}`;

/** Holds back the next answer of a method. The function that it returns lets it go, and waits until the page has it. */
async function holdNext(page: Page, method: string): Promise<() => Promise<void>> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const url = new RegExp(`/${method}$`);
  await page.route(
    url,
    async (route) => {
      const response = await route.fetch();
      await released;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  return async () => {
    const answered = page.waitForResponse(url);
    release();
    await (await answered).finished();
    await page.evaluate("new Promise(requestAnimationFrame)");
  };
}

/** Saves another name of the application, and does `meanwhile` before the answer comes. */
async function saveAnd(page: Page, meanwhile: () => Promise<void>): Promise<void> {
  await nameOf(page).fill("After");
  const release = await holdNext(page, "UpdateApplication");
  await press(page, "Save");
  await page.getByText("Working…").waitFor();
  await meanwhile();
  await release();
  await page.getByText("Saved.").waitFor();
}

const failing = (page: Page, method: string) => page.route(new RegExp(`/${method}$`), (route) => route.abort());

describe("what is typed into a form of the console", NEEDS_CHROMIUM, () => {
  it("stays when the answer about another application comes late", async () => {
    const [first, second] = [await world.harness.createApplication(), await world.harness.createApplication()];
    const page = await world.openView("Providers");
    const release = await holdNext(page, "GetApplication");
    await go(page, addressOf("application", first));
    await go(page, addressOf("application", second));
    await nameOf(page).fill("typed");
    await release();
    expect(await nameOf(page).inputValue()).toBe("typed");
  });

  it("stays when it is typed while what was typed before is saved, and is saved the next time", async () => {
    const application = await world.harness.createApplication({ name: "Before" });
    const page = await world.openView("Providers");
    await go(page, addressOf("application", application));
    await saveAnd(page, () => page.getByLabel("Colour of its mark").fill("#1a73e8"));
    await page.getByRole("strong").getByText("After").waitFor();
    expect(await page.getByLabel("Colour of its mark").inputValue()).toBe("#1a73e8");
    await press(page, "Save");
    await expect
      .poll(() => world.harness.store.applications.findByPublicKey(application.publicKey))
      .toMatchObject({ name: "After", accentColor: "#1a73e8" });
  });

  it("is not saved over what somebody else has stored since, though typed while what was typed before is saved", async () => {
    const application = await world.harness.createApplication();
    const { applications } = world.harness.store;
    const page = await world.openView("Providers");
    await go(page, addressOf("application", application));
    await saveAnd(page, () => page.getByLabel("Colour of its mark").fill("#222222"));
    await applications.update(application.publicKey, { accentColor: "#999999" }, Date.now());
    const reload = await holdNext(page, "GetApplication");
    await press(page, "Capture calls");
    await page.getByText("Capturing has started.").waitFor();
    await reload();
    await press(page, "Save");
    await page.getByRole("alert").getByText("changed").waitFor();
    expect(await applications.findByPublicKey(application.publicKey)).toMatchObject({ accentColor: "#999999" });
  });

  it("stays when the answer about its webhook comes", async () => {
    const application = await world.harness.createApplication();
    const page = await world.openView("Providers");
    const uri = page.getByLabel("Address that events are sent to");
    const release = await holdNext(page, "GetWebhook");
    await go(page, addressOf("webhook", application));
    await uri.fill("https://app.example.com/");
    await release();
    await page.getByText("The application has no webhook").waitFor();
    expect(await uri.inputValue()).toBe("https://app.example.com/");
  });

  it("stays when the answer about the OAuth clients of another application comes late", async () => {
    const [first, second] = [await world.harness.createApplication(), await world.harness.createApplication()];
    await world.harness.putClient(second);
    const page = await world.openView("Providers");
    const release = await holdNext(page, "ListOAuthClients");
    await go(page, addressOf("clients", first, "&providerName=sandbox"));
    await go(page, addressOf("clients", second, "&providerName=sandbox"));
    await page.getByLabel("Client id").fill("typed");
    await release();
    expect(await page.getByLabel("Client id").inputValue()).toBe("typed");
  });

  it("is not stored together with what somebody else has replaced since", async () => {
    const application = await world.harness.createApplication();
    const { oauthClients } = world.harness.store;
    await world.harness.putClient(application, "sandbox", { client_id: "one", scope: "old" });
    const page = await world.openView("Providers");
    await go(page, addressOf("clients", application, "&providerName=sandbox"));
    await page.getByLabel("Client id").fill("two");
    const release = await holdNext(page, "UpdateOAuthClient");
    await press(page, "Store the client");
    await page.getByText("Working…").waitFor();
    await expect.poll(() => oauthClients.find(application.id, "sandbox")).toMatchObject({ clientId: "two" });
    await world.harness.putClient(application, "sandbox", { client_id: "two", scope: "new" });
    await release();
    await page.getByText("Stored the client for sandbox.").waitFor();
    await page.getByLabel("Client id").fill("three");
    await press(page, "Store the client");
    await page.getByText("Working…").waitFor({ state: "detached" });
    expect(await oauthClients.find(application.id, "sandbox")).toMatchObject({ scope: "new" });
  });

  it("is stored as a new OAuth client after the one that it was typed for was deleted", async () => {
    const application = await world.harness.createApplication();
    const { oauthClients } = world.harness.store;
    await world.harness.putClient(application, "sandbox", { client_id: "one", scope: "kept" });
    const page = await world.openView("Providers");
    await go(page, addressOf("clients", application, "&providerName=sandbox"));
    await page.getByLabel("Client id").fill("two");
    await page.getByLabel("Tokens of its users can then no longer be refreshed").check();
    await press(page, "Delete the client");
    await page.getByText("Deleted the client.").waitFor();
    await press(page, "Store the client");
    await page.getByText("Stored the client for sandbox.").waitFor();
    expect(await oauthClients.find(application.id, "sandbox")).toMatchObject({ clientId: "two", scope: "kept" });
  });

  it("stays whole where the link to its own view is followed, and is without its secret after another view", async () => {
    const page = await world.openView("Providers");
    await go(page, "#/try?userId=ada");
    await page.getByText("Payload, headers, private key").click();
    const key = page.getByLabel("The application's private key");
    await key.fill("typed");
    await showView(page, "Try a call");
    await page.waitForURL(/#\/try$/);
    expect([await page.getByLabel("User id").inputValue(), await key.inputValue()]).toEqual(["ada", "typed"]);
    await showView(page, "Providers");
    await showView(page, "Try a call");
    expect([await page.getByLabel("User id").inputValue(), await key.inputValue()]).toEqual(["ada", ""]);
  });
});

describe("what a view of the console shows", NEEDS_CHROMIUM, () => {
  it("is never the state of one connection above the actions of another", async () => {
    const application = await world.harness.createApplication();
    await world.harness.connect(application, "ada");
    const page = await world.openView("Providers");
    await go(page, addressOf("connection", application, "&userId=ada&providerName=sandbox"));
    const state = page.getByRole("region", { name: "State" });
    await state.getByText("Works").waitFor();
    await failing(page, "GetConnection");
    await page.getByLabel("User id").fill("bob");
    await page.getByLabel("Token response of the provider").fill('{"access_token": "of-bob"}');
    await press(page, "Store the connection");
    await page.getByText("Calls for bob can be made now.").waitFor();
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
    expect(await state.count()).toBe(0);
    expect(await page.getByRole("button", { name: "Delete the connection" }).count()).toBe(0);
  });

  it("is the connection again that is stored after it was deleted", async () => {
    const application = await world.harness.createApplication();
    await world.harness.connect(application, "ada");
    const page = await world.openView("Providers");
    await go(page, addressOf("connection", application, "&userId=ada&providerName=sandbox"));
    await page.getByLabel("Calls for this user will fail").check();
    await page.getByLabel("Do not revoke the token at the provider").check();
    await press(page, "Delete the connection");
    await page.getByText("Deleted the connection.").waitFor();
    await page.getByLabel("Token response of the provider").fill('{"access_token": "anew"}');
    await press(page, "Store the connection");
    await page.getByRole("region", { name: "State" }).getByText("Works").waitFor();
    expect(await page.getByText("Deleted the connection.").count()).toBe(0);
  });

  it.each([
    ["Audit trail", "ListAuditRecords", "#/audit?before=2020-01-01T00:00:00.000Z"],
    ["Figures", "GetFigures", "#/figures?period=week"],
    ["Connections", "ListConnections", "#/connections?providerName=github"],
    ["Recorded calls", "ListCallRecords", "#/calls?errorType=API_ERROR"],
  ] as const)(
    "is nothing of before in '%s' when the answer to another search does not come",
    async (view, method, search) => {
      await world.call("/me");
      const page = await world.openView("Providers");
      const rows = page.getByRole("table").first().locator("tbody tr");
      await expect
        .poll(async () => {
          await showView(page, "Providers");
          await showView(page, view);
          await rows
            .or(page.getByText(/^(No|There is no)/))
            .first()
            .waitFor();
          return rows.count();
        })
        .toBeGreaterThan(0);
      await failing(page, method);
      await go(page, search);
      await page.getByRole("alert").getByText("The relay does not answer").waitFor();
      expect(await rows.count()).toBe(0);
    },
  );

  it("is no way to delete an OAuth client where there is none", async () => {
    const application = await world.harness.createApplication();
    const page = await world.openView("Providers");
    await go(page, addressOf("clients", application, "&providerName=sandbox"));
    await page.getByText("The application has no OAuth client yet").waitFor();
    expect(await page.getByRole("button", { name: "Delete the client" }).count()).toBe(0);
  });
});

describe("what a view of the console asks for", NEEDS_CHROMIUM, () => {
  it.each([
    ["further pages of connections", "#/connections?providerName=github", "ListConnections", { nextPageToken: "more" }],
    ["the OAuth clients of further applications", "#/applications", "ListOAuthClients", {}],
    ["the calls of a user in further applications", "#/find?text=ada", "ListCallRecords", {}],
  ])("is not %s once the view was left", async (_, address, method, answer) => {
    for (let made = 0; made < 3; made += 1) await world.harness.createApplication();
    const page = await world.openView("Providers");
    let asked = 0;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(new RegExp(`/${method}$`), async (route) => {
      if (route.request().postDataJSON().requestId !== undefined) return route.continue();
      asked += 1;
      await released;
      await route.fulfill({ json: answer });
    });
    await go(page, address);
    await expect.poll(() => asked).toBe(1);
    await showView(page, "Audit trail");
    const answered = page.waitForResponse(new RegExp(`/${method}$`));
    release();
    await (await answered).finished();
    await showView(page, "Providers");
    await page.getByText(/^\d+ providers$/).waitFor();
    expect(asked).toBe(1);
  });

  it("is the name of an application again that could not be had before, and the one that it was given since", async () => {
    const application = await world.harness.createApplication({ name: "Before" });
    const page = await world.openView("Providers");
    await page.route(/GetApplication$/, (route) => route.abort(), { times: 1 });
    const link = page.getByRole("link", { name: "Before" });
    await go(page, addressOf("webhook", application));
    await page.getByText("The application has no webhook").waitFor();
    expect(await link.count()).toBe(0);
    await page.getByRole("link", { name: "Call tokens" }).click();
    await link.click();
    await nameOf(page).fill("After");
    await press(page, "Save");
    await page.getByText("Saved.").waitFor();
    await page.getByRole("link", { name: "Webhook" }).click();
    await page.getByRole("link", { name: "After" }).waitFor();
  });

  it("is a name or a list of providers that cannot be had once for each address, however often it is rendered", async () => {
    const application = await world.harness.createApplication();
    const page = await world.open();
    const asked: string[] = [];
    await page.route(/(GetApplication|ListProviders)$/, (route) => {
      asked.push(route.request().url().split("/").at(-1) ?? "");
      return route.abort();
    });
    await go(page, addressOf("clients", application, "&providerName=sandbox"));
    await signIn(page, ADMIN_TOKENS.operator);
    await page.getByText("The application has no OAuth client yet").waitFor();
    await expect.poll(() => new Set(asked).size).toBe(2);
    asked.length = 0;
    for (const text of ["a", "ab", "abc"]) await page.getByLabel("Client id").fill(text);
    await page.evaluate("new Promise(requestAnimationFrame)");
    expect(asked).toEqual([]);
    await go(page, addressOf("link", application, "&providerName=sandbox"));
    await expect.poll(() => asked).toContain("GetApplication");
  });

  it("is said to be unanswered where its answer is cut off", async () => {
    const page = await world.openView("Providers");
    await page.route(/ListApplications$/, (route) => route.fulfill({ contentType: "application/json", body: "{" }));
    await showView(page, "Applications");
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
  });
});
