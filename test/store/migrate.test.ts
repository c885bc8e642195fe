import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CALLS_MIGRATIONS } from "../../src/store/calls-file.js";
import { assertKnownVersion, migrate, openDatabase } from "../../src/store/open-database.js";
import { inspectStore } from "../../src/store/open-store.js";
import { digestOf, POSTGRES_MIGRATIONS, SQLITE_MIGRATIONS } from "../../src/store/schema.js";
import {
  createStoreFolder,
  expectOldRows,
  oldApplicationSql,
  oldConnectionSql,
  type StoreFolder,
} from "./store-for-test.js";

let at: StoreFolder;
beforeEach(() => {
  at = createStoreFolder();
});
afterEach(() => at.remove());

const schemaOf = (db: Database.Database) => db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
const versionOf = (db: Database.Database) => db.pragma("user_version", { simple: true });

/** In order. A migration that was written stays as it is: add another one behind it, and a digest here. */
const DIGESTS: Readonly<Record<string, readonly string[]>> = {
  SQLite: ["d5249d7e7872f404", "2f2cdc7d6320d368"],
  "SQLite's file of calls": ["01e9711ef1443bd0", "ab22dbca76d3e5f2"],
  PostgreSQL: ["f8febd899a4ea903", "72ad31a9895b6698"],
};

describe("migrations", () => {
  it.each([
    ["SQLite", SQLITE_MIGRATIONS],
    ["SQLite's file of calls", CALLS_MIGRATIONS],
    ["PostgreSQL", POSTGRES_MIGRATIONS],
  ])("of %s are those that databases were made with: change none, add one", (database, migrations) => {
    expect(migrations.map((each) => digestOf([each]).slice(0, 16))).toEqual(DIGESTS[database]);
  });
});

describe("migrate()", () => {
  it("refuses a newer database and leaves its bytes alone", () => {
    openDatabase(at.path).close();
    const raw = new Database(at.path);
    raw.pragma("user_version = 99");
    raw.pragma("journal_mode = DELETE");
    raw.close();
    const before = at.files();
    expect(() => at.open()).toThrow(
      /has schema version 99, but this relay knows only versions up to \d+; run the newer relay, or restore an older/,
    );
    expect(at.files()).toEqual(before);
  });

  it.each([
    ["lacks a column", "ALTER TABLE connections DROP COLUMN trouble"],
    ["has a column of another build", "ALTER TABLE connections ADD COLUMN theirs TEXT"],
    ["lacks a table", "DROP TABLE call_captures"],
    ["lacks an index", "DROP INDEX connections_by_user"],
    ["lacks a trigger", "DROP TRIGGER audit_records_stay"],
  ])("refuses a database of its version that %s, and leaves it alone", async (_what, sql) => {
    openDatabase(at.path).close();
    at.change((db) => {
      db.pragma("journal_mode = DELETE");
      db.exec(sql);
    });
    const before = at.files();
    expect(() => at.open()).toThrow(
      /has a schema that is not version 2 of this relay: .*; run the relay that created it/,
    );
    const config = {
      database: { kind: "sqlite", path: at.path },
      databaseConnections: 1,
      databaseTimeoutMs: 1,
    } as const;
    await expect(inspectStore(config, undefined)).rejects.toThrow("has a schema that is not version 2");
    expect(at.files()).toEqual(before);
  });

  it("takes a database with tables of others, a table that had another name, and comments that were written anew", () => {
    openDatabase(at.path).close();
    at.change((db) => {
      db.exec("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)");
      db.exec("ALTER TABLE applications RENAME TO away; ALTER TABLE away RENAME TO applications");
      db.unsafeMode();
      db.pragma("writable_schema = ON");
      db.exec("UPDATE sqlite_schema SET sql = replace(sql, '-- ', '-- Once: ') WHERE name = 'connections'");
    });
    expect(() => at.open()).not.toThrow();
  });

  it("brings a database of the first version to this one, with what is in it", async () => {
    at.change((db) => {
      migrate(db, at.path, SQLITE_MIGRATIONS.slice(0, 1));
      db.exec(`${oldApplicationSql("x'00'")}; ${oldConnectionSql("x'6f6c64'")}`);
    });
    const store = at.open();
    await expectOldRows(store);
  });

  it("refuses a version below zero", () => {
    const raw = at.raw();
    raw.pragma("user_version = -1");
    expect(() => assertKnownVersion(raw, at.path)).toThrow("has schema version -1");
  });

  it("brings an empty file to the newest version, and does nothing the second time", () => {
    const raw = at.raw();
    migrate(raw, at.path);
    const schema = schemaOf(raw);
    migrate(raw, at.path);
    expect(schemaOf(raw)).toEqual(schema);
    expect([versionOf(raw), schema.length]).toEqual([SQLITE_MIGRATIONS.length, expect.any(Number)]);
    raw.close();
    at.open().close();
    expect(schemaOf(at.raw())).toEqual(schema);
  });

  it("brings a database of each older version to the newest, with what is in it", () => {
    for (let version = 1; version < SQLITE_MIGRATIONS.length; version++) {
      const older = createStoreFolder();
      const raw = older.raw();
      migrate(raw, older.path, SQLITE_MIGRATIONS.slice(0, version));
      raw.exec("INSERT INTO key_checks VALUES ('k', x'00', 1)");
      raw.close();
      const db = openDatabase(older.path);
      expect([versionOf(db), db.prepare("SELECT key_id FROM key_checks").pluck().get()]).toEqual([
        SQLITE_MIGRATIONS.length,
        "k",
      ]);
      db.close();
      older.remove();
    }
  });

  it("applies only what is missing, all or nothing", () => {
    const raw = at.raw();
    const steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE TABLE c (x); SELECT no_such_function()"];
    migrate(raw, at.path, steps.slice(0, 1));
    expect(() => migrate(raw, at.path, steps)).toThrow("no_such_function");
    expect([versionOf(raw), schemaOf(raw)]).toEqual([1, [{ name: "a", sql: "CREATE TABLE a (x)" }]]);
    migrate(raw, at.path, steps.slice(0, 2));
    expect([versionOf(raw), schemaOf(raw)]).toEqual([2, expect.objectContaining({ length: 2 })]);
  });

  it("has an index for the origin of a preflight, which names no application", () => {
    const raw = at.raw();
    migrate(raw, at.path);
    const plan = raw.prepare(`EXPLAIN QUERY PLAN SELECT 1 FROM application_origins JOIN applications
      ON applications.id = application_id WHERE origin = ? AND state = 'ACTIVE' LIMIT 1`);
    expect(JSON.stringify(plan.all("https://a.example"))).not.toContain("SCAN");
  });

  it("keeps sealed values out of indexes and CHECKs, whose text SQLite quotes in errors", () => {
    const raw = at.raw();
    migrate(raw, at.path);
    const columns = raw
      .prepare(
        "SELECT i.name FROM sqlite_schema s, pragma_index_list(s.name) l, pragma_index_info(l.name) i WHERE s.type = 'table'",
      )
      .pluck()
      .all() as string[];
    const checks = (schemaOf(raw) as { sql: string | null }[]).flatMap(
      ({ sql }) => sql?.match(/CHECK \([^)]*\)/g) ?? [],
    );
    expect(columns).toContain("user_id");
    expect([...columns, ...checks].filter((text) => /token|hash|sealed/.test(text))).toEqual([]);
    const strict = raw.prepare(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite%'",
    );
    expect(strict.all()).toEqual([]);
  });
});
