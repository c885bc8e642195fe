import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { type Harness, startHarness } from "../support/harness.js";

it("a renewal of the old account leaves nothing in the connection that the user made meanwhile", async () => {
  const harness: Harness = await startHarness();
  try {
    const application = await harness.createApplication();
    const key = { applicationId: application.id, userId: "u", providerName: "sandbox" };
    await harness.connect(application, "u", { refreshToken: "old", expiresAt: 1 });
    const old = await harness.store.connections.find(key);
    if (old === undefined) throw new Error("no connection");
    const lease = await harness.store.connections.takeLease(old, randomUUID(), Date.now() + 60_000, Date.now());
    if (lease === undefined) throw new Error("no lease");
    await harness.connect(application, "u", { refreshToken: "new" });
    await harness.store.connections.keepPreviousRefreshToken(lease, new Uint8Array([1]));
    await harness.store.connections.extendLease(lease, Date.now() + 60_000);
    const failure = { errorClass: "failed", nextTryAt: Date.now() + 60_000, refreshToken: new Uint8Array([1]) };
    await harness.store.connections.recordFailure(lease, failure, Date.now());
    const made = await harness.store.connections.find(key);
    expect(made).toMatchObject({ version: 2, failCount: 0, leaseUntil: undefined });
    if (made === undefined) throw new Error("no connection");
    const next = await harness.store.connections.takeLease(made, randomUUID(), Date.now() + 1000, Date.now());
    expect(next).toMatchObject({ previousRefreshToken: undefined, wasAbandoned: false });
  } finally {
    await harness.close();
  }
});

it("an owner keeps its lease for as long as it extends it, and nobody else's", async () => {
  const harness: Harness = await startHarness();
  try {
    const application = await harness.createApplication();
    const key = { applicationId: application.id, userId: "u", providerName: "sandbox" };
    await harness.connect(application, "u", { refreshToken: "r" });
    const { connections } = harness.store;
    const row = await connections.find(key);
    if (row === undefined) throw new Error("no connection");
    const lease = await connections.takeLease(row, "first", 1000, 0);
    if (lease === undefined) throw new Error("no lease");
    await connections.extendLease(lease, 3000);
    expect(await connections.takeLease(row, "second", 9000, 2000)).toBeUndefined();
    expect(await connections.takeLease(row, "second", 9000, 3000)).toMatchObject({ wasAbandoned: true });
    await connections.extendLease(lease, 99_000);
    expect(await connections.find(key)).toMatchObject({ leaseUntil: 9000 });
  } finally {
    await harness.close();
  }
});

it("a late answer never overwrites the newer one of another process", async () => {
  const harness: Harness = await startHarness();
  try {
    const application = await harness.createApplication();
    const key = { applicationId: application.id, userId: "u", providerName: "sandbox" };
    await harness.connect(application, "u", { refreshToken: "r" });
    const { connections } = harness.store;
    const row = await connections.find(key);
    if (row === undefined) throw new Error("no connection");
    const late = await connections.takeLease(row, "late", 1000, 0);
    const next = await connections.takeLease(row, "next", 9000, 2000);
    if (late === undefined || next === undefined) throw new Error("no lease");
    const tokens = (mark: number) => ({
      accessToken: Buffer.from([mark]),
      refreshToken: undefined,
      idToken: undefined,
      scope: undefined,
      obtainedAt: 2000,
      expiresAt: undefined,
    });
    expect(await connections.commitRenewal(next, tokens(1), 3000)).toBe(true);
    expect(await connections.commitRenewal(late, tokens(2), 4000)).toBe(false);
    expect(await connections.find(key)).toMatchObject({ accessToken: Buffer.from([1]), version: 2 });
  } finally {
    await harness.close();
  }
});
