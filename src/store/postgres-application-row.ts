import type { Application, ApplicationPatch } from "../applications/application.js";
import { type ApplicationRow, applicationFromRow, columnsFromPatch, rowFromApplication } from "./application-row.js";

/** The columns of `applications`. */
export const APPLICATION_COLUMNS = `id, name, public_key, private_key_hash, caller_auth, allowed_origins,
  allowed_addresses, allowed_redirect_uris, calls_per_minute, connection_calls_per_minute, state, capture_until,
  created_at, updated_at`;

/** A row of `applications`: what others write is kept as bytes, since PostgreSQL's text holds no NUL. */
export type PostgresApplicationRow = Omit<ApplicationRow, "name" | "public_key"> & {
  readonly name: Buffer;
  readonly public_key: Buffer;
};

/** Reads a row. */
export function applicationFromPostgres(row: PostgresApplicationRow): Application {
  return applicationFromRow({ ...row, name: row.name.toString(), public_key: row.public_key.toString() });
}

/** Makes a row. */
export function postgresFromApplication(application: Application): PostgresApplicationRow {
  const row = rowFromApplication(application);
  return { ...row, name: Buffer.from(row.name), public_key: Buffer.from(row.public_key) };
}

/** The columns of a patch; null for what stays. */
export function postgresFromPatch(patch: ApplicationPatch) {
  const columns = columnsFromPatch(patch);
  return { ...columns, name: columns.name === null ? null : Buffer.from(columns.name) };
}
