import { expect, it, onTestFinished } from "vitest";
import { createCallers } from "../support/callers.js";
import { lintExposition, parseExposition, totalOf } from "../support/exposition.js";
import { startHarness } from "../support/harness.js";
import { scrapeText } from "../support/scrape.js";
import { createStreamCallers } from "../support/stream-callers.js";

it("metrics break no rule of promtool check metrics after calls, failures, refreshes and streams", async () => {
  const harness = await startHarness();
  onTestFinished(() => harness.close());
  const application = await harness.createApplication();
  await harness.putClient(application);
  await harness.connect(application, "ada");
  // Its access token has ended.
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, "bob", { expiresAt: 1, ...(refreshToken === undefined ? {} : { refreshToken }) });
  const callOf = (userId: string, path: string) => ({
    ...{ providerName: "sandbox", userId, publicKey: application.publicKey },
    call: { url: harness.sandbox.origin + path, method: "GET" },
  });
  for (const [, caller] of createCallers(harness.url)) {
    expect(await caller(callOf("ada", "/me"))).toMatchObject({ pincStatus: "success" });
    expect(await caller(callOf("bob", "/me"))).toMatchObject({ pincStatus: "success" });
    expect(await caller(callOf("ada", "/status/404"))).toMatchObject({ errorType: "API_ERROR" });
    expect(await caller(callOf("nobody", "/me"))).toMatchObject({ errorType: "INVALID_OAUTHID" });
  }
  for (const [, caller] of createStreamCallers(harness.url)) {
    expect((await caller(callOf("ada", "/json?size=100000"))).head?.statusCode).toBe(200);
  }
  const text = await scrapeText(harness.adminUrl);
  expect(lintExposition(text)).toEqual([]);
  const samples = parseExposition(text);
  expect(totalOf(samples, "relay_calls_total", { status_class: "2xx" })).toBe(16);
  expect(totalOf(samples, "relay_refreshes_total")).toBe(1);
});
