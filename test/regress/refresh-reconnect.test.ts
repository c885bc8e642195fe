import { afterAll, beforeAll, expect, it } from "vitest";
import type { Connection, Lease } from "../../src/oauth/connection.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
});

afterAll(() => harness.close());

const keyOf = (userId: string) => ({ applicationId: application.id, userId, providerName: "sandbox" });

/** Connects a user, again if it is connected already, and reads the row. */
async function connected(userId: string, refreshToken: string): Promise<Connection> {
  await harness.connect(application, userId, { refreshToken });
  return present(await harness.store.connections.find(keyOf(userId)));
}

async function leased(row: Connection, owner: string, leaseMs: number): Promise<Lease> {
  return present(await harness.store.connections.takeLease(row, owner, leaseMs));
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("expected a value");
  return value;
}

it("a refresh of the old account leaves nothing in the connection that the user made meanwhile", async () => {
  const { connections } = harness.store;
  const lease = await leased(await connected("reconnects", "old"), "owner", 60_000);
  await connected("reconnects", "new");
  const late = { ...lease.connection, refreshToken: new Uint8Array([1]), lateRefreshToken: new Uint8Array([2]) };
  expect(await connections.commitRefresh(lease.connection, late, 1000)).toBe("superseded");
  await connections.extendLease(lease, 60_000);
  const failure = {
    errorClass: "failed",
    isUnspent: true,
    waitMs: 9000,
    trouble: { since: 1000 },
  };
  await connections.recordFailure(lease, failure, 1000);
  const made = present(await connections.find(keyOf("reconnects")));
  expect(made).toMatchObject({ version: 2, failCount: 0, leaseUntil: undefined });
  expect(await leased(made, "next", 60_000)).toMatchObject({
    previousRefreshToken: undefined,
    connection: { unansweredSince: undefined },
  });
});

it("an owner keeps its lease for as long as it extends it, and nobody else's", async () => {
  const { connections } = harness.store;
  const row = await connected("extends", "r");
  const lease = await leased(row, "first", 0);
  await connections.extendLease(lease, 60_000);
  expect(await connections.takeLease(row, "second", 60_000)).toBeUndefined();
  expect(await connections.extendLease(lease, 60_000)).toBe(true);
  await connections.freeLeases("first");
  expect(await leased(row, "second", 60_000)).toMatchObject({
    connection: { unansweredSince: expect.any(Number) },
  });
  expect(await connections.extendLease(lease, 999_000)).toBe(false);
  const { leaseUntil = 0 } = present(await connections.find(keyOf("extends")));
  expect(leaseUntil).toBeLessThan(Date.now() + 100_000);
});

it("a late answer never overwrites the newer one of another process", async () => {
  const { connections } = harness.store;
  const row = await connected("late", "r");
  const late = await leased(row, "late", 60_000);
  await connections.freeLeases("late");
  const next = await leased(row, "next", 60_000);
  const tokens = (mark: number) => ({
    accessToken: Buffer.from([mark]),
    refreshToken: undefined,
    lateRefreshToken: undefined,
    idToken: undefined,
    scope: undefined,
    obtainedAt: 2000,
    expiresAt: undefined,
  });
  expect(await connections.commitRefresh(next.connection, tokens(1), 3000)).toBe("stored");
  expect(await connections.commitRefresh(late.connection, tokens(2), 4000)).toBe("superseded");
  expect(await connections.find(keyOf("late"))).toMatchObject({ accessToken: Buffer.from([1]), version: 2 });
});
