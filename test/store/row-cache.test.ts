import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { createStatement, first, run } from "../../src/store/database.js";
import { createRowCaches, createSqliteDatabase } from "../../src/store/sqlite-driver.js";
import { createStoreFolder, type StoreFolder } from "./store-for-test.js";

let at: StoreFolder;
let db: Database.Database;
let caches: ReturnType<typeof createRowCaches>;
let cache: ReturnType<typeof createCache>;
let reads: number;
beforeEach(() => {
  at = createStoreFolder();
  at.open();
  db = at.raw();
  caches = createRowCaches(db);
  cache = createCache();
  reads = 0;
});
afterEach(() => at.remove());

const createCache = () => caches.create<{ readonly read: number }>(2);
const find = (key: string) => cache.find(key, () => ({ read: ++reads }));
/** Asked for often enough to be kept. */
const keep = (key: string) => [find(key), find(key)][1];
const change = () =>
  at.change((other) => void other.exec("CREATE TABLE IF NOT EXISTS t (c); INSERT INTO t VALUES (1)"));

describe("createRowCaches()", () => {
  it("gives the very row again while nothing changes", async () => {
    const row = keep("a");
    await nextTurn();
    expect(find("a")).toBe(row);
  });

  it("keeps no row that was asked for once", () => {
    expect([find("a"), find("a"), find("a")]).toEqual([{ read: 1 }, { read: 2 }, { read: 2 }]);
  });

  it("keeps what is asked for again when many others are asked for once", () => {
    const row = keep("a");
    for (let other = 0; other < 10; other += 1) find(`${other}`);
    expect(find("a")).toBe(row);
    find("0");
    expect(find("0")).toEqual({ read: reads });
  });

  it("keeps no row that is not there", () => {
    for (let times = 0; times < 3; times += 1) expect(cache.find("a", () => undefined)).toBeUndefined();
    expect([keep("a"), find("a")]).toEqual([{ read: 2 }, { read: 2 }]);
  });

  it("reads again in the turn after another process has written, and keeps what it kept before", async () => {
    keep("a");
    change();
    await nextTurn();
    expect([find("a"), find("a")]).toEqual([{ read: 3 }, { read: 3 }]);
  });

  it("reads again at once what this process has changed, and only that", () => {
    const [a, b] = [keep("a"), keep("b")];
    cache.forget("a");
    expect([find("b"), find("a")]).toEqual([b, { read: 5 }]);
    caches.forgetAll();
    expect([find("a"), find("b")]).toEqual([{ read: 6 }, { read: 7 }]);
    expect(a).toEqual({ read: 2 });
  });

  it("keeps no more rows than it may, and lets the oldest go", () => {
    for (const key of ["a", "b", "c"]) keep(key);
    expect([find("c"), find("b"), find("a")]).toEqual([{ read: 6 }, { read: 4 }, { read: 7 }]);
  });

  it("reads all rows of one turn from one moment of the file, and the next ones from another", async () => {
    const tables = db.prepare<[], number>("SELECT count(*) FROM sqlite_schema").pluck();
    const count = (key: string) => cache.find(key, () => ({ read: tables.get() ?? 0 }))?.read ?? 0;
    const before = count("a");
    change();
    expect(count("b")).toBe(before);
    await nextTurn();
    expect(count("c")).toBe(before + 1);
    caches.endTurn();
    at.change((other) => void other.exec("CREATE TABLE more (c)"));
    expect(count("d")).toBe(before + 2);
  });

  it("lets a write be seen by others when it resolves, also in a turn in which rows were read", async () => {
    const database = createSqliteDatabase(db);
    const read = createStatement<object, { place: number }>("SELECT rowid AS place FROM store_identity");
    const rows = database.createCache<string, { id: string }>({
      maxRows: 2,
      textOf: (key) => key,
      *find() {
        return { id: String((yield* first(read, {}))?.place) };
      },
      findByIds() {
        throw new Error("for PostgreSQL alone");
      },
    });
    expect(await rows.lookUp("a")).toEqual({ id: "1" });
    expect(db.inTransaction).toBe(true);
    await database.write(() => run(createStatement("UPDATE store_identity SET rowid = 7"), {}));
    expect(at.raw().prepare("SELECT rowid FROM store_identity").pluck().get()).toBe(7);
    expect(await rows.lookUp("b")).toEqual({ id: "7" });
  });

  it("ends the reading of a damaged file without another error, at the end of the turn and before a write", async () => {
    const file = join(dirname(at.path), "damaged.db");
    const made = new Database(file);
    made.exec("CREATE TABLE t (c); INSERT INTO t VALUES (zeroblob(9000))");
    made.close();
    const damaged = new Database(file);
    onTestFinished(() => void damaged.close());
    const read = damaged.prepare<[], { read: number }>("SELECT length(c) AS read FROM t");
    const { endTurn, create } = createRowCaches(damaged);
    const rows = create<{ readonly read: number }>(2);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xff, 4096));
    for (const end of [endTurn, nextTurn]) {
      expect(() => rows.find("a", () => read.get())).toThrow("malformed");
      await end();
      expect(damaged.inTransaction).toBe(false);
    }
  });

  it("gives nothing out of a database that is closed, not even in the same turn", () => {
    keep("a");
    db.close();
    expect(() => find("a")).toThrow("not open");
  });
});
