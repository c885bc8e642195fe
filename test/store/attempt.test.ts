import type { ChildProcess } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { createSqliteDatabase } from "../../src/store/sqlite-driver.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import {
  applicationForTest,
  createStoreFolder,
  exitOf,
  lineOf,
  NOW,
  type StoreFolder,
  startChild,
} from "./store-for-test.js";

const sealer = sealerForTest();
const application = applicationForTest(sealer);

/** Holds the write lock until its standard input ends. */
const HOLD_LOCK = `
  import Database from "better-sqlite3";
  const db = new Database(process.argv[1]);
  db.exec("BEGIN IMMEDIATE; UPDATE applications SET name = 'theirs'");
  process.stdout.write("locked \\n");
  process.stdin.resume().on("end", () => { db.exec("COMMIT"); db.close(); process.stdout.write("released \\n"); });`;

let at: StoreFolder;
let store: SqliteStore;
let child: ChildProcess | undefined;
beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
  await store.applications.create(application);
});
afterEach(async () => {
  if (child !== undefined) {
    child.kill("SIGKILL");
    await exitOf(child);
    child = undefined;
  }
  at.remove();
});

async function lock(): Promise<ChildProcess> {
  child = startChild({ text: HOLD_LOCK }, at.path);
  await lineOf(child, "locked ");
  return child;
}

/** The longest time, in milliseconds, that the event loop could not run a timer while `work` was under way. */
async function longestStall<T>(work: Promise<T>): Promise<number> {
  let last = performance.now();
  let longest = 0;
  const tick = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(tick, 1);
  await work.catch(() => undefined);
  tick();
  clearInterval(timer);
  return longest;
}

describe("a store whose lock another process holds", () => {
  it("answers STORE_UNAVAILABLE, and blocks for no more than the busy timeout at a time", async () => {
    await lock();
    const startedAt = performance.now();
    const write = store.applications.update(application.publicKey, { name: "ours" }, NOW);
    const [stall, error] = await Promise.all([longestStall(write), write.catch((e) => e)]);
    expect(error).toMatchObject({
      reason: "STORE_UNAVAILABLE",
      message: expect.stringContaining("locked by another process"),
    });
    expect(error.cause.code).toBe("SQLITE_BUSY");
    expect(stall).toBeLessThan(600);
    expect(performance.now() - startedAt).toBeLessThan(2000);
  });

  it("still reads and is still ready, while a write waits", async () => {
    await lock();
    let hasFailed = false;
    const write = store.applications.update(application.publicKey, { name: "ours" }, NOW).catch(() => {
      hasFailed = true;
    });
    expect((await store.applications.findByPublicKey(application.publicKey))?.name).toBe("Test");
    await store.ready();
    expect(hasFailed).toBe(false);
    await write;
    expect(hasFailed).toBe(true);
  });

  it("writes when the lock becomes free between two tries", async () => {
    const holder = await lock();
    setTimeout(() => holder.stdin?.end(), 300);
    const updated = await store.applications.update(application.publicKey, { name: "ours" }, NOW);
    expect(updated?.name).toBe("ours");
  });

  it("writes again after the holder was killed, whose change is gone", async () => {
    const holder = await lock();
    holder.kill("SIGKILL");
    await exitOf(holder);
    const updated = await store.applications.update(application.publicKey, { state: "DISABLED" }, NOW);
    expect(updated).toMatchObject({ name: "Test", state: "DISABLED" });
  });
});

describe("write()", () => {
  it("has the write lock before it reads: nobody can write in between", async () => {
    const [ours, theirs] = [at.raw(), at.raw()];
    theirs.pragma("busy_timeout = 0");
    await createSqliteDatabase(ours).write(function* () {
      ours.prepare("SELECT * FROM applications").all();
      expect(() => theirs.exec("UPDATE applications SET name = 'theirs'")).toThrow("database is locked");
      ours.exec("UPDATE applications SET name = 'ours'");
    });
    expect(ours.prepare("SELECT name FROM applications").pluck().all()).toEqual(["ours"]);
  });

  it("takes everything back when it fails", async () => {
    const ours = at.raw();
    // biome-ignore lint/correctness/useYield: its statements are not the store's
    const half = function* () {
      ours.exec("UPDATE applications SET name = 'half'");
      throw new Error("a fault");
    };
    await expect(createSqliteDatabase(ours).write(half)).rejects.toThrow("a fault");
    expect((await store.applications.findByPublicKey(application.publicKey))?.name).toBe("Test");
  });
});

describe("a closed store", () => {
  it("answers STORE_UNAVAILABLE to everything, and closes twice", async () => {
    store.close();
    store.close();
    const key = { applicationId: application.id, userId: "u", providerName: "github" };
    const calls = [
      () => store.ready(),
      () => store.applications.findByPublicKey("x"),
      () => store.applications.create(applicationForTest(sealer)),
      () => store.applications.delete(application.publicKey),
      () => store.connections.find(key),
      () => store.connections.delete(key, 1),
      () => store.keyChecks.list(),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  });
});

describe("a damaged store", () => {
  it("answers STORE_UNAVAILABLE for the damaged part", async () => {
    store.close();
    const raw = at.raw();
    raw.pragma("journal_mode = DELETE");
    raw.unsafeMode();
    raw.pragma("writable_schema = ON");
    raw.exec(
      "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'applications') WHERE name = 'sqlite_autoindex_applications_2'",
    );
    raw.close();
    const damaged = at.open();
    const error = await damaged.applications.findByPublicKey("x").catch((e) => e);
    expect(error).toMatchObject({ reason: "STORE_UNAVAILABLE", message: expect.stringContaining("damaged") });
  });
});
