import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness } from "../support/harness.js";

let harness: Harness;
beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

describe("a refresh token that does not open", () => {
  it("is the store's trouble, not a fault, and holds up no caller", async () => {
    const application = await harness.createApplication();
    await harness.putClient(application);
    const userId = randomUUID();
    await harness.connect(application, userId, { refreshToken: "r", expiresAt: 1 });
    const key = { applicationId: application.id, userId, providerName: "sandbox" };
    const row = await harness.store.connections.find(key);
    if (row === undefined) throw new Error("the connection is gone");
    await harness.store.connections.put({ ...row, refreshToken: row.accessToken }, Date.now());
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    for (const _ of [1, 2]) {
      const { publicKey } = application;
      const { text } = await postRest(harness.url, { providerName: "sandbox", userId, publicKey, call });
      expect(JSON.parse(text).rows[0]).toMatchObject({ errorType: "STORE_UNAVAILABLE" });
      expect(await harness.store.connections.find(key)).toMatchObject({ state: "ACTIVE", leaseUntil: undefined });
    }
  });
});
