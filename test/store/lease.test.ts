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

const tokens = (text: string): RenewedTokens => ({
  accessToken: Buffer.from(text),
  refreshToken: undefined,
  idToken: undefined,
  scope: undefined,
  obtainedAt: NOW,
  expiresAt: undefined,
});

/** One process stands still with the lease, and another one has it when the first goes on. */
async function takeTwice() {
  const later = NOW + LEASE_MS;
  const slow = (await store.connections.takeLease(read, "slow", later, NOW)) as Lease;
  const quick = (await peer.connections.takeLease(read, "quick", later + LEASE_MS, later)) as Lease;
  return { slow, quick, later };
}

describe("commitRenewal()", () => {
  it("writes nothing for a process that comes late: another one has renewed the row meanwhile", async () => {
    const { slow, quick, later } = await takeTwice();
    expect(await peer.connections.commitRenewal(quick, tokens("quick"), later)).toBe(true);
    expect(await store.connections.commitRenewal(slow, tokens("slow"), later)).toBe(false);
    const row = await store.connections.find(read);
    expect(Buffer.from(row?.accessToken ?? []).toString()).toBe("quick");
    expect(row?.version).toBe(2);
  });

  it("lets a connection live again that was given up while the good answer was on its way", async () => {
    const { slow, quick, later } = await takeTwice();
    const isEnded = await peer.connections.requireReauthorization(quick.connection, "rotation_lost_suspected", later);
    expect(isEnded).toBe(true);
    expect(await store.connections.commitRenewal(slow, tokens("slow"), later)).toBe(true);
    expect(await store.connections.find(read)).toMatchObject({ state: "ACTIVE", stateReason: undefined, version: 3 });
  });

  it("writes nothing over a connection that was made again and given up since", async () => {
    const { slow, later } = await takeTwice();
    const made = await peer.connections.put({ ...read, id: "made-again" }, later);
    await peer.connections.requireReauthorization(made, "invalid_grant", later);
    expect(await store.connections.commitRenewal(slow, tokens("slow"), later)).toBe(false);
    expect(await store.connections.find(read)).toMatchObject({ state: "REAUTHORIZATION_REQUIRED" });
  });
});

describe("findAbandoned()", () => {
  const found = async (after: number, now: number) =>
    (await store.connections.findAbandoned(after, 10, now)).map(({ id }) => id);

  it("finds a lease that has ended and was not given back, once it has ended", async () => {
    await store.connections.takeLease(read, "gone", NOW + LEASE_MS, NOW);
    expect(await found(0, NOW + LEASE_MS)).toEqual([]);
    expect(await found(0, NOW + LEASE_MS + 1)).toEqual([read.id]);
    expect(await found(NOW + LEASE_MS, NOW + LEASE_MS + 1)).toEqual([]);
  });

  it("does not find one that was given back", async () => {
    const lease = (await store.connections.takeLease(read, "here", NOW + LEASE_MS, NOW)) as Lease;
    await store.connections.releaseLease(lease);
    expect(await found(0, NOW + LEASE_MS + 1)).toEqual([]);
  });
});
