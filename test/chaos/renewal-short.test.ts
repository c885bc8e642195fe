import { randomUUID } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { Connection, ConnectionKey, Lease } from "../../src/tokens/connection.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let harness: Harness;
afterEach(() => harness.close());

/** A user whose token has ended, and a lease on it whose owner is gone; `npm run chaos` makes such owners by the hundred. */
async function abandon({ graceMs = 0, leaseMs = 0, rotates = true }) {
  harness = await startHarness({ sandbox: { refreshGraceMs: graceMs } });
  const application = await harness.createApplication();
  await harness.putClient(application);
  const userId = randomUUID();
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
  const key: ConnectionKey = { applicationId: application.id, userId, providerName: "sandbox" };
  const row = (await harness.store.connections.find(key)) as Connection;
  const lease = (await harness.store.connections.takeLease(row, "gone", leaseMs)) as Lease;
  if (rotates) await refresh(refreshToken);
  return { application, userId, key, row, lease };
}

/** What the owner asked before it was gone. */
async function refresh(refreshToken: string): Promise<void> {
  const { client_id, client_secret = "" } = harness.sandbox.client;
  const body = new URLSearchParams({
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_id,
    client_secret,
  });
  const answer = await fetch(`${harness.sandbox.origin}/oauth/token`, { method: "POST", body });
  expect(answer.status).toBe(200);
}

async function call({ application, userId }: { application: TestApplication; userId: string }) {
  const { publicKey } = application;
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const { text } = await postRest(harness.url, { providerName: "sandbox", userId, publicKey, call });
  return JSON.parse(text).rows[0] as unknown;
}

describe("a lease whose owner is gone", () => {
  it("costs nothing at a provider with a grace window: the same refresh token is used again", async () => {
    const abandoned = await abandon({ graceMs: 30_000 });
    expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
    const row = await harness.store.connections.find(abandoned.key);
    expect(row).toMatchObject({ version: 2, state: "ACTIVE", leaseUntil: undefined });
  });

  it("costs the connection at a strict provider, and says why", async () => {
    const abandoned = await abandon({});
    expect(await call(abandoned)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    const row = await harness.store.connections.find(abandoned.key);
    expect(row).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", stateReason: "rotation_lost_suspected" });
  });

  it("is waited for until it ends", async () => {
    const abandoned = await abandon({ leaseMs: 1000, rotates: false });
    const startedAt = performance.now();
    expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
    expect(performance.now() - startedAt).toBeGreaterThan(500);
  });

  it("stores nothing over the tokens of the one who took over, and loses none", async () => {
    const abandoned = await abandon({ graceMs: 30_000 });
    await call(abandoned);
    const { connections } = harness.store;
    const newer = await connections.find(abandoned.key);
    const late = { ...abandoned.row, refreshToken: abandoned.row.accessToken };
    const stored = await connections.commitRenewal(abandoned.lease, { ...late, scope: "late" }, Date.now());
    expect(stored).toBe(false);
    expect(await connections.find(abandoned.key)).toEqual(newer);
  });
});
