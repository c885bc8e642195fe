import { TOKEN_COLUMNS } from "../oauth/store-answer.js";
import { all, camelCase, createStatement, type Database, type Operation, run, type Statement } from "./database.js";

/** A table with sealed columns, which `relay key rotate` must reseal. */
interface SealedTable {
  readonly name: string;
  /** Columns with the parts of the values' binding; a part without a column is empty in the binding. */
  readonly applicationId: string;
  readonly userId?: string;
  readonly providerName?: string;
  readonly columns: readonly string[];
}

/** Every table that has sealed columns. A new one must be added here. */
const SEALED_TABLES: readonly SealedTable[] = [
  { name: "applications", applicationId: "id", columns: ["private_key_hash"] },
  {
    ...{ name: "connections", columns: TOKEN_COLUMNS },
    ...{ applicationId: "application_id", userId: "user_id", providerName: "provider_name" },
  },
  { name: "oauth_clients", applicationId: "application_id", providerName: "provider_name", columns: ["client_secret"] },
  { name: "tickets", applicationId: "application_id", userId: "user_id", columns: ["payload"] },
  { name: "webhook_endpoints", applicationId: "id", columns: ["secret"] },
  // In place of the user: the call's id, so that a capture opens only for its own call.
  { name: "call_captures", applicationId: "application_id", userId: "id", columns: ["content"] },
];

/** The sealed values of one row. */
export interface SealedRow {
  readonly id: string;
  readonly applicationId: string;
  readonly userId: string;
  readonly providerName: string;
  /** In the order of the table's columns; undefined where the row has no value. */
  readonly values: ReadonlyArray<Uint8Array | undefined>;
}

/** A row, and its resealed values. */
export interface Resealed {
  readonly row: SealedRow;
  readonly values: SealedRow["values"];
}

/** The sealed values of one table, ordered by row id. */
export interface SealedRows {
  readonly table: string;
  readonly columns: readonly string[];
  /** The next rows after this id; the empty string for the first ones. */
  page(afterId: string, limit: number): Promise<SealedRow[]>;
  /** Replaces the values of rows that are unchanged since they were read. Resolves to how many rows were replaced. */
  replace(resealed: readonly Resealed[]): Promise<number>;
}

type PageRow = Readonly<Record<string, string | Uint8Array | undefined>> & { readonly id: string };

/** All sealed values, table by table. */
export function createSealedRows(database: Database): readonly SealedRows[] {
  return SEALED_TABLES.map((table) => {
    const page = pageOf(table);
    const replace = replaceIn(table);
    return {
      table: table.name,
      columns: table.columns,
      page: async (afterId, limit) =>
        (await database.read(() => all(page, { afterId, limit }))).map((row) => sealedFrom(row, table)),
      replace: (resealed) => database.write(() => replaceAll(replace, resealed, table)),
    };
  });
}

function pageOf({ name, columns, ...owner }: SealedTable): Statement<{ afterId: string; limit: number }, PageRow> {
  const read = new Set(["id", ...Object.values(owner), ...columns]);
  return createStatement(`SELECT ${[...read].join(", ")} FROM ${name} WHERE id > :after_id ORDER BY id LIMIT :limit`);
}

function sealedFrom(row: PageRow, { applicationId, userId, providerName, columns }: SealedTable): SealedRow {
  const textOf = (column: string | undefined) => (column === undefined ? "" : String(row[camelCase(column)]));
  return {
    id: row.id,
    applicationId: textOf(applicationId),
    userId: textOf(userId),
    providerName: textOf(providerName),
    values: columns.map((column) => row[camelCase(column)] as Uint8Array | undefined),
  };
}

/**
 * Compares all sealed values, not the version: a random IV makes each of them unique, so a token that was changed
 * meanwhile is never overwritten with the old one. The version stays, since the tokens are the same: a concurrent
 * refresh still finds the version that it read, and its new token wins.
 */
function replaceIn({ name, columns }: SealedTable): Statement<object, never> {
  const set = columns.map((column) => `${column} = CAST(:new_${column} AS BYTEA)`).join(", ");
  const isSame = columns.map((column) => `${column} IS NOT DISTINCT FROM CAST(:old_${column} AS BYTEA)`).join(" AND ");
  return createStatement(`UPDATE ${name} SET ${set} WHERE id = :id AND ${isSame}`);
}

function* replaceAll(
  replace: Statement<object, never>,
  resealed: readonly Resealed[],
  { columns }: SealedTable,
): Operation<number> {
  let replaced = 0;
  for (const { row, values } of resealed) {
    const pairs = columns.flatMap((column, at) => [
      [camelCase(`new_${column}`), values[at]],
      [camelCase(`old_${column}`), row.values[at]],
    ]);
    replaced += yield* run(replace, { id: row.id, ...Object.fromEntries(pairs) });
  }
  return replaced;
}

/** A known text sealed under one key: it shows whether the key file's key of this id is the one that the store uses. */
export interface KeyCheck {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** Where key checks are kept, one per key. */
export interface KeyCheckStore {
  list(): Promise<KeyCheck[]>;
  /** Adds a check; an existing one for this key stays. */
  add(check: KeyCheck): Promise<void>;
  /**
   * Deletes the check of a key that is not in use, unless it is younger than a day and than the check of
   * `currentKeyId`: then it belongs to a rotation that has reached another process first.
   */
  delete(keyId: string, currentKeyId: string): Promise<void>;
}

const LIST = createStatement<object, KeyCheck>("SELECT key_id, sealed FROM key_checks ORDER BY created_at, key_id");

const ADD = createStatement<KeyCheck & { now: number }>(
  "INSERT INTO key_checks (key_id, sealed, created_at) VALUES (:key_id, :sealed, :now) ON CONFLICT (key_id) DO NOTHING",
);

const DELETE = createStatement<{ keyId: string; currentKeyId: string; dayAgo: number }>(`
   DELETE FROM key_checks WHERE key_id = :key_id AND (
     created_at < :day_ago OR created_at <= (SELECT created_at FROM key_checks WHERE key_id = :current_key_id))`);

const DAY_MS = 86_400_000;

export function createKeyCheckStore(database: Database): KeyCheckStore {
  return {
    list: () => database.read(() => all(LIST, {})),
    add: async (check) => void (await database.write(() => run(ADD, { ...check, now: database.now() }))),
    delete: async (keyId, currentKeyId) =>
      void (await database.write(() => run(DELETE, { keyId, currentKeyId, dayAgo: database.now() - DAY_MS }))),
  };
}
