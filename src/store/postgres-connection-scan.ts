import type { ConnectionRange, ConnectionSummary } from "../tokens/connection.js";
import { boundsOf, type ScanBounds, SUMMARY_COLUMNS, type SummaryRow, summaryFromRow } from "./connection-scan.js";
import type { Queries } from "./postgres-session.js";
import { CLOCK, createStatement } from "./postgres-statement.js";

/** The same as PostgreSQL keeps it: what others write as bytes. */
type PostgresSummaryRow = Omit<SummaryRow, "user_id" | "token_type" | "scope" | "public_key"> & {
  readonly user_id: Buffer;
  readonly token_type: Buffer;
  readonly scope: Buffer;
  readonly public_key: Buffer;
  readonly clock: number;
};

type PostgresBounds = Omit<ScanBounds, "user_start"> & { readonly user_start: Buffer };

const FROM = `SELECT ${SUMMARY_COLUMNS}, refresh_token IS NOT NULL AS has_refresh_token, ${CLOCK} AS clock
  FROM connections JOIN applications ON applications.id = application_id`;

const OF_ONE = createStatement<PostgresBounds, PostgresSummaryRow>(
  "scan_connections_of_application",
  `${FROM}
   WHERE application_id = :application_id AND user_id < :user_end
     AND (user_id, provider_name) > (:user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`,
);

const OF_ALL = createStatement<PostgresBounds, PostgresSummaryRow>(
  "scan_connections",
  `${FROM}
   WHERE (application_id, user_id, provider_name) > (:application_id, :user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`,
);

/** Reads connections in a row, as connection-scan.ts does in SQLite. @param now the clock of this process. */
export async function scanConnections(
  { all }: Queries,
  range: ConnectionRange,
  now: number,
): Promise<ConnectionSummary[]> {
  const bounds = boundsOf(range);
  const parameters = { ...bounds, user_start: Buffer.from(bounds.user_start) };
  const rows = await all(range.applicationId === undefined ? OF_ALL : OF_ONE, parameters);
  return rows.map((row) => summaryFromPostgres(row, now));
}

/** The end of a wait is by the database's clock; it is told by that of this process. */
function summaryFromPostgres({ clock, ...row }: PostgresSummaryRow, now: number): ConnectionSummary {
  return summaryFromRow({
    ...row,
    user_id: row.user_id.toString(),
    token_type: row.token_type.toString(),
    scope: row.scope.toString(),
    public_key: row.public_key.toString(),
    next_try_at: row.next_try_at === null ? null : row.next_try_at - clock + now,
  });
}
