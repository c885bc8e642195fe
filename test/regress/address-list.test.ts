import { BlockList } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness } from "../support/harness.js";

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness();
});

afterAll(() => harness.close());

describe("the address list of an application", () => {
  it("is read once for many calls, and again when it is changed", async () => {
    const others = Array.from({ length: 20 }, (_, at) => `10.0.${at}.0/24`);
    const application = await harness.createApplication({ allowedAddresses: [...others, "127.0.0.0/8"] });
    await harness.connect(application, "u");
    const call = async () => {
      const { text } = await postRest(harness.url, {
        ...{ providerName: "sandbox", userId: "u", publicKey: application.publicKey },
        call: { url: `${harness.sandbox.origin}/me`, method: "GET" },
      });
      return JSON.parse(text).rows[0].errorType;
    };
    const added = vi.spyOn(BlockList.prototype, "addSubnet");
    for (let at = 0; at < 10; at++) expect(await call()).toBe(undefined);
    // The row of an application is kept from the second time on that it is read.
    expect(added.mock.calls.length).toBeLessThanOrEqual(2 * 21);
    await harness.store.applications.update(application.publicKey, { allowedAddresses: others }, Date.now());
    expect(await call()).toBe("CALLER_NOT_ALLOWED");
    added.mockRestore();
  });
});
