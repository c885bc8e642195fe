import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { withRefresher } from "../../src/cli/connection-key.js";
import { parseConfig } from "../../src/config/config.js";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import type { Peers } from "../../src/oauth/peers.js";
import { openPostgresStore, type PostgresStore } from "../../src/store/postgres.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

/** As long as an owner must be missing in each look, and a little more. */
const MISSING_MS = 10_001;

const LIMITS = { maxConnections: 2, timeoutMs: 5000 };

/** A process on a machine of its own: nobody's spool is known to it. */
interface Machine {
  readonly owner: string;
  readonly store: PostgresStore;
  readonly peers: Peers;
}

let database: TestDatabase;
const machines: Machine[] = [];

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  if (POSTGRES_URL !== undefined) database = await createTestDatabase();
});
afterEach(async () => {
  vi.useRealTimers();
  for (const { store } of machines.splice(0)) await store.close();
  await database?.remove();
});

async function startMachine(knows: (owner: string) => boolean = () => false): Promise<Machine> {
  const location = parseDatabaseLocation(database.url) as PostgresLocation;
  const store = await openPostgresStore(location, LIMITS);
  const owner = randomBytes(8).toString("hex");
  const machine = { owner, store, peers: store.announce?.({ owner, knows }) as Peers };
  machines.push(machine);
  await goneFor(machine);
  return machine;
}

/** Owners that are settled in a look. */
async function goneFor({ peers }: Machine): Promise<string[]> {
  const gone: string[] = [];
  await peers.settleGone({
    store: () => expect.fail("nothing is kept here"),
    free: async (owner) => void gone.push(owner),
  });
  return gone;
}

/** What a look tells after one that is long past. */
async function longGoneFor(machine: Machine): Promise<string[]> {
  expect(await goneFor(machine)).toEqual([]);
  vi.advanceTimersByTime(MISSING_MS);
  return goneFor(machine);
}

async function takeLease({ store, owner }: Pick<Machine, "store" | "owner">): Promise<void> {
  const application = applicationForTest(sealerForTest());
  await store.applications.create(application);
  const key = { applicationId: application.id, userId: "u", providerName: "github" };
  const row = await store.connections.put(connectionForTest(sealerForTest(), key, { refresh_token: "r" }), NOW);
  expect(await store.connections.takeLease(row, owner, 60_000)).toBeDefined();
}

const key = (owner: string) => String(BigInt.asIntN(64, BigInt(`0x${owner}`)));

/** The session that holds an owner's lock, as `pg_locks` shows it. */
async function sessionOf({ owner }: Pick<Machine, "owner">): Promise<number | undefined> {
  const [row] = await database.query<{ pid: number }>(
    `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
       AND (classid::bigint << 32 | objid::bigint) = $1::bigint`,
    [key(owner)],
  );
  return row?.pid;
}

/** The server ends the session, and has ended it. */
async function endSession(machine: Machine): Promise<void> {
  await database.query("SELECT pg_terminate_backend($1, 10000)", [await sessionOf(machine)]);
  expect(await sessionOf(machine)).toBeUndefined();
}

describe.skipIf(POSTGRES_URL === undefined)("the presence of a process in PostgreSQL", () => {
  it("lasts as long as its session, however long its lease is, and its end is seen after ten seconds", async () => {
    const [owner, other] = [await startMachine(), await startMachine()];
    await takeLease(owner);
    expect(await longGoneFor(other)).toEqual([]);
    await endSession(owner);
    expect(await longGoneFor(other)).toEqual([owner.owner]);
  });

  it("begins before a command that refreshes may take a lease, though the command looks for nobody", async () => {
    const other = await startMachine();
    const folder = mkdtempSync(join(tmpdir(), "relay-presence-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const parsed = parseConfig({ RELAY_DATABASE: database.url, RELAY_SPOOL: folder }, []);
    if (!("config" in parsed)) return expect.fail(String(parsed.problems));
    const store = await openPostgresStore(parseDatabaseLocation(database.url) as PostgresLocation, LIMITS);
    onTestFinished(() => store.close());
    await withRefresher({ ...parsed, store, sealer: sealerForTest() }, async () => {
      const owner =
        readdirSync(folder)
          .find((name) => name.endsWith(".spool"))
          ?.slice(0, -".spool".length) ?? "";
      await takeLease({ store, owner });
      expect(await sessionOf({ owner })).toEqual(expect.any(Number));
      expect(await longGoneFor(other)).toEqual([]);
    });
  });

  it("begins anew when its session was ended and it lives: it takes its lock again at its next look", async () => {
    const [owner, other] = [await startMachine(), await startMachine()];
    await takeLease(owner);
    await endSession(owner);
    expect(await goneFor(other)).toEqual([]);
    // The look that finds the session ended fails; the next one opens another.
    await expect(goneFor(owner)).rejects.toMatchObject({ name: "PostgresError" });
    await goneFor(owner);
    expect(await sessionOf(owner)).toEqual(expect.any(Number));
    vi.advanceTimersByTime(MISSING_MS);
    expect(await longGoneFor(other)).toEqual([]);
  });

  it("counts as missing anew after each time it was seen", async () => {
    const [owner, other] = [await startMachine(), await startMachine()];
    await takeLease(owner);
    await endSession(owner);
    expect(await goneFor(other)).toEqual([]);
    await goneFor(owner).catch(() => {});
    await goneFor(owner);
    expect(await goneFor(other)).toEqual([]);
    await endSession(owner);
    vi.advanceTimersByTime(MISSING_MS);
    expect(await longGoneFor(other)).toEqual([owner.owner]);
  });

  it("is told by its spool where that is on the same machine", async () => {
    const owner = await startMachine();
    const sibling = await startMachine((each) => each === owner.owner);
    await takeLease(owner);
    await endSession(owner);
    expect(await longGoneFor(sibling)).toEqual([]);
  });

  it("is not missed by one whose own lock is not seen", async () => {
    const [owner, other] = [await startMachine(), await startMachine()];
    await takeLease(owner);
    await endSession(owner);
    expect(await goneFor(other)).toEqual([]);
    await endSession(other);
    vi.advanceTimersByTime(MISSING_MS);
    await expect(goneFor(other)).rejects.toMatchObject({ name: "PostgresError" });
    expect(await longGoneFor(other)).toEqual([owner.owner]);
  });

  it("stays when what a process left cannot be settled now, and that is settled at the next look", async () => {
    const [owner, other] = [await startMachine(), await startMachine()];
    await takeLease(owner);
    await endSession(owner);
    expect(await goneFor(other)).toEqual([]);
    vi.advanceTimersByTime(MISSING_MS);
    const session = await sessionOf(other);
    const refused = new Error("the store refuses");
    await expect(other.peers.settleGone({ store: async () => {}, free: () => Promise.reject(refused) })).rejects.toBe(
      refused,
    );
    expect(await goneFor(other)).toEqual([owner.owner]);
    expect(await sessionOf(other)).toBe(session);
  });
});
