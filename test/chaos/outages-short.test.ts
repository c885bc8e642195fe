import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { databaseOf } from "./postgres.js";
import { type Refusals, refusalsOfFile, refusalsOfServer } from "./refusals.js";
import type { RelayProcess } from "./relay-process.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World, type WorldOptions } from "./world.js";

const RELAY = fileURLToPath(new URL("../../dist/src/cli/relay.js", import.meta.url));
/** Callers wait no longer, so that one who waits in vain is told soon. */
const SETTINGS = { RELAY_DEADLINE_MS: "1000" };
/** For what comes by itself: looks for owners that are gone are two seconds apart, and two cores are busy. */
const SOON = { timeout: 15_000 };

/** A strict provider, and two relay processes on one store: `owner` is called first. */
interface Bed {
  readonly world: World;
  readonly owner: RelayProcess;
  readonly ownerUrl: string;
  readonly peerUrl: string;
}

/** Started once for the tests of a `describe`, the last of which ends the owner. */
let bed: Bed;
let refusals: Refusals;
const closers: Array<() => Promise<void> | void> = [];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startBed(options: WorldOptions = {}): Promise<void> {
  const world = await startWorld(RELAY, { settings: SETTINGS, ...options });
  closers.push(world.close);
  const owner = world.startRelay();
  const urls = [owner, world.startRelay()].map((relay) => requireListening(world, relay));
  const [ownerUrl = "", peerUrl = ""] = await Promise.all(urls);
  bed = { world, owner, ownerUrl, peerUrl };
}

async function startOnSqlite(): Promise<void> {
  await startBed();
  refusals = refusalsOfFile(bed.world.databaseFile ?? "");
  closers.push(refusals.close);
}

async function startOnPostgres(): Promise<void> {
  const database = await createTestDatabase();
  closers.push(database.remove);
  await startBed({ database: databaseOf(database, database) });
  refusals = await refusalsOfServer(database);
}

/** Resolves when the row has the provider's answer, and callers get the new token. */
async function expectStored(userId: string): Promise<void> {
  const { world, peerUrl } = bed;
  await vi.waitFor(async () => expect(await world.find(userId)).toMatchObject({ version: 2 }), SOON);
  expect(await world.find(userId)).toMatchObject({
    state: "ACTIVE",
    leaseUntil: undefined,
    unansweredSince: undefined,
  });
  await vi.waitFor(async () => expect(await world.call(peerUrl, userId)).toBe("success"), SOON);
  expect(sentFor(userId)).toMatchObject([{ statusCode: 200 }]);
}

const sentFor = (userId: string) => bed.world.tokens.exchanges.filter((exchange) => exchange.userId === userId);

describe.each([
  ["SQLite whose write lock another program has", startOnSqlite, true],
  ["PostgreSQL whose disk is full", startOnPostgres, POSTGRES_URL !== undefined],
])("a provider's answer that is refused by %s", (_what, start, isThere) => {
  beforeAll(() => (isThere ? start() : undefined));

  /** The store refuses once the provider has answered, and takes writes again after the lease has ended. */
  async function refuseUntilLeaseHasEnded(): Promise<string> {
    const { world, owner, ownerUrl } = bed;
    const userId = await world.connect();
    // The other one is refused as well, maybe before the answer has come.
    const known = owner.faults.length;
    let allow: Promise<() => Promise<void>> | undefined;
    world.tokens.play = async () => {
      allow ??= refusals.refuse("UPDATE connections SET lease_until = 1 WHERE lease_until IS NOT NULL");
      await allow;
    };
    void world.call(ownerUrl, userId);
    await vi.waitFor(() => expect(owner.faults.slice(known).join()).toContain('"refresh"'), SOON);
    await owner.stop();
    await (await allow)?.();
    return userId;
  }

  it.skipIf(!isThere)("is left to its owner while that lives, and stored by it when the store takes it", async () => {
    const userId = await refuseUntilLeaseHasEnded();
    const { world, owner, peerUrl } = bed;
    expect(await world.call(peerUrl, userId)).toBe("REFRESH_UNAVAILABLE");
    expect(sentFor(userId)).toHaveLength(1);
    expect(await world.find(userId)).toMatchObject({ version: 1, state: "ACTIVE" });
    owner.kill("SIGCONT");
    await expectStored(userId);
  });

  it.skipIf(!isThere)("is stored by another process when its owner is killed", async () => {
    const userId = await refuseUntilLeaseHasEnded();
    bed.owner.kill("SIGKILL");
    await expectStored(userId);
  });
});

describe("a token endpoint that takes longer than callers wait", () => {
  beforeAll(() => startBed());

  /** Resolves to what lets the provider answer. */
  function holdAnswers(): () => void {
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    bed.world.tokens.play = () => answered;
    return answer;
  }

  it("is listened to when they have left: its answer is stored, and nothing is sent twice", async () => {
    const { world, ownerUrl, peerUrl } = bed;
    const answer = holdAnswers();
    const userId = await world.connect();
    const results = await Promise.all([ownerUrl, peerUrl].map((url) => world.call(url, userId)));
    expect(results).toEqual(["REFRESH_UNAVAILABLE", "REFRESH_UNAVAILABLE"]);
    expect(await world.find(userId)).toMatchObject({ version: 1, state: "ACTIVE" });
    answer();
    await expectStored(userId);
  });

  it("leaves a doubt when the process is stopped before it answers, and a refusal is then told as a suspected loss", async () => {
    const { world, owner, ownerUrl, peerUrl } = bed;
    const answer = holdAnswers();
    const userId = await world.connect();
    expect(await world.call(ownerUrl, userId)).toBe("REFRESH_UNAVAILABLE");
    owner.kill("SIGTERM");
    expect(await owner.exited).toEqual({ code: 0, signal: null });
    expect(await world.find(userId)).toMatchObject({
      state: "ACTIVE",
      leaseUntil: undefined,
      failCount: 1,
      unansweredSince: expect.any(Number),
    });
    answer();
    const called = () => world.call(peerUrl, userId);
    await vi.waitFor(async () => expect(await called()).toBe("REAUTHORIZATION_REQUIRED"), SOON);
    expect(await world.find(userId)).toMatchObject({ stateReason: "rotation_lost_suspected" });
  });
});
