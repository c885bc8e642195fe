import type Database from "better-sqlite3";
import type { ConnectionColumn } from "../oauth/connection-binding.js";
import type { Attempt } from "./attempt.js";

/** A table with sealed columns: what `relay key rotate` has to seal again. */
export interface SealedTable {
  readonly name: string;
  /** What the values are sealed for: columns, or `''` for nothing. */
  readonly applicationId: string;
  readonly userId: string;
  readonly providerName: string;
  readonly columns: readonly string[];
}

const CONNECTION_TOKENS = [
  "access_token",
  "refresh_token",
  "previous_refresh_token",
  "id_token",
] as const satisfies readonly ConnectionColumn[];

/** Every table that has sealed columns. A new one must be added here. */
export const SEALED_TABLES: readonly SealedTable[] = [
  {
    name: "applications",
    applicationId: "id",
    userId: "''",
    providerName: "''",
    columns: ["private_key_hash"],
  },
  {
    name: "connections",
    applicationId: "application_id",
    userId: "user_id",
    providerName: "provider_name",
    columns: CONNECTION_TOKENS,
  },
  {
    name: "oauth_clients",
    applicationId: "application_id",
    userId: "''",
    providerName: "provider_name",
    columns: ["client_secret"],
  },
  {
    name: "tickets",
    applicationId: "application_id",
    userId: "user_id",
    providerName: "''",
    columns: ["payload"],
  },
  {
    name: "webhook_endpoints",
    applicationId: "id",
    userId: "''",
    providerName: "''",
    columns: ["secret"],
  },
  {
    name: "call_captures",
    applicationId: "application_id",
    // The call's: a capture of one call is none of another.
    userId: "id",
    providerName: "''",
    columns: ["content"],
  },
];

/** The sealed values of one row. */
export interface SealedRow {
  readonly id: string;
  readonly applicationId: string;
  readonly userId: string;
  readonly providerName: string;
  /** In the order of the table's columns; null where the row has no value. */
  readonly values: ReadonlyArray<Uint8Array | null>;
}

/** A row and its values sealed anew. */
export interface Resealed {
  readonly row: SealedRow;
  readonly values: ReadonlyArray<Uint8Array | null>;
}

/** The sealed values of one table, in order of the row's id. */
export interface SealedRows {
  readonly table: string;
  readonly columns: readonly string[];
  /** The next rows behind this id; the empty text for the first ones. */
  page(afterId: string, limit: number): Promise<SealedRow[]>;
  /** Replaces values of rows whose sealed values are still the ones that were read; resolves to how many. */
  replace(resealed: readonly Resealed[]): Promise<number>;
}

/** All sealed values in SQLite, table by table. */
export function createSealedRows(db: Database.Database, attempt: Attempt): readonly SealedRows[] {
  return SEALED_TABLES.map((table) => {
    const page = preparePage(db, table);
    const replace = prepareReplace(db, table);
    return {
      table: table.name,
      columns: table.columns,
      page: (afterId, limit) => attempt.read(() => page(afterId, limit)),
      replace: (resealed) => attempt.write(() => resealed.filter(replace).length),
    };
  });
}

function preparePage(db: Database.Database, table: SealedTable) {
  const { name, applicationId, userId, providerName, columns } = table;
  const statement = db
    .prepare<[string, number]>(
      `SELECT id, ${applicationId}, ${userId}, ${providerName}, ${columns.join(", ")} FROM ${name}
       WHERE id > ? ORDER BY id LIMIT ?`,
    )
    .raw();
  return (afterId: string, limit: number): SealedRow[] =>
    (statement.all(afterId, limit) as Array<[string, string, string, string, ...Array<Uint8Array | null>]>).map(
      ([id, applicationId, userId, providerName, ...values]) => ({ id, applicationId, userId, providerName, values }),
    );
}

/**
 * Compares all sealed values, not the version: a random IV makes each of them unique, so a token that was changed
 * meanwhile is never put back. The version stays, since the tokens are the same: whoever renews one at this moment
 * still finds the version it read, and its new token wins.
 */
function prepareReplace(db: Database.Database, { name, columns }: SealedTable) {
  const statement = db.prepare<unknown[]>(`
    UPDATE ${name} SET ${columns.map((column) => `${column} = ?`).join(", ")}
    WHERE id = ? AND ${columns.map((column) => `${column} IS ?`).join(" AND ")}`);
  return ({ row, values }: Resealed): boolean => statement.run(...values, row.id, ...row.values).changes === 1;
}
