import { parameterOf, replaceParameters, type Statement } from "./database.js";

/** Milliseconds since the epoch by the database's clock, as SQL: the one that all processes share (threats 3.3). */
const CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/**
 * Columns and parameters with text of others, which is kept as UTF-8 bytes; no other column has one of these names.
 * `convert_from(user_id, 'UTF8')` shows it.
 */
const OTHERS_TEXT: ReadonlySet<string> = new Set([
  "actor",
  "client_id",
  "key_start",
  "name",
  "public_key",
  "scope",
  "token_type",
  "uri",
  "user_id",
  "user_start",
]);

/** A statement as PostgreSQL takes it. */
export interface PostgresStatement {
  readonly name: string;
  readonly text: string;
  /** Values in the order of the text's `$1`, `$2`, … */
  valuesFrom(parameters: object): unknown[];
}

const translated = new WeakMap<Statement<never, never>, PostgresStatement>();

/** Translates a statement once. */
export function postgresStatement(statement: Statement<never, never>): PostgresStatement {
  const known = translated.get(statement) ?? translate(statement);
  translated.set(statement, known);
  return known;
}

function translate({ name, sql }: Statement<never, never>): PostgresStatement {
  const names: string[] = [];
  const text = replaceParameters(postgresSql(sql), (parameter) => {
    if (parameter === "clock") return CLOCK;
    if (!names.includes(parameter)) names.push(parameter);
    return `$${names.indexOf(parameter) + 1}`;
  });
  return { name, text, valuesFrom: (parameters) => names.map((each) => encoded(each, parameterOf(parameters, each))) };
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

/** Makes text again of what is kept as bytes; changes the rows. */
export function decodeRows(rows: Record<string, unknown>[]): void {
  for (const row of rows) {
    for (const name in row) {
      const value = row[name];
      if (OTHERS_TEXT.has(name) && Buffer.isBuffer(value)) row[name] = value.toString();
    }
  }
}
