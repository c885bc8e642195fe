import {
  type Application,
  ApplicationExistsError,
  type ApplicationPage,
  type ApplicationPatch,
  type ApplicationStore,
} from "../applications/application.js";
import type { AuditEntry } from "../model/audit.js";
import type { ChangeOptions } from "../model/change-options.js";
import { rangeOfPrefix } from "./key-range.js";
import { LISTS_ORIGIN, writeOrigins } from "./postgres-application-origins.js";
import {
  APPLICATION_COLUMNS,
  applicationFromPostgres,
  type PostgresApplicationRow,
  postgresFromApplication,
  postgresFromPatch,
} from "./postgres-application-row.js";
import { writeAudit } from "./postgres-audit-records.js";
import { deleteApplication } from "./postgres-delete-application.js";
import { isUniqueViolation } from "./postgres-error.js";
import { requireCurrentApplication } from "./postgres-lock-application.js";
import type { Queries, Session } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

/** Applications in PostgreSQL. */
export interface PostgresApplicationStore extends ApplicationStore {
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
