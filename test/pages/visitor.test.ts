import { describe, expect, it } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";
import { openBrowser } from "./browser.js";

describe("visits", () => {
  let harness: Harness;

  it("are limited for each client address, and a page says so", async () => {
    harness = await startHarness({ env: { RELAY_TRUSTED_PROXIES: "127.0.0.1" } });
    const from = (address: string) =>
      openBrowser().visit(`${harness.url}/oauth/connect`, { headers: { "x-forwarded-for": address } });
    const seen = [];
    for (let at = 0; at < 301; at += 1) seen.push((await from(`2001:db8:1:2::${at.toString(16)}`)).status);
    expect(seen).toEqual([...Array(300).fill(400), 429]);
    const refused = await from("2001:db8:1:2::ffff");
    expect(refused.body).toContain("Too many requests from this address");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect((await from("2001:db8:1:3::1")).status).toBe(400);
    expect((await from("192.0.2.1")).status).toBe(400);
    await harness.close();
  });
});
