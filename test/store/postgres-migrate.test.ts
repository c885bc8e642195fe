import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import {
  hasPostgresStore,
  inspectPostgresStore,
  migratePostgres,
  openPostgresStore,
} from "../../src/store/postgres.js";
import { createPool } from "../../src/store/postgres-pool.js";
import { createSession, type Session } from "../../src/store/postgres-session.js";
import { POSTGRES_MIGRATIONS } from "../../src/store/schema.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";
import { expectOldRows, oldApplicationSql, oldConnectionSql } from "./store-for-test.js";

const LIMITS = { maxConnections: 2, timeoutMs: 5000 };
let database: TestDatabase;
let location: PostgresLocation;
beforeEach(async () => {
  if (POSTGRES_URL === undefined) return;
  database = await createTestDatabase();
  location = parseDatabaseLocation(database.url) as PostgresLocation;
});
afterEach(async () => {
  await database?.remove();
});

async function withSession<T>(work: (session: Session) => Promise<T>): Promise<T> {
  const pool = createPool(location, LIMITS);
  try {
    return await work(createSession(pool));
  } finally {
    await pool.end();
  }
}

const tables = async () =>
  (
    await database.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1",
    )
  ).map(({ name }) => name);

const columns = (sql: string) => database.query<{ name: string; type: string; text: string }>(sql);

describe.skipIf(POSTGRES_URL === undefined)("migratePostgres()", () => {
  it("brings an empty database to the newest version once, however many begin at the same moment", async () => {
    const stores = await Promise.all(Array.from({ length: 5 }, () => openPostgresStore(location, LIMITS)));
    for (const store of stores) {
      await store.ready();
      await store.close();
    }
    expect(await database.query("SELECT id, version FROM relay_schema")).toEqual([{ id: "1", version: "2" }]);
  });

  it("applies only what is missing, all or nothing", async () => {
    const steps = [
      "CREATE TABLE a (x BIGINT)",
      "CREATE TABLE b (x BIGINT)",
      "CREATE TABLE c (x BIGINT); SELECT nothing()",
    ];
    const run = (count: number) => withSession((session) => migratePostgres(session, "test", steps.slice(0, count)));
    expect(await run(1)).toEqual({ from: 0, to: 1 });
    await expect(run(3)).rejects.toMatchObject({ code: "42883" });
    expect(await tables()).toEqual(["a", "relay_schema"]);
    expect(await run(2)).toEqual({ from: 1, to: 2 });
    expect(await run(2)).toEqual({ from: 2, to: 2 });
    expect(await tables()).toEqual(["a", "b", "relay_schema"]);
  });

  it("brings a database of the first version to this one, with what is in it", async () => {
    await withSession((session) => migratePostgres(session, "test", POSTGRES_MIGRATIONS.slice(0, 1)));
    await database.query(oldApplicationSql("'0'"));
    await database.query(oldConnectionSql("'old'"));
    const store = await openPostgresStore(location, LIMITS);
    await expectOldRows(store);
    await store.close();
  });

  it("refuses a newer database and leaves it alone", async () => {
    await (await openPostgresStore(location, LIMITS)).close();
    await database.query("UPDATE relay_schema SET version = 99");
    await expect(openPostgresStore(location, LIMITS)).rejects.toThrow(
      /has schema version 99, but this relay knows only versions up to \d+; run the newer relay, or restore an older/,
    );
    expect(await database.query("SELECT version FROM relay_schema")).toEqual([{ version: "99" }]);
  });

  it("refuses a database of another build whose version it has itself, and leaves it alone", async () => {
    await (await openPostgresStore(location, LIMITS)).close();
    await database.query("UPDATE relay_schema SET digest = 'another'");
    await expect(openPostgresStore(location, LIMITS)).rejects.toThrow(
      /has a schema that is not version 2 of this relay: .*; run the relay that created it/,
    );
    await expect(inspectPostgresStore(location, LIMITS, async () => {})).rejects.toThrow("is not version 2");
    expect(await database.query("SELECT version FROM relay_schema")).toEqual([{ version: "2" }]);
  });

  it("takes a database of a build that told nothing of its schema, and migrates it", async () => {
    await (await openPostgresStore(location, LIMITS)).close();
    await database.query("ALTER TABLE relay_schema DROP COLUMN digest");
    await (await openPostgresStore(location, LIMITS)).close();
    const steps = [...POSTGRES_MIGRATIONS, "CREATE TABLE later (x BIGINT)"];
    expect(await withSession((session) => migratePostgres(session, "test", steps))).toEqual({ from: 2, to: 3 });
    expect(await database.query("SELECT version, digest IS NOT NULL AS told FROM relay_schema")).toEqual([
      { version: "3", told: true },
    ]);
  });

  it("refuses tables of another program, and leaves them alone", async () => {
    await database.query("CREATE TABLE connections (theirs BIGINT)");
    await expect(openPostgresStore(location, LIMITS)).rejects.toThrow(/another program's tables/);
    expect(await tables()).toEqual(["connections", "relay_schema"]);
  });

  it("keeps sealed values out of indexes and CHECKs, and compares all text byte for byte", async () => {
    await (await openPostgresStore(location, LIMITS)).close();
    const texts = await columns(
      `SELECT column_name AS name, table_name AS text, collation_name AS type FROM information_schema.columns
       WHERE table_schema = current_schema() AND data_type IN ('text', 'character varying')`,
    );
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.filter(({ type }) => type !== "C")).toEqual([]);
    const quoted = await columns(
      `SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE contype <> 'n' AND connamespace = current_schema()::regnamespace
       UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()`,
    );
    expect(quoted.map(({ text }) => text).join()).toContain("user_id");
    // Whether there is a value may be asked, of rows that an index is to hold: that is quoted nowhere.
    const asked = quoted.map(({ text }) => text.replace("(refresh_token IS NULL)", ""));
    expect(asked.filter((text) => /_token|private_key_hash|secret|sealed|payload/.test(text))).toEqual([]);
  });
});

describe.skipIf(POSTGRES_URL === undefined)("hasPostgresStore()", () => {
  it("is true once there is something that a key must open, and changes nothing", async () => {
    expect(await hasPostgresStore(location, LIMITS)).toBe(false);
    expect(await tables()).toEqual([]);
    const store = await openPostgresStore(location, LIMITS);
    expect(await hasPostgresStore(location, LIMITS)).toBe(false);
    await store.keyChecks.add({ keyId: "k", sealed: Buffer.alloc(1) });
    expect(await hasPostgresStore(location, LIMITS)).toBe(true);
    await store.close();
  });

  it("is false for a store that another relay is making, or did not finish", async () => {
    await database.query("CREATE TABLE connections (theirs BIGINT)");
    await expect(openPostgresStore(location, LIMITS)).rejects.toThrow(/another program's tables/);
    expect(await hasPostgresStore(location, LIMITS)).toBe(false);
    expect(await inspectPostgresStore(location, LIMITS, async () => {})).toBe("missing");
    await database.query("DROP TABLE connections");
    await (await openPostgresStore(location, LIMITS)).close();
    expect(await inspectPostgresStore(location, LIMITS, async () => {})).toBe("current");
  });
});
