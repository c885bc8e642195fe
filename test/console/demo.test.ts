import { request } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import { createFolder, lineFrom } from "../cli/run-relay.js";
import { launchChromium, NEEDS_CHROMIUM } from "../support/chromium.js";
import { newWatchedPage } from "../support/watched-page.js";

describe("the demo's console", NEEDS_CHROMIUM, () => {
  it("shows the demo's calls, and others as they happen, with the token that the demo prints", async () => {
    const child = createFolder().start(["demo", "--port", "0"]);
    const [consoleUrl, token, body] = await Promise.all([
      lineFrom(child, (line) => /^ {2}(http:\S+\/)$/.exec(line)?.[1]),
      lineFrom(child, (line) => /^ {2}(relay_admin_\S+)$/.exec(line)?.[1]),
      lineFrom(child, (line) => /^ {2}curl '(.*)' -d '(.*)'$/.exec(line)?.slice(1)),
    ]);
    const browser = await launchChromium();
    onTestFinished(() => browser.close());
    const page = await newWatchedPage(browser);
    await page.goto(consoleUrl);
    await page.getByLabel("Admin token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("link", { name: "Live calls" }).click();
    const calls = page.getByRole("table", { name: "Last calls" });
    for (const surface of ["rest", "connect", "grpc"]) {
      await calls.getByRole("cell", { name: surface, exact: true }).waitFor();
    }
    await page.getByText("3 calls seen").waitFor();
    await (await request(body[0] ?? "", { method: "POST", body: body[1] ?? "" })).body.dump();
    await page.getByText("4 calls seen").waitFor();
    expect(page.complaints).toEqual([]);
  });
});
