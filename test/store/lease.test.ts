import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SqliteStore } from "../../src/store/sqlite.js";
import type { Connection, Lease, RenewedTokens } from "../../src/tokens/connection.js";
import { sealerForTest } from "../tokens/sealer-for-test.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW, type StoreFolder } from "./store-for-test.js";

const sealer = sealerForTest();
const LEASE_MS = 1000;

let at: StoreFolder;
let store: SqliteStore;
let peer: SqliteStore;
let read: Connection;
beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
  peer = at.open();
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const key = { applicationId: application.id, userId: "u", providerName: "github" };
  read = await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
});
afterEach(() => at.remove());

describe("takeLease()", () => {
  it("gives one of two processes the lease when both have read the row before", async () => {
    const first = await store.connections.takeLease(read, "first", NOW + LEASE_MS, NOW);
    expect(first).toMatchObject({ owner: "first", wasAbandoned: false });
    expect(await peer.connections.takeLease(read, "second", NOW + LEASE_MS, NOW)).toBeUndefined();
  });

  it("gives it to another one when its time is over, and says so", async () => {
    await store.connections.takeLease(read, "first", NOW + LEASE_MS, NOW);
    const later = NOW + LEASE_MS;
    const second = await peer.connections.takeLease(read, "second", later + LEASE_MS, later);
    expect(second).toMatchObject({ owner: "second", wasAbandoned: true });
  });

  it("gives none for a row that has changed since it was read", async () => {
    await store.connections.put({ ...read }, NOW);
    expect(await peer.connections.takeLease(read, "second", NOW + LEASE_MS, NOW)).toBeUndefined();
  });
});

describe("commitRenewal()", () => {
  it("writes nothing for a process that comes late: another one has renewed the row meanwhile", async () => {
    const tokens = (text: string): RenewedTokens => ({
      accessToken: Buffer.from(text),
      refreshToken: undefined,
      idToken: undefined,
      scope: undefined,
      obtainedAt: NOW,
      expiresAt: undefined,
    });
    const later = NOW + LEASE_MS;
    const slow = (await store.connections.takeLease(read, "slow", later, NOW)) as Lease;
    const quick = (await peer.connections.takeLease(read, "quick", later + LEASE_MS, later)) as Lease;
    expect(await peer.connections.commitRenewal(quick, tokens("quick"), later)).toBe(true);
    expect(await store.connections.commitRenewal(slow, tokens("slow"), later)).toBe(false);
    const row = await store.connections.find(read);
    expect(Buffer.from(row?.accessToken ?? []).toString()).toBe("quick");
    expect(row?.version).toBe(2);
  });
});
