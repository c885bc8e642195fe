import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import pg from "pg";
import { inject } from "vitest";

/** A database in the PostgreSQL of this run, as far as a store sees. */
export interface TestDatabase {
  /** For RELAY_DATABASE; with a password in it. */
  readonly url: string;
  /** Runs SQL on it. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<Row[]>;
  remove(): Promise<void>;
}

/** Its server; undefined where none can start, and then its tests are skipped. */
export const POSTGRES_URL: string | undefined = await askForServer();

async function askForServer(): Promise<string | undefined> {
  const socket = connect(inject("postgresPort"), "127.0.0.1");
  await once(socket, "connect");
  return (await text(socket)).trim() || undefined;
}

/**
 * Makes one, empty: a schema of its own, which is a database to whoever sees nothing else, and made and removed much
 * faster than one.
 */
export async function createTestDatabase(server = POSTGRES_URL): Promise<TestDatabase> {
  if (server === undefined) throw new Error("there is no PostgreSQL");
  const name = `test_${randomBytes(8).toString("hex")}`;
  const url = `${server}?options=${encodeURIComponent(`-c search_path=${name}`)}`;
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  // A server that is stopped under it is what some tests are about.
  pool.on("error", () => {});
  await pool.query(`CREATE SCHEMA ${name}`);
  return {
    url,
    query: async (sql, values) => (await pool.query(sql, values?.slice())).rows,
    async remove() {
      await pool.query(`SET client_min_messages = warning; DROP SCHEMA ${name} CASCADE`);
      await pool.end();
    },
  };
}
