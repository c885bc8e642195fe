import { createStatement, type Queries, type Session, type Statement } from "./postgres-session.js";
import { type Resealed, SEALED_TABLES, type SealedRow, type SealedRows, type SealedTable } from "./sealed-rows.js";

/** All sealed values in PostgreSQL, table by table. */
export function createPostgresSealedRows(session: Session): readonly SealedRows[] {
  return SEALED_TABLES.map((table) => {
    const page = pageOf(table);
    const replace = replaceIn(table);
    return {
      table: table.name,
      columns: table.columns,
      page: async (afterId, limit) =>
        (await session.read(({ all }) => all(page, { after_id: afterId, limit }))).map((row) => sealedFrom(row, table)),
      replace: (resealed) => session.write((queries) => replaceAll(queries, replace, resealed)),
    };
  });
}

interface PageRow extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly owner_application: string;
  readonly owner_user: Buffer;
  readonly owner_provider: string;
}

function pageOf(table: SealedTable): Statement<{ after_id: string; limit: number }, PageRow> {
  const { name, applicationId, userId, providerName, columns } = table;
  return createStatement(
    `page_${name}`,
    `SELECT id, ${applicationId} AS owner_application, ${userId}::bytea AS owner_user,
       ${providerName}::text AS owner_provider, ${columns.join(", ")} FROM ${name}
     WHERE id > :after_id ORDER BY id LIMIT :limit`,
  );
}

function sealedFrom(row: PageRow, { columns }: SealedTable): SealedRow {
  return {
    id: row.id,
    applicationId: row.owner_application,
    userId: row.owner_user.toString(),
    providerName: row.owner_provider,
    values: columns.map((column) => row[column] as Uint8Array | null),
  };
}

/** Compares all sealed values, not the version, as sealed-rows.ts says of SQLite. */
function replaceIn({ name, columns }: SealedTable): Statement<object, never> {
  const set = columns.map((column) => `${column} = :new_${column}::bytea`).join(", ");
  const isSame = columns.map((column) => `${column} IS NOT DISTINCT FROM :old_${column}::bytea`).join(" AND ");
  const statement = createStatement<object>(`reseal_${name}`, `UPDATE ${name} SET ${set} WHERE id = :id AND ${isSame}`);
  return { ...statement, valuesFrom: (parameters) => statement.valuesFrom(named(parameters as Resealed, columns)) };
}

function named({ row, values }: Resealed, columns: readonly string[]): object {
  const pairs = columns.flatMap((column, at) => [
    [`new_${column}`, values[at]],
    [`old_${column}`, row.values[at]],
  ]);
  return { id: row.id, ...Object.fromEntries(pairs) };
}

async function replaceAll(
  { run }: Queries,
  statement: Statement<object, never>,
  resealed: readonly Resealed[],
): Promise<number> {
  let replaced = 0;
  for (const each of resealed) replaced += await run(statement, each);
  return replaced;
}
