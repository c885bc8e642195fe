import type { Locator, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { instantFrom, localFrom, timeMember } from "../../src/console/text.js";
import { REASONS } from "../../src/model/errors.js";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { type ConsoleWorld, go, MARKUP, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

async function find(page: Page, text: string): Promise<void> {
  await page.getByLabel("Find a call, a request, a user or an application").fill(text);
  await page.getByRole("button", { name: "Find", exact: true }).click();
}

/** The calls of a view, once they are written. */
async function requireRows(page: Page, caption: string, count: number): Promise<void> {
  await expect
    .poll(async () => {
      await page.reload();
      await page
        .getByRole("table", { name: caption })
        .or(page.getByText("No such call is recorded."))
        .or(page.getByRole("heading", { level: 2 }))
        .first()
        .waitFor();
      return page.getByRole("table", { name: caption }).locator("tbody tr").count();
    })
    .toBe(count);
}

describe("the search box", NEEDS_CHROMIUM, () => {
  it("finds a call by its id, and opens it", async () => {
    const { callId } = await world.call("/me");
    const page = await world.openView("Connections");
    await expect
      .poll(async () => {
        await find(page, String(callId));
        await page.getByRole("region", { name: "Record" }).or(page.getByText("Nothing found.")).waitFor();
        return page.getByRole("region", { name: "Record" }).count();
      })
      .toBe(1);
    await page.getByRole("region", { name: "Record" }).getByText(String(callId)).waitFor();
  });

  it.each([
    ["does not wait for the calls of users", () => new Promise<never>(() => {})],
    ["does without the calls of users", (route: Route) => route.abort()],
  ])("opens a call, and %s", async (_, answer) => {
    const { callId } = await world.call("/me");
    const page = await world.openView("Connections");
    await page.route(/ListCallRecords/, (route) =>
      route.request().postDataJSON().userId === undefined ? route.continue() : answer(route),
    );
    await expect
      .poll(async () => {
        await find(page, String(callId));
        const record = page.getByRole("region", { name: "Record" });
        await record
          .or(page.getByText("Searching the calls of users…", { exact: true }))
          .or(page.getByRole("alert").getByText("The relay"))
          .first()
          .waitFor();
        return record.count();
      })
      .toBe(1);
  });

  it("finds calls by what their caller called the request, and makes no markup of it", async () => {
    const requestId = `<img-src=x-onerror="globalThis.ran=1">`;
    await world.call("/items?count=1", { outerHeaders: { "x-request-id": requestId } });
    const page = await world.openView("Connections");
    await find(page, requestId);
    await page.getByRole("heading", { level: 1, name: "Find" }).waitFor();
    await requireRows(page, "Calls", 1);
    await page.getByRole("table", { name: "Calls" }).getByRole("link").first().click();
    await page.getByRole("region", { name: "Record" }).getByText(requestId).waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(page.complaints).toEqual([]);
  });

  it("finds a user of whatever application, and an application by a part of its name", async () => {
    const others = await Promise.all(
      ["One", "Two"].map((name) => world.harness.createApplication({ name: `Warehouse ${name}` })),
    );
    for (const each of others) await world.harness.connect(each, "gus");
    const page = await world.openView("Live calls");
    await find(page, "gus");
    const rows = page.getByRole("table", { name: "Connections" }).locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.count()).toBe(2);
    await rows.getByRole("link", { name: "Warehouse One" }).waitFor();
    await find(page, "house two");
    await page.getByRole("link", { name: "Warehouse Two" }).click();
    await page.getByRole("heading", { level: 1, name: "Application" }).waitFor();
    await find(page, "nothing of this name");
    await page.getByText("Nothing found.").waitFor();
    await page.route(/ListCallRecords/, (route) =>
      route.request().postDataJSON().userId === undefined ? route.continue() : route.abort(),
    );
    await find(page, "gus");
    await page.getByRole("alert").getByText("The relay does not answer").waitFor();
    expect(await rows.count()).toBe(2);
  });
});

describe("a question of the search box", NEEDS_CHROMIUM, () => {
  it("fails alone, and hides no answer while it takes long", async () => {
    await world.harness.createApplication({ name: "gus-and-sons" });
    const page = await world.openView("Connections");
    await page.route(/ListConnections/, (route) => route.abort());
    let answer: (() => void) | undefined;
    const isLate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/ListCallRecords/, async (route) => {
      if (route.request().postDataJSON().requestId !== undefined) await isLate;
      await route.continue();
    });
    await find(page, "gus");
    await page.getByRole("link", { name: "gus-and-sons" }).waitFor();
    await page.locator("section", { hasText: "Connections of this user" }).getByRole("alert").waitFor();
    await page.getByRole("status").getByText("Searching request ids…", { exact: true }).waitFor();
    expect(await page.getByText("Nothing found.").count()).toBe(0);
    answer?.();
    await page.getByText("Searching").waitFor({ state: "hidden" });
    await page.getByRole("link", { name: "gus-and-sons" }).waitFor();
  });
});

describe("searches of the console", NEEDS_CHROMIUM, () => {
  it("stand in the address with their times, so that a view can be sent to somebody", async () => {
    const application = await world.harness.createApplication({ name: "Kiosk" });
    await world.harness.connect(application, "hal");
    const { publicKey } = application;
    await world.call("/me", { publicKey, userId: "hal" });
    await world.call("/status/404", { publicKey, userId: "hal" });
    await world.call("/me", { publicKey, userId: "nobody" });
    const page = await world.openView("Recorded calls");
    const field = page.getByRole("combobox", { name: "Application" });
    await field.fill("kios");
    await page.getByRole("option", { name: /^Kiosk/ }).click();
    expect(await field.inputValue()).toBe("Kiosk");
    await page.getByRole("combobox", { name: "User id" }).fill("hal");
    await page.getByLabel("From").fill("2026-01-01T00:00:00");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(/userId=hal/);
    await requireRows(page, "Recorded calls", 2);
    const sent = await world.openView("Applications");
    await go(sent, new URL(page.url()).hash);
    await sent.getByRole("table", { name: "Recorded calls" }).waitFor();
    expect(await sent.getByRole("table", { name: "Recorded calls" }).locator("tbody tr").count()).toBe(2);
    await expect.poll(() => sent.getByRole("combobox", { name: "Application" }).inputValue()).toBe("Kiosk");
    expect(await sent.getByLabel("From").inputValue()).toMatch(/^2026-01-01T00:00/);
    const errorType = sent.getByRole("combobox", { name: "Error type" });
    await errorType.click();
    const options = sent.getByRole("option");
    await options.first().waitFor();
    const texts = await options.allInnerTexts();
    expect(texts.map((text) => text.split(/\s/)[0]).toSorted()).toEqual(
      ["API_ERROR", ...Object.keys(REASONS)].toSorted(),
    );
    for (const text of texts) expect(text).toMatch(/^[A-Z_]+\s+[A-Z].+\.$/);
    await errorType.fill("no such thing");
    await errorType.press("Enter");
    await sent.getByText("There is no error type with this name.").waitFor();
    await errorType.fill("itself answered");
    await sent.getByRole("option", { name: /^API_ERROR/ }).waitFor();
    await errorType.press("ArrowDown");
    await errorType.press("Enter");
    expect(await errorType.inputValue()).toBe("API_ERROR");
    await errorType.press("Enter");
    await expect.poll(() => sent.getByRole("table", { name: "Recorded calls" }).locator("tbody tr").count()).toBe(1);
    await sent.getByLabel("Until").fill("2026-01-02T00:00:00");
    await sent.getByRole("button", { name: "Search" }).click();
    await sent.getByText("No such call is recorded.").waitFor();
    await go(page, "#/calls?userId=gus");
    await page.getByText("Choose the application as well: each application").waitFor();
    expect(await page.getByRole("table", { name: "Recorded calls" }).count()).toBe(0);
  });

  it("take what is typed as it is written, where case tells one from another", async () => {
    const application = await world.harness.createApplication({ name: "Shop" });
    const small = await world.harness.createApplication({ name: "shop" });
    await world.harness.connect(application, "Zoe");
    const type = async (into: Locator, text: string, offered: string | RegExp) => {
      await into.fill(text);
      await into.page().getByRole("option", { name: offered }).first().waitFor();
      await into.press("Tab");
    };
    const search = (page: Page) => page.getByRole("button", { name: "Search" }).click();
    const page = await world.openView("Connections");
    const field = page.getByRole("combobox", { name: "Application" });
    const provider = page.getByRole("combobox", { name: "Provider" });
    const user = page.getByRole("combobox", { name: "User id" });
    await type(field, "SHOP", new RegExp(application.publicKey));
    expect(await field.inputValue()).toBe("SHOP");
    await type(field, "Shop", new RegExp(application.publicKey));
    await type(provider, "SANDBOX", /^sandbox/);
    await type(user, "Z", "Zoe");
    // What is offered is still for what was typed before.
    await page.route(/ListConnections/, (route) => route.abort());
    await user.fill("zoe");
    await user.press("Tab");
    await search(page);
    await page.waitForURL(`**publicKey=${application.publicKey}&userIdPrefix=zoe&providerName=sandbox*`);
    const other = await world.openView("Connections");
    await type(other.getByRole("combobox", { name: "Application" }), "shop", new RegExp(small.publicKey));
    await search(other);
    await other.waitForURL(`**publicKey=${small.publicKey}*`);
  });

  it("show applications by their names, of which none is markup", async () => {
    const page = await world.openView("Connections");
    await page.getByRole("table", { name: "Connections" }).getByRole("link", { name: MARKUP }).first().waitFor();
    await page.getByRole("combobox", { name: "Application" }).fill("onerror");
    await page.getByRole("option").first().waitFor();
    expect(await page.evaluate("globalThis.ran")).toBeUndefined();
    expect(page.complaints).toEqual([]);
  });
});

describe("times of a search", () => {
  it("are the browser's own in the form, and UTC in the address", () => {
    expect(instantFrom(localFrom("2026-05-01T10:20:30.000Z"))).toBe("2026-05-01T10:20:30.000Z");
    expect([localFrom("nonsense"), instantFrom(""), timeMember("startTime", "x")]).toEqual(["", "", {}]);
    expect(timeMember("startTime", "2026-05-01T10:20:30.000Z")).toEqual({ startTime: "2026-05-01T10:20:30.000Z" });
  });
});
