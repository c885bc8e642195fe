import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { openPostgresStore } from "../../src/store/postgres.js";
import { createTestDatabase, POSTGRES_URL, type TestDatabase } from "../support/postgres.js";

let database: TestDatabase;
beforeEach(async () => {
  if (POSTGRES_URL !== undefined) database = await createTestDatabase();
});
afterEach(async () => {
  await database?.remove();
});

describe.skipIf(POSTGRES_URL === undefined)("the health of a store in PostgreSQL", () => {
  it("is that of a write, which a full disk or a read-only server refuses", async () => {
    const told: Array<string | undefined> = [];
    const store = await openPostgresStore(
      parseDatabaseLocation(database.url) as PostgresLocation,
      { maxConnections: 3, timeoutMs: 10_000 },
      { onHealth: (check, problem) => told.push(problem && `${check}: ${problem.message}`) },
    );
    onTestFinished(() => store.close());
    for (const [code, text] of [
      ["53100", "The relay's database is out of resources, such as disk space. The operator must free some."],
      ["25006", "The relay's database is read-only right now. Try again."],
    ] as const) {
      await database.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN RAISE EXCEPTION USING ERRCODE = ''${code}''; END'`);
      await database.query(
        "CREATE TRIGGER refuse BEFORE UPDATE ON relay_schema FOR EACH ROW EXECUTE FUNCTION refuse()",
      );
      const look = () => {
        store.health.suspect();
        return told.at(-1);
      };
      await expect.poll(look, { timeout: 15_000 }).toBe(`write: ${text}`);
      await expect(store.ready()).rejects.toThrow(text);
      await database.query("DROP FUNCTION refuse CASCADE");
      await expect.poll(look, { timeout: 15_000 }).toBe(undefined);
      await store.ready();
    }
  });
});
