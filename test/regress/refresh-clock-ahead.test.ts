import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Connection, Lease } from "../../src/oauth/connection.js";
import { openSqliteStore, type SqliteStore } from "../../src/store/sqlite.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const HOUR_MS = 3_600_000;

let harness: Harness;
let application: TestApplication;
/** The store as a process sees it whose clock stands an hour ahead. */
let ahead: SqliteStore;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
  await harness.putClient(application);
  ahead = openSqliteStore(join(harness.folder, "relay.db"), { now: () => Date.now() + HOUR_MS });
});
afterAll(async () => {
  ahead.close();
  await harness.close();
});

/** A user whose token has ended, and whose lease was taken by the clock that stood ahead. */
async function leaseAhead() {
  const userId = randomUUID();
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
  const key = { applicationId: application.id, userId, providerName: "sandbox" };
  const row = (await ahead.connections.find(key)) as Connection;
  return { userId, lease: (await ahead.connections.takeLease(row, "gone", 1000)) as Lease };
}

async function call(userId: string) {
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const { publicKey } = application;
  const { text } = await postRest(harness.url, { providerName: "sandbox", userId, publicKey, call });
  return JSON.parse(text).rows[0] as unknown;
}

describe("a clock that stood an hour ahead and was corrected", () => {
  it("does not keep a connection from being refreshed whose refresh failed meanwhile", async () => {
    const { userId, lease } = await leaseAhead();
    const failure = {
      errorClass: "failed",
      isUnspent: true,
      waitMs: 1000,
      trouble: { since: 1 },
    };
    await ahead.connections.recordFailure(lease, failure, Date.now() + HOUR_MS);
    expect(await call(userId)).toMatchObject({ pincStatus: "success" });
  });

  it("does not keep a connection from being refreshed whose lease was left behind meanwhile", async () => {
    const { userId } = await leaseAhead();
    await ahead.connections.freeLeases("gone");
    expect(await call(userId)).toMatchObject({ pincStatus: "success" });
  });
});
