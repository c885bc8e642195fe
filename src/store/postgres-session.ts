import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { RelayError } from "../model/errors.js";
import { camelCase, createRowBuilder, type Query } from "./database.js";
import {
  isConflict,
  isConnectionLost,
  isConnectionOver,
  PostgresError,
  postgresErrorFrom,
  storeErrorFrom,
  UnconfirmedCommit,
} from "./postgres-error.js";
import { takeConnection } from "./postgres-pool.js";
import type { OnOperation } from "./sqlite-driver.js";

/** Statements over one connection. */
export interface Queries {
  /** Resolves to the rows, the first row, or how many rows were changed, by the kind of the query. */
  answer(query: Query): Promise<unknown>;
  /** Sends SQL in PostgreSQL's own dialect, unprepared: for statements that are used once or twice. */
  send(text: string, values?: readonly unknown[]): Promise<pg.QueryResult>;
}

/** Runs operations on the database; rejects with RelayError STORE_UNAVAILABLE when it cannot be used. */
export interface Session {
  /** Runs reads; each query sees what was committed before it began. */
  read<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  /**
   * Runs one transaction (READ COMMITTED). `work` may run more than once, but only one run is committed. When the
   * connection ends during COMMIT, nobody knows whether it was committed: rejects with UnconfirmedWriteError. A write
   * that must not be lost is then repeated with a statement that notices an earlier success (threats A06).
   */
  write<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
}

/** Pauses before a transaction is retried after a conflict, in milliseconds. */
const WAITS_MS = [5, 20, 80];

/** Creates a session over a pool. */
export function createSession(pool: pg.Pool, onOperation: OnOperation = () => {}): Session {
  /** Connections that were used before: such a connection may have ended unnoticed while idle. */
  const known = new WeakSet<pg.PoolClient>();

  /**
   * Runs `begin` on a connection; on another one if the first had ended unnoticed, since then nothing can have
   * happened.
   */
  async function use<T>(begin: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (;;) {
      const client = await takeConnection(pool);
      const wasKnown = known.has(client);
      known.add(client);
      try {
        return await begin(client);
      } catch (error) {
        if (!wasKnown || !isLoss(error)) throw error;
      }
    }
  }

  async function translated<T>(kind: "read" | "write", run: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    let isFailed = true;
    try {
      const value = await repeated(run);
      isFailed = false;
      return value;
    } finally {
      onOperation(kind, performance.now() - startedAt, isFailed);
    }
  }

  async function repeated<T>(run: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await run();
      } catch (error) {
        const waitMs = error instanceof PostgresError && isConflict(error) ? WAITS_MS[tries] : undefined;
        if (waitMs === undefined) throw pool.ending ? stopping(error) : storeErrorFrom(error);
        await delay(waitMs);
      }
    }
  }

  return {
    read: (work) => translated("read", () => use((client) => released(client, work(queriesOf(client))))),
    write: (work) =>
      translated("write", async () => {
        const client = await use((each) => begun(each));
        return transact(client, work);
      }),
  };
}

async function begun(client: pg.PoolClient): Promise<pg.PoolClient> {
  try {
    await send(client, { text: "BEGIN" });
    return client;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

async function transact<T>(client: pg.PoolClient, work: (queries: Queries) => Promise<T>): Promise<T> {
  try {
    const value = await work(queriesOf(client));
    await commit(client);
    client.release();
    return value;
  } catch (error) {
    await undo(client, error);
    throw error;
  }
}

async function commit(client: pg.PoolClient): Promise<void> {
  try {
    await send(client, { text: "COMMIT" });
  } catch (error) {
    throw error instanceof PostgresError && isConnectionOver(error) ? new UnconfirmedCommit(error.code) : error;
  }
}

/** Rolls back. If that fails, closes the connection, which rolls back as well. */
async function undo(client: pg.PoolClient, cause: unknown): Promise<void> {
  if (cause instanceof PostgresError && isConnectionOver(cause)) return client.release(true);
  try {
    await send(client, { text: "ROLLBACK" });
    client.release();
  } catch {
    client.release(true);
  }
}

async function released<T>(client: pg.PoolClient, result: Promise<T>): Promise<T> {
  try {
    const value = await result;
    client.release();
    return value;
  } catch (error) {
    client.release(error instanceof PostgresError && isConnectionOver(error));
    throw error;
  }
}

function queriesOf(client: pg.PoolClient): Queries {
  return {
    async answer(query) {
      const { rows, rowCount, fields } = await send(client, postgresQuery(query));
      if (query.kind === "run") return rowCount ?? 0;
      const decoded = decodeRows(query, rows, fields);
      return query.kind === "all" ? decoded : decoded[0];
    },
    send: (text, values = []) => send(client, { text, values: [...values] }),
  };
}

async function send(client: pg.PoolClient, query: pg.QueryConfig): Promise<pg.QueryResult> {
  try {
    return await client.query(query);
  } catch (error) {
    throw postgresErrorFrom(error);
  }
}

function isLoss(error: unknown): boolean {
  return error instanceof PostgresError && isConnectionLost(error);
}

function stopping(cause: unknown): RelayError {
  return new RelayError("STORE_UNAVAILABLE", "The relay is stopping. Try again.", { cause });
}

/** SQL for milliseconds since the epoch by the database's clock, which all processes share (threats 3.3). */
const CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * Columns and parameters with text from outside, which is kept as UTF-8 bytes; no other column has one of these names.
 * In SQL, `convert_from(user_id, 'UTF8')` shows the text.
 */
const OTHERS_TEXT: ReadonlySet<string> = new Set(
  "actor client_id key_start name public_key scope token_type uri user_id user_start".split(" "),
);

/** Translates a query. The text is not cached: it takes 3 µs for a look-up, and the caches make those rare. */
function postgresQuery({ statement: { name, sql }, parameters }: Query): pg.QueryArrayConfig {
  const names: string[] = [];
  const text = postgresSql(sql).replace(/(?<!:):([a-z_]+)/g, (_, parameter: string) => {
    if (parameter === "clock") return CLOCK;
    if (!names.includes(parameter)) names.push(parameter);
    return `$${names.indexOf(parameter) + 1}`;
  });
  const values = names.map((each) => encoded(each, parameterOf(parameters, camelCase(each))));
  return { name, text, values, rowMode: "array" };
}

function postgresSql(sql: string): string {
  return sql
    .replaceAll(/ INDEXED BY [a-z_]+/g, "")
    .replaceAll(" AS KEY)", " AS BYTEA)")
    .replaceAll("instr(", "strpos(");
}

function encoded(name: string, value: unknown): unknown {
  return typeof value === "string" && OTHERS_TEXT.has(name) ? Buffer.from(value) : value;
}

/** By statement: to make one for a connection takes 15 µs, and to build a row with it less than one. */
const rowBuilders = new WeakMap<Query["statement"], ReturnType<typeof createRowBuilder>>();

/** Builds the rows, and decodes text that is kept as bytes. */
function decodeRows({ statement }: Query, rows: unknown[][], fields: readonly pg.FieldDef[]): object[] {
  const rowFrom = rowBuilders.get(statement) ?? createRowBuilder(fields.map(({ name }) => name));
  rowBuilders.set(statement, rowFrom);
  const texts = fields.flatMap(({ name }, at) => (OTHERS_TEXT.has(name) ? [at] : []));
  for (const row of rows) {
    for (const at of texts) if (Buffer.isBuffer(row[at])) row[at] = row[at].toString();
  }
  return rows.map(rowFrom);
}

/** The value of a parameter. Throws when it was not passed. */
function parameterOf(parameters: object, name: string): unknown {
  if (!(name in parameters)) throw new TypeError(`A statement has no value for :${name}.`);
  return (parameters as Readonly<Record<string, unknown>>)[name];
}
