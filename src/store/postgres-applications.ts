import {
  type Application,
  ApplicationExistsError,
  type ApplicationPage,
  type ApplicationPatch,
  type ApplicationStore,
} from "../applications/application.js";
import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import { type ApplicationRow, applicationFromRow, columnsFromPatch, rowFromApplication } from "./application-row.js";
import { rangeOfPrefix } from "./key-range.js";
import { writeAudit } from "./postgres-audit-records.js";
import { isUniqueViolation } from "./postgres-error.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

/** The columns of `applications`. */
const APPLICATION_COLUMNS = `id, name, public_key, private_key_hash, caller_auth, allowed_origins,
  allowed_addresses, allowed_redirect_uris, calls_per_minute, connection_calls_per_minute, state, capture_until,
  created_at, updated_at`;

/** A row of `applications`: what others write is kept as bytes, since PostgreSQL's text holds no NUL. */
type PostgresApplicationRow = Omit<ApplicationRow, "name" | "public_key"> & {
  readonly name: Buffer;
  readonly public_key: Buffer;
};

/** Reads a row. */
function applicationFromPostgres(row: PostgresApplicationRow): Application {
  return applicationFromRow({ ...row, name: row.name.toString(), public_key: row.public_key.toString() });
}

/** Makes a row. */
function postgresFromApplication(application: Application): PostgresApplicationRow {
  const row = rowFromApplication(application);
  return { ...row, name: Buffer.from(row.name), public_key: Buffer.from(row.public_key) };
}

/** The columns of a patch; null for what stays. */
function postgresFromPatch(patch: ApplicationPatch) {
  const columns = columnsFromPatch(patch);
  return { ...columns, name: columns.name === null ? null : Buffer.from(columns.name) };
}

/** Applications in PostgreSQL. */
interface PostgresApplicationStore extends ApplicationStore {
  /** Those with these ids, in any order, in one statement. */
  findByIds(ids: readonly string[]): Promise<Application[]>;
}

/** Opens the table. */
export function createPostgresApplicationStore(session: Session): PostgresApplicationStore {
  return {
    findByPublicKey: (publicKey) => session.read((queries) => findByPublicKey(queries, publicKey)),
    findByIds: async (ids) => (await session.read(({ all }) => all(FIND_BY_IDS, { ids }))).map(applicationFromPostgres),
    publicKeyOf: async (id) => (await session.read(({ first }) => first(PUBLIC_KEY, { id })))?.public_key.toString(),
    listsOrigin: async (origin) => (await session.read(({ first }) => first(LISTS_ORIGIN, { origin }))) !== undefined,
    list: async () => (await session.read(({ all }) => all(LIST, {}))).map(applicationFromPostgres),
    page: async (page) =>
      (await session.read(({ all }) => all(PAGE, parametersOfPage(page)))).map(applicationFromPostgres),
    create: (application, audit) => session.write((queries) => create(queries, application, audit)),
    update: (publicKey, patch, now, options = {}) =>
      session.write((queries) => update(queries, publicKey, patch, now, options)),
    delete: (publicKey, options = {}) => deleteApplication(session, publicKey, options),
  };
}

const FIND = createStatement<{ public_key: Buffer }, PostgresApplicationRow>(
  "find_application",
  `SELECT ${APPLICATION_COLUMNS} FROM applications WHERE public_key = :public_key`,
);

const FIND_BY_IDS = createStatement<{ ids: readonly string[] }, PostgresApplicationRow>(
  "find_applications",
  `SELECT ${APPLICATION_COLUMNS} FROM applications WHERE id = ANY(:ids::text[])`,
);

const PUBLIC_KEY = createStatement<{ id: string }, { public_key: Buffer }>(
  "find_public_key",
  "SELECT public_key FROM applications WHERE id = :id",
);

const LIST = createStatement<object, PostgresApplicationRow>(
  "list_applications",
  `SELECT ${APPLICATION_COLUMNS} FROM applications ORDER BY created_at, id`,
);

const PAGE = createStatement<{ start: Buffer; end: Buffer; limit: number }, PostgresApplicationRow>(
  "page_applications",
  `SELECT ${APPLICATION_COLUMNS} FROM applications WHERE public_key >= :start AND public_key < :end
   ORDER BY public_key LIMIT :limit`,
);

const CREATE = createStatement<PostgresApplicationRow>(
  "create_application",
  `INSERT INTO applications (${APPLICATION_COLUMNS})
   VALUES (:id, :name, :public_key, :private_key_hash, :caller_auth, :allowed_origins, :allowed_addresses,
     :allowed_redirect_uris, :calls_per_minute, :connection_calls_per_minute, :state, :capture_until,
     :created_at, :updated_at)`,
);

/** With a private key ends what was begun with it, as applications.ts says of SQLite. */
const DELETE_TICKETS = createStatement<{ id: string }>(
  "delete_tickets",
  "DELETE FROM tickets WHERE application_id = :id",
);

/** Writes only what the patch names: a change made meanwhile to another member stays. */
const UPDATE = createStatement<object, PostgresApplicationRow>(
  "update_application",
  `UPDATE applications SET
     name = coalesce(:name, name),
     private_key_hash = coalesce(:private_key_hash, private_key_hash),
     caller_auth = coalesce(:caller_auth, caller_auth),
     allowed_origins = coalesce(:allowed_origins, allowed_origins),
     allowed_addresses = coalesce(:allowed_addresses, allowed_addresses),
     allowed_redirect_uris = coalesce(:allowed_redirect_uris, allowed_redirect_uris),
     calls_per_minute = coalesce(:calls_per_minute, calls_per_minute),
     connection_calls_per_minute = coalesce(:connection_calls_per_minute, connection_calls_per_minute),
     state = coalesce(:state, state),
     capture_until = coalesce(:capture_until, capture_until),
     updated_at = :now
   WHERE public_key = :public_key RETURNING ${APPLICATION_COLUMNS}`,
);

async function findByPublicKey({ first }: Queries, publicKey: string): Promise<Application | undefined> {
  const row = await first(FIND, { public_key: Buffer.from(publicKey) });
  return row && applicationFromPostgres(row);
}

function parametersOfPage({ prefix, after, limit }: ApplicationPage) {
  const { start, end } = rangeOfPrefix(prefix, after);
  return { start: Buffer.from(start), end, limit };
}

async function create(queries: Queries, application: Application, audit: AuditEntry | undefined): Promise<void> {
  try {
    await queries.run(CREATE, postgresFromApplication(application));
  } catch (error) {
    throw isUniqueViolation(error) ? new ApplicationExistsError() : error;
  }
  await writeOrigins(queries, application.id, application.allowedOrigins);
  await writeAudit(queries, audit);
}

async function update(
  queries: Queries,
  publicKey: string,
  patch: ApplicationPatch,
  now: number,
  options: ChangeOptions<Application>,
): Promise<Application | undefined> {
  await requireCurrentApplication(queries, publicKey, options);
  const columns = { ...postgresFromPatch(patch), public_key: Buffer.from(publicKey), now };
  const row = await queries.first(UPDATE, columns);
  if (row === undefined) return undefined;
  if (patch.privateKeyHash !== undefined) await queries.run(DELETE_TICKETS, { id: row.id });
  if (patch.allowedOrigins !== undefined) await writeOrigins(queries, row.id, patch.allowedOrigins);
  await writeAudit(queries, options.audit);
  return applicationFromPostgres(row);
}

const REMOVE = createStatement<{ application_id: string }>(
  "remove_origins",
  "DELETE FROM application_origins WHERE application_id = :application_id",
);

const INSERT = createStatement<{ application_id: string; origins: string }>(
  "insert_origins",
  `INSERT INTO application_origins (origin, application_id)
   SELECT DISTINCT listed.origin, :application_id FROM jsonb_array_elements_text(:origins::jsonb) AS listed (origin)`,
);

/** Whether any active application lists an origin. */
const LISTS_ORIGIN = createStatement<{ origin: string }, unknown>(
  "lists_origin",
  `SELECT 1 FROM application_origins JOIN applications ON applications.id = application_id
   WHERE origin = :origin AND state = 'ACTIVE' LIMIT 1`,
);

/** Replaces what an application lists; called inside the transaction that writes the application. */
async function writeOrigins({ run }: Queries, applicationId: string, origins: readonly string[]): Promise<void> {
  await run(REMOVE, { application_id: applicationId });
  if (origins.length > 0) await run(INSERT, { application_id: applicationId, origins: JSON.stringify(origins) });
}

/** Fills the table for all applications, after they were copied from elsewhere. */
export const FILL_ORIGINS = createStatement<object>(
  "fill_origins",
  `INSERT INTO application_origins (origin, application_id)
   SELECT DISTINCT listed.origin, applications.id
   FROM applications, jsonb_array_elements_text(allowed_origins::jsonb) AS listed (origin)`,
);

/** Rows deleted in one transaction, so that none of them is long. */
const BATCH = 200;

const DISABLE = createStatement<{ public_key: Buffer }, { id: string }>(
  "disable_application",
  "UPDATE applications SET state = 'DISABLED' WHERE public_key = :public_key RETURNING id",
);

const TABLES = [
  ["connections", "id"],
  ["tickets", "id"],
  ["call_captures", "id"],
  ["call_blocks", "sequence"],
] as const;

const DELETE_SOME = TABLES.map(([table, key]) =>
  createStatement<{ id: string; batch: number }>(
    `delete_some_${table}`,
    `DELETE FROM ${table} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE application_id = :id ORDER BY ${key} LIMIT :batch)`,
  ),
);

/** Rows that came meanwhile go with it (ON DELETE CASCADE). */
const DELETE = createStatement<{ id: string }>("delete_application", "DELETE FROM applications WHERE id = :id");

/**
 * Deletes an application with its connections and the records of its calls. It is disabled first, so that no call comes
 * through from then on, and emptied in short transactions; a process that dies in between leaves a disabled application to
 * delete again. The audit trail has it from the first of them on.
 */
async function deleteApplication(
  session: Session,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<boolean> {
  const id = await session.write((queries) => begin(queries, publicKey, options));
  if (id === undefined) return false;
  for (const deleteSome of DELETE_SOME) {
    while ((await session.write(({ run }) => run(deleteSome, { id, batch: BATCH }))) === BATCH);
  }
  return (await session.write(({ run }) => run(DELETE, { id }))) > 0;
}

async function begin(
  queries: Queries,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<string | undefined> {
  await requireCurrentApplication(queries, publicKey, options);
  const disabled = await queries.first(DISABLE, { public_key: Buffer.from(publicKey) });
  if (disabled === undefined) return undefined;
  await writeAudit(queries, options.audit);
  return disabled.id;
}

/** Nobody else changes it before the transaction ends. */
const LOCK = createStatement<{ public_key: Buffer }, PostgresApplicationRow>(
  "lock_application",
  `SELECT ${APPLICATION_COLUMNS} FROM applications WHERE public_key = :public_key FOR UPDATE`,
);

/** Where a change asks for it, locks the application and judges it. Rejects with ChangedMeanwhileError. */
async function requireCurrentApplication(
  { first }: Queries,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<void> {
  if (options.isCurrent === undefined) return;
  const row = await first(LOCK, { public_key: Buffer.from(publicKey) });
  if (row !== undefined) requireCurrent(options, applicationFromPostgres(row));
}
