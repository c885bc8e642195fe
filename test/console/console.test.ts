import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS } from "../support/harness.js";
import { FAILING, failRefresh } from "../support/refresh-failure.js";
import { createStreamCallers } from "../support/stream-callers.js";
import type { WatchedPage } from "../support/watched-page.js";
import { addUsers, type ConsoleWorld, MARKUP, showView, signIn, startConsoleWorld, VIEWS } from "./world.js";

const USERS = 100_000;

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

/** What the server answered with a status of an error is told by the page itself, too. */
const isOwnComplaint = (text: string) => !/the server responded with a status of 4\d\d/.test(text);

/** Rows of the table that a view is about. */
const rowsOf = (page: Page, caption: string) => page.getByRole("table", { name: caption }).locator("tbody tr");

/** Milliseconds of what a cell says. */
function msOf(text: string | null): number {
  const [, value = "", unit] = /([\d.]+) (ms|s)/.exec(text ?? "") ?? [];
  return Number(value) * (unit === "s" ? 1000 : 1);
}

async function fillCall(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  const given = {
    Application: world.application.publicKey,
    "User id": "ada",
    Provider: "sandbox",
    URL: `${world.harness.sandbox.origin}/me`,
    ...fields,
  };
  for (const [label, value] of Object.entries(given)) await page.getByLabel(label, { exact: true }).fill(value);
}

describe("the console", NEEDS_CHROMIUM, () => {
  it("asks for a token before it asks the relay for anything, and keeps no more than a session in its own tab", async () => {
    const page = await world.open();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.getByLabel("Admin token").fill("relay_admin_wrong_and_long_enough_to_be_one");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The relay does not know this token.").waitFor();
    expect(asked.map((url) => new URL(url).pathname)).toEqual(["/console/sign-in"]);
    await signIn(page, ADMIN_TOKENS.readOnly);
    await page.getByText("bob (read-only)").waitFor();
    await page.reload();
    await page.getByText("bob (read-only)").waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.getByLabel("Admin token").waitFor();
    expect(
      await page.evaluate("JSON.stringify([location.href, { ...sessionStorage }, { ...localStorage }])"),
    ).not.toContain(ADMIN_TOKENS.readOnly);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out.").waitFor();
    await page.getByLabel("Admin token").waitFor();
    expect(await page.evaluate("sessionStorage.length + localStorage.length")).toBe(0);
  });

  it("is of no use to whoever copied its session, once its operator has signed out", async () => {
    const page = await world.openView("Live calls");
    const copied = await page.evaluate("({ ...sessionStorage })");
    const thief = await world.open();
    const paste = (stored: unknown) => thief.evaluate(`Object.assign(sessionStorage, ${JSON.stringify(stored)})`);
    await paste(copied);
    await thief.reload();
    await thief.getByText("alice (operator)").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out.").waitFor();
    await thief.getByRole("link", { name: "Applications", exact: true }).click();
    await thief.getByText("This session has ended.").waitFor();
    await paste(copied);
    await thief.reload();
    await thief.getByText("This session has ended.").waitFor();
  });

  it.each([
    ["no answer", undefined],
    ["a status of success that is none of its own", 200],
    ["429", 429],
    ["503", 503],
  ])("keeps its session where ending it meets %s, and ends it with the next try", async (_, status) => {
    const page = await world.openView("Applications");
    await page.route(/sign-out/, (route) => (status === undefined ? route.abort() : route.fulfill({ status })));
    const button = page.getByRole("button", { name: "Sign out" });
    await button.click();
    await page.getByRole("alert").getByText("The relay could not end the session; try again.").waitFor();
    await page.getByText("alice (operator)").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(1);
    await page.unroute(/sign-out/);
    await button.click();
    await page.getByText("You are signed out.").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
    await page.locator('#token:focus[aria-describedby~="token-status"]').waitFor();
    expect(await page.locator("#token-status").textContent()).toContain("no longer accepts this session");
  });

  it("is busy while it ends the session", async () => {
    const page = await world.openView("Applications");
    let answer = () => {};
    const isLate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/sign-out/, async (route) => {
      await isLate;
      await route.continue();
    });
    const button = page.getByRole("button", { name: "Sign out" });
    await button.click();
    await expect.poll(() => button.isDisabled()).toBe(true);
    answer();
    await page.getByText("You are signed out.").waitFor();
  });

  it("keeps a session over a reload while the relay cannot say whether it counts", async () => {
    const page = await world.openView("Applications");
    await page.route(/GetSession/, (route) =>
      route.fulfill({ status: 503, json: { code: "unavailable", message: "The database cannot be read." } }),
    );
    await page.reload();
    await page.getByRole("alert").getByText("The database cannot be read.").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").getByText("The database cannot be read.").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(1);
    await page.unroute(/GetSession/);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("alice (operator)").waitFor();
  });

  it("is not thrown out by a late answer to the session before", async () => {
    const page = await world.openView("Applications");
    let answer = () => {};
    const isLate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/ListConnections/, async (route) => {
      await isLate;
      await route.fulfill({ status: 401, json: { code: "unauthenticated" } });
    });
    const asked = page.waitForRequest(/ListConnections/);
    await page.getByRole("link", { name: "Connections", exact: true }).click();
    await asked;
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out.").waitFor();
    await page.evaluate("location.hash = '#/applications'");
    await signIn(page, ADMIN_TOKENS.readOnly);
    const late = page.waitForResponse(/ListConnections/);
    answer();
    await (await late).finished();
    await showView(page, "Providers");
    await page.getByText("bob (read-only)").waitFor();
  });

  it("is let out when its token is taken away", async () => {
    const page = await world.openView("Applications");
    await page.route(/ListConnections/, (route) => route.fulfill({ status: 401, json: { code: "unauthenticated" } }));
    await page.getByRole("link", { name: "Connections", exact: true }).click();
    await page.getByText("This session has ended.").waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  it("says so when the relay does not answer, and goes on when it does again", async () => {
    const page = await world.openView("Applications");
    await page.route(/ListConnections/, (route) => route.abort());
    await showView(page, "Connections");
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
    await page.unroute(/ListConnections/);
    await page.getByRole("button", { name: "Search" }).click();
    await rowsOf(page, "Connections").first().waitFor();
    expect(await page.getByRole("alert").textContent()).toBe("");
  });

  it("says why a list is empty: nothing is there, or nothing that was asked for", async () => {
    const page = await world.openView("Applications");
    await page.route(/ListConnections/, (route) => route.fulfill({ json: {} }));
    await showView(page, "Connections");
    await page.getByText("There is no connection yet").waitFor();
    await page.getByLabel("Application", { exact: true }).fill(world.application.publicKey);
    await page.getByLabel("User id begins with").fill("nobody");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText("There is no such connection.").waitFor();
  });

  it("says since when refreshing fails, and since when a provider refuses a client", async () => {
    const { harness, application } = world;
    const key = { applicationId: application.id, userId: "failing", providerName: "sandbox" };
    await harness.connect(application, key.userId, { refreshToken: "r" });
    await failRefresh(harness.store, key);
    const client = await harness.store.oauthClients.find(application.id, "sandbox");
    if (client === undefined) throw new Error("the client is not stored");
    await harness.store.oauthClients.noteRefused(client, FAILING.since);
    const page = await world.openView("Connections");
    const row = rowsOf(page, "Connections").filter({ hasText: "failing" });
    const refresh = row.filter({ hasText: /Failed 1 time \(server_error\)\s+for\s+[^,]+, next try/ });
    await refresh.waitFor();
    const since = new Date(FAILING.since).toISOString();
    await refresh.locator(`time[datetime^="${since.slice(0, 19)}"]`).waitFor();
    await showView(page, "Applications");
    await page.getByText("sandbox (has refused the client since 2027-01-15T08:00:00Z)").waitFor();
    await showView(page, "Start");
    const attentions = page.getByRole("region", { name: "What needs attention" }).getByRole("listitem");
    await attentions.filter({ hasText: "The provider refuses the OAuth client" }).waitFor();
    const failing = attentions.filter({ hasText: "Refreshing fails for 1 connection." });
    await failing.getByRole("link", { name: "Show details" }).click();
    await refresh.waitFor();
    await harness.store.connections.delete(key, Date.now());
    await harness.store.oauthClients.noteRefused(client, undefined);
  });

  it("counts of a stream only the way to its head as the relay's time, and its body as the provider's", async () => {
    const { harness, application } = world;
    const page = await world.openView("Live calls");
    const [, [, stream]] = createStreamCallers(harness.url) as [unknown, ReturnType<typeof createStreamCallers>[0]];
    const url = `${harness.sandbox.origin}/drip?bytes=4&ms=500`;
    const call = { url, method: "GET" };
    await stream({ providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call });
    const row = rowsOf(page, "Last calls").filter({ hasText: "/drip" });
    const [whole, relay, provider] = await Promise.all(
      [4, 5, 6].map(async (at) => msOf(await row.locator("th, td").nth(at).textContent())),
    );
    expect(whole).toBeGreaterThanOrEqual(1400);
    expect(provider).toBeGreaterThanOrEqual(1400);
    expect(relay).toBeLessThan((whole as number) / 2);
    const height = await page.locator("svg .relay").last().getAttribute("height");
    expect(Number(height)).toBeLessThan(50);
  });

  it("says that the url of a call that was refused is not recorded", async () => {
    const page = await world.openView("Live calls");
    await world.call("", { call: { url: "https://elsewhere.example/", method: "GET" } });
    await rowsOf(page, "Last calls").getByText("its URL is not recorded").first().waitFor();
  });

  it("says what to set before a copied call is run that needs the private key", async () => {
    const page = await world.openView("Try a call");
    await fillCall(page, {});
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByRole("heading", { name: "The same call from elsewhere" }).waitFor();
    expect(await page.getByText("The private key is not copied").count()).toBe(0);
    await page.getByText("Payload, headers, private key").click();
    await page.getByLabel("The application's private key").fill(world.application.privateKey);
    await page.getByText("The private key is not copied").waitFor();
  });

  it("makes no text from outside markup, in any view", async () => {
    const page = await world.openView("Live calls");
    await world.call(`/echo?${encodeURIComponent(MARKUP)}=1`, { userId: MARKUP });
    await world.call("/me", { providerName: MARKUP });
    for (const view of VIEWS) {
      await showView(page, view);
      if (["Connections", "Applications", "Providers"].includes(view))
        await page
          .getByRole("cell", { name: /onerror=/ })
          .first()
          .waitFor();
    }
    await fillCall(page, { "User id": MARKUP, URL: `${world.harness.sandbox.origin}/echo?q=${MARKUP}` });
    await page.getByText("Payload, headers, private key").click();
    await page.getByLabel("Payload: a JSON object").fill(JSON.stringify({ [MARKUP]: MARKUP }));
    await page.getByRole("button", { name: "Perform the call" }).click();
    await page.getByRole("heading", { name: "This came back" }).waitFor();
    await page.getByRole("region", { name: "Answer from the provider" }).getByText("onerror=").waitFor();
    await fillCall(page, { Provider: MARKUP });
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("INVALID_PROVIDER").waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(await page.locator("img, script:not([src]), [onerror], [style]").count()).toBe(0);
    expect(page.complaints.filter(isOwnComplaint)).toEqual([]);
  });

  it("never has a token of a connection, in what it shows or is told", async () => {
    const told = new Map<Promise<string>, string>();
    const page = await world.open();
    page.on(
      "response",
      (response) =>
        void told.set(
          response.text().catch(() => ""),
          response.url(),
        ),
    );
    await signIn(page, ADMIN_TOKENS.operator);
    for (const view of VIEWS) await showView(page, view);
    await fillCall(page, { URL: `${world.harness.sandbox.origin}/echo-token?as=json` });
    for (const button of ["Explain", "Perform the call"]) {
      await page.getByRole("button", { name: button }).click();
      await page
        .getByRole("heading", { name: button === "Explain" ? "This would be sent" : "This was sent" })
        .waitFor();
    }
    await page.getByText("[redacted]").first().waitFor();
    await page
      .getByRole("region", { name: "Request to the provider" })
      .getByText("authorization: Bearer ***")
      .waitFor();
    const texts = await Promise.all(told.keys());
    const services = [...told.values()].map((url) => /relay\.admin\.v1\.(\w+)Service\//.exec(url)?.[1]);
    expect(services).toEqual(
      expect.arrayContaining(["Session", "CallRecord", "Connection", "Application", "Provider", "OAuthClient", "Call"]),
    );
    for (const text of [await page.content(), ...texts]) {
      expect(text).not.toContain(world.token);
      expect(text).not.toContain("CANARY");
    }
  });
});

describe("connections in the console", NEEDS_CHROMIUM, () => {
  beforeAll(() => addUsers(world.harness, world.application, USERS));

  it("come in pages, of a hundred thousand too", async () => {
    const page = await world.openView("Connections");
    const rows = rowsOf(page, "Connections");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(50);
    // The user: how long ago something was changes as it is looked at.
    const firstUser = () => rows.first().locator(":scope > *").first().textContent();
    const first = await firstUser();
    await page.getByRole("button", { name: "Next page" }).click();
    await page.getByText("Page 2").waitFor();
    await page.getByRole("cell", { name: "user-000060", exact: true }).waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByRole("button", { name: "Previous page" }).click();
    await page.getByText("Page 1").waitFor();
    await expect.poll(firstUser).toBe(first);
    // Suggestions are as many as the catalogue has providers, and are not laid out.
    expect(await page.locator("*:not(option)").count()).toBeLessThan(2000);
  });

  it("stay at a page while the next one cannot be had, and turn to it then", async () => {
    const page = await world.openView("Connections");
    const next = page.getByRole("button", { name: "Next page" });
    await next.waitFor();
    await page.route(/ListConnections/, (route) => route.abort());
    await next.click();
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
    await page.getByText("Page 1").waitFor();
    await page.unroute(/ListConnections/);
    await next.click();
    await page.getByRole("cell", { name: "user-000060", exact: true }).waitFor();
    expect(await page.getByText(/^Page \d+$/).textContent()).toBe("Page 2");
  });

  it("are found by what their user's id begins with, and by their state", async () => {
    const page = await world.openView("Connections");
    await page.getByLabel("Application", { exact: true }).fill(world.application.publicKey);
    await page.getByLabel("User id begins with").fill("user-09999");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("cell", { name: "user-099990", exact: true }).waitFor();
    expect(await rowsOf(page, "Connections").count()).toBe(10);
    await page.getByLabel("User id begins with").fill("");
    await page.getByLabel("State").selectOption("Must connect again");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("cell", { name: "user-000100", exact: true }).waitFor();
    const states = await page.getByRole("cell", { name: "Must connect again (invalid_grant)" }).count();
    expect([await rowsOf(page, "Connections").count(), states]).toEqual([50, 50]);
  });

  it("say what is wrong with a search, and lead to a call", async () => {
    const page = await world.openView("Connections");
    await page.getByLabel("User id begins with").fill("ada");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("alert").getByText("Choose the application as well").waitFor();
    await page.getByLabel("Application", { exact: true }).fill(world.application.publicKey);
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: "Try a call for ada at sandbox" }).click();
    await page.getByRole("heading", { level: 1, name: "Try a call" }).waitFor();
    expect(await page.getByLabel("User id", { exact: true }).inputValue()).toBe("ada");
    expect(await page.getByLabel("Provider", { exact: true }).inputValue()).toBe("sandbox");
    await page.evaluate(`location.hash = "#/try?method=PROPFIND"`);
    await expect.poll(() => page.getByLabel("Method", { exact: true }).inputValue()).toBe("PROPFIND");
  });
});

describe("live calls in the console", NEEDS_CHROMIUM, () => {
  const shown = (page: Page) => page.getByRole("table", { name: "Last calls" });

  async function callTimes(count: number, path: string): Promise<void> {
    for (let n = 0; n < count; n += 10) await Promise.all(Array.from({ length: 10 }, () => world.call(path)));
  }

  it("come as they happen, with where their time went and how they ended", async () => {
    await world.call("/items?count=2");
    const page = await world.openView("Live calls");
    await shown(page).getByText("/items?count=…").first().waitFor();
    await world.call("/status/404");
    await world.call("/me", { userId: "nobody" });
    await shown(page).getByRole("cell", { name: "404 API_ERROR" }).first().waitFor();
    await shown(page).getByRole("cell", { name: "401 INVALID_OAUTHID" }).first().waitFor();
    const outcomes = page.getByRole("table", { name: "How the calls ended" });
    await outcomes.getByRole("cell", { name: "INVALID_OAUTHID" }).waitFor();
    const label = await page.getByRole("img", { name: /Time of the last \d+ calls/ }).getAttribute("aria-label");
    expect(label).toMatch(/the provider took [\d.]+ m?s, the relay [\d.]+ m?s\.$/);
    const parts = page.getByRole("table", { name: "Where the time went" }).locator("tbody tr td:first-child");
    expect(await parts.allTextContents()).toEqual([
      "Relay",
      "Waits for a token or in the queue",
      "Provider",
      "Whole call",
    ]);
  });

  it("stand still while paused, said aloud neither, and go on with what came meanwhile", async () => {
    const page = await world.openView("Live calls");
    const pause = page.getByRole("button", { name: "Pause the list" });
    const announced = page.locator("[aria-live]").first();
    await shown(page).waitFor();
    expect(await announced.getAttribute("aria-live")).toBe("polite");
    await pause.click();
    expect([await pause.getAttribute("aria-pressed"), await announced.getAttribute("aria-live")]).toEqual([
      "true",
      "off",
    ]);
    const before = await shown(page).textContent();
    const seen = Number(/(\d+) calls seen/.exec((await page.getByText("calls seen").textContent()) ?? "")?.[1]);
    await world.call("/while-paused");
    await page.getByText(`${seen + 1} calls seen`).waitFor();
    expect(await shown(page).textContent()).toBe(before);
    await pause.click();
    await shown(page).getByText("/while-paused").waitFor();
  });

  it("are narrowed down, and shown within bounds however many come", async () => {
    const page = await world.openView("Live calls");
    await page.getByLabel("Error type").fill("API_ERROR");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("table", { name: "How the calls ended" }).getByText("100 %").waitFor();
    await callTimes(250, "/status/410");
    await shown(page).getByText("/status/410").first().waitFor();
    await expect
      .poll(async () => Number(/(\d+) calls seen/.exec((await page.getByText("calls seen").textContent()) ?? "")?.[1]))
      .toBeGreaterThan(250);
    expect(await rowsOf(page, "Last calls").count()).toBe(20);
    await page.getByRole("button", { name: "Show more calls" }).click();
    expect(await rowsOf(page, "Last calls").count()).toBe(50);
    expect(await page.locator("svg rect").count()).toBeLessThan(300);
    expect(await page.locator("*").count()).toBeLessThan(2000);
    await page.getByRole("button", { name: "Show fewer calls" }).click();
    expect(await rowsOf(page, "Last calls").count()).toBe(20);
    const narrow = await world.openView("Live calls", { viewport: { width: 360, height: 640 } });
    await shown(narrow).waitFor();
    expect(await rowsOf(narrow, "Last calls").count()).toBe(10);
  });

  it("lead to their record, by keyboard too, and stand still meanwhile", async () => {
    const page = await world.openView("Live calls");
    const { callId } = await world.call("/status/418");
    const link = shown(page).getByRole("link", { name: "/status/418" }).first();
    await link.focus();
    await page.getByText("stands still while a call in it has the focus").waitFor();
    const seen = Number(/(\d+) calls seen/.exec((await page.getByText("calls seen").textContent()) ?? "")?.[1]);
    await world.call("/while-held");
    await page.getByText(`${seen + 1} calls seen`).waitFor();
    expect(await shown(page).getByText("/while-held").count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Call record" }).waitFor();
    await page.locator("h1:focus").waitFor();
    const record = page.getByRole("region", { name: "Record" });
    await record.getByText(String(callId)).waitFor();
    const text = await record.textContent();
    for (const told of ["/status/418", "418 API_ERROR", "connect", "sandbox", MARKUP]) {
      expect(text).toContain(told);
    }
    await page.getByRole("link", { name: "Back to the live calls" }).click();
    await shown(page).getByText("/while-held").waitFor();
  });

  it("say of a call that its record is not written yet, and show it when it is", async () => {
    const page = await world.openView("Live calls", { token: ADMIN_TOKENS.readOnly });
    await world.call("/status/409");
    let asked = 0;
    await page.route(/GetCallRecord/, (route) => {
      asked += 1;
      return asked === 1 ? route.fulfill({ status: 404, json: { code: "not_found" } }) : route.continue();
    });
    await shown(page).getByRole("link", { name: "/status/409" }).first().click();
    await page.getByRole("status").getByText("not recorded yet").waitFor();
    await page.getByRole("region", { name: "Record" }).getByText("409 API_ERROR").waitFor();
  });

  it("show what was captured of them, to operators alone", async () => {
    const application = await world.harness.createApplication({ captureUntil: Date.now() + 60_000 });
    const token = await world.harness.connect(application, "ada");
    const url = `${world.harness.sandbox.origin}/echo`;
    const call = { url, method: "POST", headers: { "x-key-name": "seen" }, payload: { marked: MARKUP, note: token } };
    const { callId } = await world.call("", { publicKey: application.publicKey, call });
    const page = await world.openView("Live calls");
    const open = (of: Page) => of.evaluate(`location.hash = "#/call?callId=${callId}"`);
    await open(page);
    const capture = page.getByRole("region", { name: "Capture" });
    await capture.getByText("What was sent").waitFor();
    const sent = await capture.getByRole("region", { name: "Request to the provider" }).textContent();
    const body = JSON.stringify({ marked: MARKUP, note: "[redacted]" });
    for (const told of [`POST ${url}`, "x-key-name: seen", "authorization: [masked]", body]) {
      expect(sent).toContain(told);
    }
    expect(await capture.getByRole("region", { name: "Answer from the provider" }).textContent()).toContain(
      "[redacted]",
    );
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(await page.content()).not.toContain(token);
    const other = await world.openView("Live calls", { token: ADMIN_TOKENS.readOnly });
    await open(other);
    await other.getByText("shown only to operators").waitFor();
    expect(await other.getByRole("region", { name: "Capture" }).count()).toBe(0);
  });

  it("come again after the relay's stream has ended", async () => {
    const page = await world.open();
    let streams = 0;
    await page.route(/WatchCallRecords/, (route) => {
      streams += 1;
      return streams === 1 ? route.abort() : route.continue();
    });
    await signIn(page, ADMIN_TOKENS.readOnly);
    await showView(page, "Live calls");
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
    await shown(page).waitFor();
    expect(await page.getByRole("alert").textContent()).toBe("");
  });
});

describe("trying a call in the console", NEEDS_CHROMIUM, () => {
  async function explained(page: WatchedPage): Promise<string> {
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByRole("heading", { name: /^This (would be sent|call would be refused)$/ }).waitFor();
    return (await page.locator("section", { has: page.locator("#explanation") }).textContent()) ?? "";
  }

  it("says what would be sent without sending it, for every role", async () => {
    const page = await world.openView("Try a call", { token: ADMIN_TOKENS.readOnly });
    await fillCall(page, {});
    await page.getByText("On http://127.0.0.1").waitFor();
    const before = world.harness.sandbox.requests.length;
    const text = await explained(page);
    expect(text).toContain(`Allowed by ${world.harness.sandbox.origin}`);
    expect(text).toContain("authorization: Bearer ***");
    expect(world.harness.sandbox.requests.length).toBe(before);
    expect(await page.getByRole("button", { name: "Perform the call" }).isDisabled()).toBe(true);
    await page.getByText("this token is read-only").waitFor();
  });

  it("finds every provider, of however many pages, and picks one by keyboard", async () => {
    const page = await world.openView("Providers");
    const shown = await page.getByText(/^\d+ providers$/).textContent();
    expect(Number.parseInt(shown ?? "", 10)).toBeGreaterThan(500);
    await showView(page, "Try a call");
    const field = page.getByRole("combobox", { name: "Provider" });
    // What is typed whole needs no suggestions.
    await field.fill("zoo");
    await page.getByRole("option", { name: /^zoom/i }).first().waitFor();
    await field.press("ArrowDown");
    expect(await page.locator('#try-providerName-choices [aria-selected="true"]').count()).toBe(1);
    expect(await field.getAttribute("aria-activedescendant")).toBe("try-providerName-choice-0");
    await field.press("Enter");
    expect([await field.inputValue(), await field.getAttribute("aria-expanded")]).toEqual(["zoom", "false"]);
    const documentation = page.getByRole("link", { name: "Documentation of the Zoom API" });
    expect(await documentation.getAttribute("href")).toBe("https://developers.zoom.us/docs/api/");
    expect([await documentation.getAttribute("target"), await documentation.getAttribute("rel")]).toEqual([
      ...["_blank", "noreferrer"],
    ]);
  });

  it("says what would refuse it, and what to do", async () => {
    const page = await world.openView("Try a call");
    await fillCall(page, { "User id": "nobody" });
    const text = await explained(page);
    expect(text).toContain("INVALID_OAUTHID");
    expect(text).toContain("On the command line: 'relay connection list");
    await page.getByText("Payload, headers, private key").click();
    await page.getByLabel("Payload: a JSON object").fill("[1]");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("The payload must be a JSON object").waitFor();
    expect(await page.evaluate("document.activeElement.id")).toBe("try-payload");
  });

  it("performs it for an operator, and the call is among the live ones", async () => {
    const page = await world.openView("Try a call");
    await fillCall(page, { URL: `${world.harness.sandbox.origin}/items?count=1` });
    await page.getByRole("button", { name: "Perform the call" }).click();
    await page.getByText("Success, status 200").waitFor();
    await page.getByText("Call id").waitFor();
    await showView(page, "Live calls");
    await page
      .getByRole("table", { name: "Last calls" })
      .getByRole("cell", { name: "admin", exact: true })
      .first()
      .waitFor();
  });

  it("says of numbers in the answer that they are rounded", async () => {
    const page = await world.openView("Try a call");
    for (const [path, count] of [
      ["/bigint", 1],
      ["/me", 0],
    ] as const) {
      await fillCall(page, { URL: `${world.harness.sandbox.origin}${path}` });
      await page.getByRole("button", { name: "Perform the call" }).click();
      await page
        .getByRole("region", { name: "Answer from the provider" })
        .getByText(count === 1 ? '"id"' : "{")
        .waitFor();
      expect(await page.getByText("Numbers with more digits are rounded").count()).toBe(count);
    }
  });

  it("copies it for a shell and for a program", async () => {
    const page = await world.openView("Try a call", { permissions: ["clipboard-read", "clipboard-write"] });
    await fillCall(page, {});
    await explained(page);
    for (const [name, begin] of [
      ["curl", `curl '${world.harness.url}/oauth/method/sandbox/call?`],
      ["buf curl", "npx buf curl --protocol grpc --http2-prior-knowledge"],
      ["TypeScript", 'import { toJson } from "@bufbuild/protobuf";'],
    ] as const) {
      await page.getByRole("radio", { name, exact: true }).check();
      await page.getByRole("button", { name: `Copy as ${name}` }).click();
      await page.getByText("Copied.").waitFor();
      const copied = String(await page.evaluate("navigator.clipboard.readText()"));
      expect(copied.startsWith(begin)).toBe(true);
      expect(copied).toBe(await page.getByRole("region", { name: `The call as ${name}` }).textContent());
    }
  });
});
