import { randomUUID } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness } from "../support/harness.js";

/** Longer than a write tries on its own. */
const LOCKED_MS = 2500;

let harness: Harness;
let other: Database.Database;
beforeAll(async () => {
  const holdTokenAnswer = async () => {
    other.exec("BEGIN IMMEDIATE");
    setTimeout(() => other.exec("COMMIT"), LOCKED_MS);
  };
  harness = await startHarness({ sandbox: { holdTokenAnswer } });
  other = new Database(join(harness.folder, "relay.db"));
});
afterAll(async () => {
  other.close();
  await harness.close();
});

describe("tokens that come while the store is locked", () => {
  it("are stored when it can be written again: the provider gives no others", async () => {
    const application = await harness.createApplication();
    await harness.putClient(application);
    const userId = randomUUID();
    const { refresh_token: refreshToken } = harness.sandbox.issueToken();
    await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
    const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
    const { publicKey } = application;
    const { text } = await postRest(harness.url, { providerName: "sandbox", userId, publicKey, call });
    expect(JSON.parse(text).rows[0]).toMatchObject({ pincStatus: "success" });
    const key = { applicationId: application.id, userId, providerName: "sandbox" };
    expect(await harness.store.connections.find(key)).toMatchObject({ version: 2, leaseUntil: undefined });
  });
});
