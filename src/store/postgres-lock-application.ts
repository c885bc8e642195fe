import type { Application } from "../applications/application.js";
import { type ChangeOptions, requireCurrent } from "../model/change-options.js";
import {
  APPLICATION_COLUMNS,
  applicationFromPostgres,
  type PostgresApplicationRow,
} from "./postgres-application-row.js";
import type { Queries } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

/** Nobody else changes it before the transaction ends. */
const LOCK = createStatement<{ public_key: Buffer }, PostgresApplicationRow>(
  "lock_application",
  `SELECT ${APPLICATION_COLUMNS} FROM applications WHERE public_key = :public_key FOR UPDATE`,
);

/** Where a change asks for it, locks the application and judges it. Rejects with ChangedMeanwhileError. */
export async function requireCurrentApplication(
  { first }: Queries,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<void> {
  if (options.isCurrent === undefined) return;
  const row = await first(LOCK, { public_key: Buffer.from(publicKey) });
  if (row !== undefined) requireCurrent(options, applicationFromPostgres(row));
}
