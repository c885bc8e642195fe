import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRowCaches, type RowCache, type RowCaches } from "../../src/store/row-cache.js";
import { createStoreFolder, type StoreFolder } from "./store-for-test.js";

let at: StoreFolder;
let db: Database.Database;
let caches: RowCaches;
let cache: RowCache<{ readonly read: number }>;
let reads: number;
beforeEach(() => {
  at = createStoreFolder();
  at.open();
  db = at.raw();
  caches = createRowCaches(db);
  cache = caches.create(2);
  reads = 0;
});
afterEach(() => at.remove());

const find = (key: string) => cache.find(key, () => ({ read: ++reads }));
const change = () =>
  at.change((other) => void other.exec("CREATE TABLE IF NOT EXISTS t (c); INSERT INTO t VALUES (1)"));

describe("createRowCaches()", () => {
  it("gives the very row again while nothing changes", async () => {
    const row = find("a");
    await nextTurn();
    expect(find("a")).toBe(row);
  });

  it("keeps no row that is not there", () => {
    expect(cache.find("a", () => undefined)).toBeUndefined();
    expect(find("a")).toEqual({ read: 1 });
  });

  it("reads again in the turn after another process has written", async () => {
    find("a");
    change();
    await nextTurn();
    expect(find("a")).toEqual({ read: 2 });
  });

  it("reads again at once what this process has changed, and only that", () => {
    const [a, b] = [find("a"), find("b")];
    cache.forget("a");
    expect([find("b"), find("a")]).toEqual([b, { read: 3 }]);
    caches.forgetAll();
    expect([find("a"), find("b")]).toEqual([{ read: 4 }, { read: 5 }]);
    expect(a).toEqual({ read: 1 });
  });

  it("keeps no more rows than it may, and lets the oldest go", () => {
    for (const key of ["a", "b", "c"]) find(key);
    expect([find("c"), find("b"), find("a")]).toEqual([{ read: 3 }, { read: 2 }, { read: 4 }]);
  });

  it("gives nothing out of a database that is closed, not even in the same turn", () => {
    find("a");
    db.close();
    expect(() => find("a")).toThrow("not open");
  });
});
