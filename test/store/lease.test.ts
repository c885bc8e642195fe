import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Connection, Lease, RefreshedTokens } from "../../src/oauth/connection.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const LEASE_MS = 60_000;

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let peer: Store;
  let read: Connection;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    peer = await at.open();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    const key = { applicationId: application.id, userId: "u", providerName: "github" };
    read = await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
  });
  afterEach(() => at.remove());

  describe("takeLease()", () => {
    it("gives one of two processes the lease when both have read the row before", async () => {
      const first = await store.connections.takeLease(read, "first", LEASE_MS);
      expect(first).toMatchObject({ owner: "first", connection: { unansweredSince: undefined } });
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
    });

    it("gives it to another one only some time after its end was seen, and says so", async () => {
      await store.connections.takeLease(read, "first", LEASE_MS);
      await at.elapse(LEASE_MS);
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
      await at.elapse(LEASE_MS - 5000);
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
      await at.elapse(5000);
      const second = await peer.connections.takeLease(read, "second", LEASE_MS);
      expect(second).toMatchObject({ owner: "second", connection: { unansweredSince: expect.any(Number) } });
    });

    it("stores what an owner that lives was given, after the end of its lease was seen", async () => {
      const first = (await store.connections.takeLease(read, "first", LEASE_MS)) as Lease;
      await at.elapse(LEASE_MS);
      await peer.connections.takeLease(read, "second", LEASE_MS);
      expect(await store.connections.commitRefresh(first.connection, tokens("first"), NOW)).toBe("stored");
      expect(await peer.connections.find(read)).toMatchObject({ version: 2, leaseUntil: undefined });
    });

    it("gives it to another one at once when the owner is known to be gone", async () => {
      await store.connections.takeLease(read, "first", LEASE_MS);
      await peer.connections.freeLeases("another");
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
      await peer.connections.freeLeases("first");
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toMatchObject({
        connection: { unansweredSince: expect.any(Number) },
      });
    });

    it("gives its owner what it could not give back", async () => {
      await store.connections.takeLease(read, "first", LEASE_MS);
      expect(await store.connections.takeLease(read, "first", LEASE_MS)).toMatchObject({ owner: "first" });
    });

    it.each([
      ["a lease", "lease_until"],
      ["a wait after a failure", "next_try_at"],
    ])(
      "is not held up by %s that ends further ahead than any, as after a clock was set right",
      async (_what, column) => {
        await at.run(`UPDATE connections SET ${column} = ?`, Date.now() + 3 * 365 * 24 * 3_600_000);
        expect(await store.connections.takeLease(read, "second", LEASE_MS)).toMatchObject({ owner: "second" });
      },
    );

    it("gives none for a row that has changed since it was read", async () => {
      await store.connections.put({ ...read }, NOW);
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
    });
  });

  const tokens = (text: string, refreshToken?: string): RefreshedTokens => ({
    accessToken: Buffer.from(text),
    refreshToken: refreshToken === undefined ? undefined : Buffer.from(refreshToken),
    lateRefreshToken: refreshToken === undefined ? undefined : Buffer.from(`late ${refreshToken}`),
    idToken: undefined,
    scope: undefined,
    obtainedAt: NOW,
    expiresAt: undefined,
  });

  /** One process stands still with the lease, and another one has it when the first goes on. */
  async function takeTwice() {
    const later = NOW + LEASE_MS;
    const slow = (await store.connections.takeLease(read, "slow", LEASE_MS)) as Lease;
    await at.elapse(LEASE_MS);
    await peer.connections.freeLeases("slow");
    const quick = (await peer.connections.takeLease(read, "quick", LEASE_MS)) as Lease;
    return { slow, quick, later };
  }

  describe("commitRefresh()", () => {
    it("knows tokens that it has stored already, as a spool may give them twice", async () => {
      const lease = (await store.connections.takeLease(read, "first", LEASE_MS)) as Lease;
      expect(await store.connections.commitRefresh(lease.connection, tokens("first"), NOW)).toBe("stored");
      expect(await peer.connections.commitRefresh(lease.connection, tokens("first"), NOW)).toBe("stored");
      expect(await peer.connections.commitRefresh(lease.connection, tokens("other"), NOW)).toBe("superseded");
      expect(await store.connections.find(read)).toMatchObject({ version: 2 });
    });

    it("writes nothing for a process that comes late: another one has refreshed the row meanwhile", async () => {
      const { slow, quick, later } = await takeTwice();
      expect(await peer.connections.commitRefresh(quick.connection, tokens("quick"), later)).toBe("stored");
      expect(await store.connections.commitRefresh(slow.connection, tokens("slow"), later)).toBe("superseded");
      const row = await store.connections.find(read);
      expect(Buffer.from(row?.accessToken ?? []).toString()).toBe("quick");
      expect(row?.version).toBe(2);
    });

    it("writes nothing over a connection that was given up meanwhile: its provider may have ended these tokens too", async () => {
      const { slow, quick, later } = await takeTwice();
      await peer.connections.requireReauthorization(quick.connection, "rotation_lost_suspected", later);
      expect(await store.connections.commitRefresh(slow.connection, tokens("slow"), later)).toBe("superseded");
      expect(await store.connections.find(read)).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", version: 2 });
    });

    it("lets a connection that was given up live again, for tokens that were refreshed since", async () => {
      const { quick, later } = await takeTwice();
      await peer.connections.requireReauthorization(quick.connection, "rotation_lost_suspected", later);
      const connection = (await store.connections.find(read)) as Connection;
      expect(await store.connections.commitRefresh(connection, tokens("proved"), later)).toBe("stored");
      const row = await peer.connections.find(read);
      expect(row).toMatchObject({ state: "ACTIVE", stateReason: undefined, version: 3, leaseUntil: undefined });
    });

    it("writes nothing over a connection that was made again and given up since", async () => {
      const { slow, later } = await takeTwice();
      const made = await peer.connections.put({ ...read, id: "made-again" }, later);
      await peer.connections.requireReauthorization(made, "invalid_grant", later);
      expect(await store.connections.commitRefresh(slow.connection, tokens("slow"), later)).toBe("superseded");
      expect(await store.connections.find(read)).toMatchObject({ state: "REAUTHORIZATION_REQUIRED" });
    });

    it("keeps the refresh token of a late answer beside the very row that was first, and no other", async () => {
      const { slow, quick, later } = await takeTwice();
      await peer.connections.commitRefresh(quick.connection, tokens("quick"), later);
      await store.connections.commitRefresh(slow.connection, tokens("slow", "s"), later);
      const second = (await store.connections.find(read)) as Connection;
      const next = (await store.connections.takeLease(second, "next", LEASE_MS)) as Lease;
      expect(next.previousRefreshToken).toEqual(Buffer.from("late s"));
      await store.connections.commitRefresh(next.connection, tokens("next"), later);
      await store.connections.commitRefresh(slow.connection, tokens("slow", "s"), later);
      const third = (await store.connections.find(read)) as Connection;
      expect(await store.connections.takeLease(third, "last", LEASE_MS)).toMatchObject({
        previousRefreshToken: undefined,
      });
    });

    it("leaves a connection that was given up to be refreshed with the token that came too late", async () => {
      const { slow, quick, later } = await takeTwice();
      await peer.connections.requireReauthorization(quick.connection, "rotation_lost_suspected", later);
      const given = (await peer.connections.find(read)) as Connection;
      expect(await peer.connections.takeLease(given, "third", LEASE_MS)).toBeUndefined();
      expect(await store.connections.commitRefresh(slow.connection, tokens("slow", "s"), later)).toBe("superseded");
      await at.elapse(1);
      expect((await peer.connections.findAbandoned("", 10)).map(({ id }) => id)).toEqual([read.id]);
      const third = (await peer.connections.takeLease(given, "third", LEASE_MS)) as Lease;
      expect(third).toMatchObject({ connection: { version: 2 }, previousRefreshToken: Buffer.from("late s") });
      const failure = { errorClass: "no_answer", isUnspent: true, waitMs: 5000, trouble: { since: NOW } };
      await peer.connections.recordFailure(third, failure, later);
      expect(await peer.connections.findAbandoned("", 10)).toEqual([]);
      await at.elapse(5001);
      expect(await peer.connections.findAbandoned("", 10)).toHaveLength(1);
      expect(await peer.connections.commitRefresh(third.connection, tokens("third"), later)).toBe("stored");
      expect(await store.connections.find(read)).toMatchObject({ state: "ACTIVE", version: 3, leaseUntil: undefined });
    });

    it("stores a refresh token that came alone, with everything else as it was, and knows it again", async () => {
      const lease = (await store.connections.takeLease(read, "first", LEASE_MS)) as Lease;
      const alone = { ...tokens("", "alone"), accessToken: undefined };
      expect(await store.connections.commitRefresh(lease.connection, alone, NOW)).toBe("stored");
      expect(await store.connections.commitRefresh(lease.connection, alone, NOW)).toBe("stored");
      const other = { ...tokens("", "other"), accessToken: undefined };
      expect(await store.connections.commitRefresh(lease.connection, other, NOW)).toBe("superseded");
      const { accessToken, expiresAt, obtainedAt } = read;
      expect(await store.connections.find(read)).toMatchObject({
        accessToken,
        expiresAt,
        obtainedAt,
        refreshToken: Buffer.from("alone"),
        unansweredSince: undefined,
        version: 2,
      });
      expect(await peer.connections.takeLease(read, "second", LEASE_MS)).toBeUndefined();
    });

    it("keeps a token that came while another one was refused, and leaves the connection to be refreshed with it", async () => {
      const { slow, quick, later } = await takeTwice();
      await peer.connections.commitRefresh(quick.connection, tokens("quick"), later);
      const second = (await store.connections.find(read)) as Connection;
      const next = (await peer.connections.takeLease(second, "next", LEASE_MS)) as Lease;
      await store.connections.commitRefresh(slow.connection, tokens("slow", "s"), later);
      const end = { owner: "next", tried: next.previousRefreshToken };
      expect(await peer.connections.requireReauthorization(next.connection, "invalid_grant", later, end)).toBe(true);
      await at.elapse(1);
      expect(await peer.connections.findAbandoned("", 10)).toHaveLength(1);
      const given = (await peer.connections.find(read)) as Connection;
      const last = await peer.connections.takeLease(given, "last", LEASE_MS);
      expect(last).toMatchObject({
        connection: { state: "REAUTHORIZATION_REQUIRED" },
        previousRefreshToken: Buffer.from("late s"),
      });
    });

    it("stores an answer over a row of a store that was restored to an earlier version", async () => {
      const later = { ...read, version: 5 };
      expect(await store.connections.commitRefresh(later, tokens("newest"), NOW)).toBe("stored");
      expect(await store.connections.find(read)).toMatchObject({ version: 6 });
    });

    it("says that a connection is gone", async () => {
      const lease = (await store.connections.takeLease(read, "first", LEASE_MS)) as Lease;
      await store.connections.delete(read, NOW);
      expect(await store.connections.commitRefresh(lease.connection, tokens("late", "l"), NOW)).toBe("gone");
    });
  });

  describe("requireReauthorization()", () => {
    it("ends nothing for a process that another one has overtaken, whose answer is on its way", async () => {
      const { slow, quick, later } = await takeTwice();
      const end = (lease: Lease) =>
        store.connections.requireReauthorization(lease.connection, "invalid_grant", later, { owner: lease.owner });
      expect(await end(slow)).toBe(false);
      expect(await end(quick)).toBe(true);
    });

    it("ends the trying of one that was given up, and keeps why it was", async () => {
      const { slow, quick, later } = await takeTwice();
      await peer.connections.requireReauthorization(quick.connection, "rotation_lost_suspected", later);
      await store.connections.commitRefresh(slow.connection, tokens("slow", "s"), later);
      const given = (await peer.connections.find(read)) as Connection;
      await at.elapse(1);
      const third = (await peer.connections.takeLease(given, "third", LEASE_MS)) as Lease;
      const tried = third.previousRefreshToken;
      expect(await peer.connections.requireReauthorization(third.connection, "invalid_grant", later, { tried })).toBe(
        true,
      );
      await at.elapse(LEASE_MS);
      expect(await peer.connections.findAbandoned("", 10)).toEqual([]);
      const row = (await peer.connections.find(read)) as Connection;
      expect(row).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", stateReason: "rotation_lost_suspected" });
      expect(await peer.connections.takeLease(row, "fourth", LEASE_MS)).toBeUndefined();
    });
  });

  describe("findExpired()", () => {
    const connect = async (userId: string, expiresAt: number | undefined, refreshToken?: string) => {
      const key = { ...read, userId };
      const made = connectionForTest(sealer, key, { ...(refreshToken && { refresh_token: refreshToken }) });
      return store.connections.put({ ...made, expiresAt }, NOW);
    };
    const found = async (endedBefore: number, limit = 10) =>
      (await store.connections.findExpired(endedBefore, limit)).map(({ userId }) => userId);

    it("finds what has ended and cannot be refreshed, and nothing else, the oldest first", async () => {
      await connect("second", 2000);
      await connect("first", 1000);
      await connect("last", 3000);
      await connect("refreshable", 1000, "r");
      await connect("unknown", undefined);
      const given = await connect("given up", 1000);
      await store.connections.requireReauthorization(given, "invalid_grant", NOW);
      expect(await found(3000)).toEqual(["first", "second"]);
      expect(await found(3001, 1)).toEqual(["first"]);
      expect(await found(1000)).toEqual([]);
    });

    it("finds nothing twice that was ended over it", async () => {
      const ended = await connect("u2", 1000);
      expect(await store.connections.requireReauthorization(ended, "expired", NOW)).toBe(true);
      expect(await found(2000)).toEqual([]);
      expect(await store.connections.find(ended)).toMatchObject({ stateReason: "expired" });
    });
  });

  describe("findAbandoned()", () => {
    const found = async (afterId: string) => (await store.connections.findAbandoned(afterId, 10)).map(({ id }) => id);

    it("finds a lease that has ended and was not given back, once it has ended", async () => {
      await store.connections.takeLease(read, "gone", LEASE_MS);
      expect(await found("")).toEqual([]);
      await at.elapse(LEASE_MS + 1);
      expect(await found("")).toEqual([read.id]);
      expect(await found(read.id)).toEqual([]);
    });

    it("does not find one that was given back", async () => {
      const lease = (await store.connections.takeLease(read, "here", LEASE_MS)) as Lease;
      await store.connections.releaseLease(lease);
      await at.elapse(LEASE_MS + 1);
      expect(await found("")).toEqual([]);
    });
  });
});
