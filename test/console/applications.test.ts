import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NEEDS_CHROMIUM } from "../support/chromium.js";
import { ADMIN_TOKENS } from "../support/harness.js";
import { pngOf, WEBP } from "../support/pictures.js";
import type { WatchedPage } from "../support/watched-page.js";
import { type ConsoleWorld, showView, startConsoleWorld } from "./world.js";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsoleWorld();
});
afterAll(() => world?.close());

const form = (page: Page, name: string) => page.getByRole("form", { name });
const command = (page: Page, name: string) => page.locator(`pre[aria-label="Command: ${name}"]`);

/** What the audit trail says last: method, fields, outcome. */
async function lastAudit(publicKey?: string) {
  const [record] = await world.harness.store.audit.list({ beforeId: undefined, publicKey, limit: 1 });
  return { ...record, method: record?.method.replace("relay.admin.v1.", "") };
}

/** Opens the view of a new application of its own. */
async function openApplication(options: { token?: string } = {}, name = "of a test") {
  const application = await world.harness.createApplication({ name, callerAuth: "SIGNED_USER" });
  const page = await world.openView("Applications", options);
  await page.goto(`${page.url().split("#")[0]}#/application?publicKey=${application.publicKey}`);
  await page.getByRole("heading", { level: 1, name: "Application", exact: true }).waitFor();
  await form(page, "Save").waitFor();
  return { page, application };
}

const found = ({ publicKey }: { readonly publicKey: string }) =>
  world.harness.store.applications.findByPublicKey(publicKey);

async function openCreation(page: WatchedPage) {
  await page.getByText("New application").click();
  return form(page, "Create the application");
}

describe("applications in the console", NEEDS_CHROMIUM, () => {
  it("are created with Enter, and the key is shown once, copied, and gone after leaving", async () => {
    const page = await world.openView("Applications", { permissions: ["clipboard-read", "clipboard-write"] });
    const creation = await openCreation(page);
    await creation.getByLabel("Browser origins that may call").fill("https://one.example\n\nhttps://two.example");
    await creation.getByLabel("Rules that all its calls must match").fill('{"sandbox": [{"methods": ["GET"]}]}');
    await creation.getByLabel("Name", { exact: true }).fill("it's new");
    expect(await command(page, "Create the application").textContent()).toBe(
      `printf %s '{"sandbox":[{"methods":["GET"]}]}' | relay app create --caller-auth signed-user --allow-origin https://one.example --allow-origin https://two.example --call-rules - 'it'\\''s new'`,
    );
    await creation.getByLabel("Name", { exact: true }).press("Enter");
    await page.locator("#creation-result:focus").waitFor();
    const key = (await page.getByRole("region", { name: "Private key", exact: true }).textContent()) ?? "";
    await page.getByText("It belongs on your application's server").waitFor();
    await page.getByRole("button", { name: "Copy: Private key" }).click();
    await page.getByText("Copied.").waitFor();
    expect(key.length).toBeGreaterThan(30);
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(key);
    const publicKey = (await page.locator("#creation-result .id").textContent()) ?? "";
    expect(await found({ publicKey })).toMatchObject({
      name: "it's new",
      callerAuth: "SIGNED_USER",
      allowedOrigins: ["https://one.example", "https://two.example"],
    });
    expect(await lastAudit(publicKey)).toMatchObject({
      method: "ApplicationService.CreateApplication",
      actor: "alice",
      outcome: "DONE",
    });
    const storage = "JSON.stringify([location.href, history.state, { ...sessionStorage }, { ...localStorage }])";
    expect(await page.evaluate(storage)).not.toContain(key);
    await showView(page, "Providers");
    expect(await page.content()).not.toContain(key);
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Applications" }).waitFor();
    expect(await page.content()).not.toContain(key);
    expect(page.complaints).toEqual([]);
    expect(world.harness.logLines.join("\n")).not.toContain(key);
  });

  it("never show a key whose answer comes after the view was left", async () => {
    const page = await world.openView("Applications");
    const creation = await openCreation(page);
    await creation.getByLabel("Name", { exact: true }).fill("late");
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/CreateApplication/, async (route) => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    await page.getByRole("button", { name: "Create the application" }).click();
    await page.getByText("Working…").waitFor();
    await showView(page, "Providers");
    const answered = page.waitForResponse(/CreateApplication/);
    answer();
    const { privateKey } = (await (await answered).json()) as { privateKey: string };
    await showView(page, "Applications");
    await page.getByRole("table", { name: "Applications" }).getByText("late").waitFor();
    expect(await page.content()).not.toContain(privateKey);
  });

  it("have what the API says against a field beside it, and the focus in it", async () => {
    const page = await world.openView("Applications");
    const creation = await openCreation(page);
    const send = page.getByRole("button", { name: "Create the application" });
    await send.click();
    const name = creation.getByLabel("Name", { exact: true });
    await page.locator("#creation-displayName:focus").waitFor();
    expect(await name.getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator("#creation-displayName-wrong").textContent()).toContain(
      "application.display_name must be one line of 1 to 200 characters.",
    );
    await name.fill("named");
    await creation.getByLabel("Browser origins that may call").fill("not one");
    await send.click();
    await page.locator("#creation-allowedOrigins:focus").waitFor();
    expect(await page.locator("#creation-allowedOrigins-wrong").textContent()).toContain('has "not one", which');
    await creation.getByLabel("Browser origins that may call").fill("");
    await creation.getByLabel("Rules that all its calls must match").fill("[]");
    await send.click();
    await page.locator("#creation-callRules:focus").waitFor();
    await page.getByText("The rules must be a JSON object of lists").waitFor();
    await page.getByText("Shown once the form is valid.").first().waitFor({ state: "attached" });
  });

  it("get an icon that is chosen, seen and taken away again, and what is none is refused beside it", async () => {
    const { page, application } = await openApplication();
    const settings = form(page, "Save");
    const save = settings.getByRole("button", { name: "Save", exact: true });
    const chooser = page.locator("#settings-icon");
    const iconOf = async () => Buffer.from(await world.harness.store.applications.iconOf(application.id));
    const choose = (name: string, buffer: Buffer) => chooser.setInputFiles({ name, mimeType: "image/png", buffer });
    await choose("icon.svg", Buffer.from("<svg onload=alert(1)>"));
    await settings.getByRole("img", { name: "Not a picture" }).waitFor();
    expect(await chooser.inputValue()).toContain("icon.svg");
    await save.click();
    await page.locator("#settings-icon:focus").waitFor();
    expect(await page.locator("#settings-icon-wrong").textContent()).toContain("must be a PNG, JPEG or WebP picture");
    await choose("icon.png", Buffer.concat([pngOf(3, 2), Buffer.alloc(1_000_000)]));
    await save.click();
    await page.locator("#settings-icon-wrong").getByText("must have at most 16384 bytes").waitFor();
    await choose("icon.webp", WEBP);
    const preview = settings.getByRole("img", { name: "Preview: Icon on the connect page" });
    const drawn =
      "document.querySelector('#settings canvas').getContext('2d').getImageData(56, 56, 1, 1).data[0] > 200";
    await expect.poll(() => page.evaluate(drawn)).toBe(true);
    expect(await command(page, "Save").textContent()).toBe(
      `relay app update --icon ICON_FILE ${application.publicKey}`,
    );
    await page.getByText("ICON_FILE is the file that holds the picture.").waitFor({ state: "attached" });
    await save.click();
    await page.getByText("Saved.").waitFor();
    expect(await iconOf()).toEqual(WEBP);
    await page.reload();
    await preview.waitFor();
    await settings.getByRole("button", { name: "Remove it: Icon on the connect page" }).click();
    expect(await command(page, "Save").textContent()).toBe(`relay app update --no-icon ${application.publicKey}`);
    await save.click();
    await page.getByText("Saved.").waitFor();
    expect([(await iconOf()).length, await preview.count()]).toEqual([0, 0]);
    // Others are of what the API refused, and of how often the test looks at the preview.
    expect(page.complaints.filter((each) => /Security Policy|Trusted|^error:/.test(each))).toEqual([]);
  });

  it("are edited with what was stored in the form, and not over what somebody else has changed since", async () => {
    const { page, application } = await openApplication();
    const settings = form(page, "Save");
    await settings.getByLabel("Calls per minute, for all users").fill("600");
    await settings.getByLabel("Name", { exact: true }).fill("renamed");
    const colour = settings.getByLabel("Colour of its mark");
    await colour.fill("red");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator("#settings-accentColor:focus").waitFor();
    await colour.fill("#1a73e8");
    expect(await command(page, "Save").textContent()).toBe(
      `relay app update --name renamed --calls-per-minute 600 --accent-color '#1a73e8' ${application.publicKey}`,
    );
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    const changed = { name: "renamed", callsPerMinute: 600, accentColor: "#1a73e8", callerAuth: "SIGNED_USER" };
    expect(await found(application)).toMatchObject(changed);
    await colour.fill("");
    expect(await command(page, "Save").textContent()).toBe(
      `relay app update --accent-color '' ${application.publicKey}`,
    );
    expect(await lastAudit(application.publicKey)).toMatchObject({ method: "ApplicationService.UpdateApplication" });
    await page.getByText("renamed").first().waitFor();
    await world.harness.store.applications.update(application.publicKey, { name: "elsewhere" }, Date.now() + 1000, {
      audit: {
        ...{ id: "00000000-0000-7000-8000-000000000000", at: 1, actor: "x", method: "x", resource: "x" },
        ...{ publicKey: application.publicKey, changedFields: [] },
      },
    });
    await settings.getByLabel("Name", { exact: true }).fill("over it");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator("#settings-problem:focus").waitFor();
    expect(await found(application)).toMatchObject({ name: "elsewhere" });
  });

  it("are not edited over what somebody else has changed, also when that was loaded for another reason", async () => {
    const { page, application } = await openApplication();
    const name = form(page, "Save").getByLabel("Name", { exact: true });
    await name.fill("renamed");
    await page.getByRole("button", { name: "Disable the application" }).click();
    await form(page, "Enable the application").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    expect(await found(application)).toMatchObject({ name: "renamed", state: "DISABLED" });
    await page.getByText("renamed").first().waitFor();
    await name.fill("over it");
    await world.harness.store.applications.update(application.publicKey, { callsPerMinute: 7 }, Date.now() + 1000, {
      audit: {
        ...{ id: "00000000-0000-7000-8000-000000000002", at: 1, actor: "x", method: "x", resource: "x" },
        ...{ publicKey: application.publicKey, changedFields: [] },
      },
    });
    await page.getByRole("button", { name: "Enable the application" }).click();
    await form(page, "Disable the application").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator("#settings-problem:focus").waitFor();
    expect(await found(application)).toMatchObject({ name: "renamed", callsPerMinute: 7, state: "ACTIVE" });
  });

  it("are disabled and enabled again", async () => {
    const { page, application } = await openApplication();
    for (const [button, flag, state] of [
      ["Disable the application", "--disable", "DISABLED"],
      ["Enable the application", "--enable", "ACTIVE"],
    ] as const) {
      await form(page, button).waitFor();
      expect(await command(page, button).textContent()).toBe(`relay app update ${flag} ${application.publicKey}`);
      await page.getByRole("button", { name: button }).click();
      await page.getByText(state === "DISABLED" ? "Disabled: its calls" : "Enabled: its calls").waitFor();
      expect(await found(application)).toMatchObject({ state, name: "of a test" });
      expect(await lastAudit(application.publicKey)).toMatchObject({ changedFields: ["state"] });
    }
  });

  it("get a new key when that is confirmed, shown until the view is left", async () => {
    const { page, application } = await openApplication();
    const before = await found(application);
    await page.getByRole("button", { name: "Rotate the private key" }).click();
    await page.locator("#rotate-sure:focus").waitFor();
    await page.getByText("Tick this box to continue.").waitFor();
    expect((await found(application))?.privateKeyHash).toEqual(before?.privateKeyHash);
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const key = (await page.getByRole("region", { name: "Private key", exact: true }).textContent()) ?? "";
    expect((await found(application))?.privateKeyHash).not.toEqual(before?.privateKeyHash);
    expect(await lastAudit(application.publicKey)).toMatchObject({ method: "ApplicationService.RotateApplicationKey" });
    expect(await page.locator("#rotate-sure").isChecked()).toBe(false);
    const other = await world.harness.createApplication({ name: "another" });
    await page.goto(`${page.url().split("#")[0]}#/application?publicKey=${other.publicKey}`);
    await page.getByText("another").first().waitFor();
    expect(await page.content()).not.toContain(key);
    expect(key.length).toBeGreaterThan(30);
  });

  it("have their calls captured for a time, and not any more", async () => {
    const { page, application } = await openApplication();
    const minutes = form(page, "Capture calls").getByLabel("Minutes");
    await minutes.fill("61");
    await page.getByRole("button", { name: "Capture calls" }).click();
    await page.locator("#capture-minutes:focus").waitFor();
    expect(await page.locator("#capture-minutes-wrong").textContent()).toContain("duration must be");
    await minutes.fill("5.5");
    await page.getByRole("button", { name: "Capture calls" }).click();
    await page.locator("#capture-minutes-wrong").getByText("duration must be a whole number.").waitFor();
    await minutes.fill("5");
    expect(await command(page, "Capture calls").textContent()).toBe(
      `relay app capture --minutes 5 ${application.publicKey}`,
    );
    await minutes.press("Enter");
    await page.getByText("Capturing has started. It ends").waitFor();
    expect((await found(application))?.captureUntil).toBeGreaterThan(0);
    expect(await lastAudit(application.publicKey)).toMatchObject({ method: "CallRecordService.StartCallCapture" });
    await page.getByRole("button", { name: "Stop capturing" }).click();
    await page.getByText("It is off.").waitFor();
    expect((await found(application))?.captureUntil).toBe(0);
    expect(await lastAudit(application.publicKey)).toMatchObject({ method: "CallRecordService.StopCallCapture" });
  });

  it("are deleted when that is confirmed", async () => {
    const { page, application } = await openApplication();
    await page.getByLabel("Delete it with its clients and connections, for good").check();
    await page.getByRole("button", { name: "Delete the application" }).click();
    await page.getByText("Deleted the application").waitFor();
    expect(await found(application)).toBeUndefined();
    expect(await lastAudit(application.publicKey)).toMatchObject({ method: "ApplicationService.DeleteApplication" });
    expect(await page.getByRole("form").count()).toBe(0);
  });

  it("are shown to a read-only token with every control greyed, the reason, and the commands", async () => {
    const { page, application } = await openApplication({ token: ADMIN_TOKENS.readOnly });
    await page.getByText("This token is read-only: only operators can make changes.").first().waitFor();
    const controls = page.locator("main form").locator("input, select, textarea, button");
    expect(await controls.count()).toBeGreaterThan(10);
    expect(await controls.and(page.locator(":enabled")).count()).toBe(0);
    expect(await command(page, "Delete the application").textContent()).toBe(
      `relay app delete ${application.publicKey}`,
    );
    // Whoever takes the greying away is refused all the same, and written down.
    await page.evaluate("document.querySelectorAll('fieldset').forEach((each) => { each.disabled = false; })");
    await page.getByLabel("Delete it with its clients and connections, for good").check();
    await page.getByRole("button", { name: "Delete the application" }).click();
    await page.getByText("This admin token is read-only; DeleteApplication is for operators.").waitFor();
    expect(await found(application)).toBeDefined();
    expect(await lastAudit(application.publicKey)).toMatchObject({ actor: "bob", outcome: "REFUSED" });
  });
});
