import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { openPostgresStore } from "../../src/store/postgres.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();

afterEach(() => void vi.useRealTimers());

/** A store with one application and some users, whose reads the test hears of. */
async function setUp() {
  const database = await createTestDatabase();
  let onRead = (): void => {};
  const reads: string[] = [];
  const store = await openPostgresStore(
    parseDatabaseLocation(database.url) as PostgresLocation,
    { maxConnections: 2, timeoutMs: 5000 },
    {
      onOperation: (operation) => {
        reads.push(operation);
        onRead();
      },
    },
  );
  onTestFinished(async () => {
    await store.close();
    await database.remove();
  });
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const keys = ["a\0", "b", "c"].map((userId) => ({ applicationId: application.id, userId, providerName: "github" }));
  for (const key of keys) await store.connections.put(connectionForTest(sealer, key, { scope: "old" }), NOW);
  const find = () =>
    Promise.all([
      store.lookups.applications.findByPublicKey(application.publicKey),
      ...keys.map((key) => store.lookups.connections.find(key)),
    ]);
  const readsAgain = (count: number) =>
    new Promise<void>((resolve) => {
      reads.length = 0;
      onRead = () => void (reads.length === count && resolve());
    });
  return { database, store, keys, find, reads, readsAgain };
}

describe.skipIf(POSTGRES_URL === undefined)("look-ups in PostgreSQL", () => {
  it("read connections that are asked for at the same time in one statement, each for whoever asked", async () => {
    const { store, keys, reads } = await setUp();
    reads.length = 0;
    const strangers = keys.map((key) => ({ ...key, userId: `${key.userId}!` }));
    const asked = keys.flatMap((key, at) => [strangers[at] ?? key, key]);
    const found = await Promise.all(asked.map((key) => store.lookups.connections.find(key)));
    expect(found.map((connection) => connection?.userId)).toEqual([undefined, "a\0", undefined, "b", undefined, "c"]);
    expect(reads).toEqual(["read"]);
  });

  it("are read again before they are too old, of each kind all at once, and tell what others changed", async () => {
    const { database, find, reads, readsAgain } = await setUp();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    await find();
    const before = await find();
    await database.query("UPDATE applications SET name = 'new'");
    await database.query("UPDATE connections SET scope = 'new' WHERE user_id = 'b'");
    await database.query("DELETE FROM connections WHERE user_id = 'c'");
    const both = readsAgain(2);
    await vi.advanceTimersByTimeAsync(800);
    await both;
    await nextTurn();
    const after = await find();
    expect(after).toMatchObject([{ name: "new" }, before[1], { scope: "new" }, undefined]);
    expect(after[1]).toBe(before[1]);
    // The third is the caller's own, of what is gone.
    expect(reads).toEqual(["read", "read", "read"]);
  });
});
