import type Database from "better-sqlite3";
import {
  type Application,
  ApplicationExistsError,
  type ApplicationPage,
  type ApplicationPatch,
  type ApplicationStore,
} from "../applications/application.js";
import type { AuditEntry } from "../model/audit.js";
import { type ChangeOptions, requireCurrent } from "../model/change-options.js";
import { type ApplicationOrigins, prepareApplicationOrigins } from "./application-origins.js";
import { type ApplicationRow, applicationFromRow, columnsFromPatch, rowFromApplication } from "./application-row.js";
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit, type WriteAudit } from "./audit-records.js";
import type { CallsFile } from "./calls-file.js";
import { prepareDeleteApplication } from "./delete-application.js";
import { rangeOfPrefix } from "./key-range.js";
import type { RowCaches } from "./row-cache.js";
import { isUniqueViolation } from "./sqlite-error.js";

/** Applications that are kept as they were read: a relay has few, and each of its calls needs one. */
const MAX_KEPT = 1000;

/** Applications in SQLite. */
export function createApplicationStore(
  db: Database.Database,
  attempt: Attempt,
  { caches, calls }: { readonly caches: RowCaches; readonly calls: Pick<CallsFile, "deleteOf"> },
): ApplicationStore {
  const kept = caches.create<Application>(MAX_KEPT);
  const findByPublicKey = prepareFindByPublicKey(db);
  const publicKeyOf = db.prepare<[string], string>("SELECT public_key FROM applications WHERE id = ?").pluck();
  const origins = prepareApplicationOrigins(db);
  const list = prepareList(db);
  const page = preparePage(db);
  const writeAudit = prepareWriteAudit(db);
  const create = prepareCreate(db, { origins, writeAudit });
  const update = prepareUpdate(db, { find: findByPublicKey, origins, writeAudit });
  return {
    findByPublicKey: (publicKey) => attempt.lookUp(() => kept.find(publicKey, () => findByPublicKey(publicKey))),
    publicKeyOf: (id) => attempt.read(() => publicKeyOf.get(id)),
    listsOrigin: (origin) => attempt.read(() => origins.lists(origin)),
    list: () => attempt.read(list),
    page: (asked) => attempt.read(() => page(asked)),
    create: (application, audit) => attempt.write(() => create(application, audit)),
    update: (publicKey, patch, now, options = {}) => attempt.write(() => update(publicKey, patch, now, options)),
    delete: prepareDeleteApplication(db, attempt, { find: findByPublicKey, writeAudit, calls }),
  };
}

function prepareFindByPublicKey(db: Database.Database) {
  const statement = db.prepare<[string], ApplicationRow>("SELECT * FROM applications WHERE public_key = ?");
  return (publicKey: string): Application | undefined => {
    const row = statement.get(publicKey);
    return row && applicationFromRow(row);
  };
}

function prepareList(db: Database.Database) {
  const statement = db.prepare<[], ApplicationRow>("SELECT * FROM applications ORDER BY created_at, id");
  return (): Application[] => statement.all().map(applicationFromRow);
}

function preparePage(db: Database.Database) {
  const statement = db.prepare<[string, Buffer, number], ApplicationRow>(`
    SELECT * FROM applications WHERE public_key >= ? AND public_key < CAST(? AS TEXT)
    ORDER BY public_key LIMIT ?`);
  return ({ prefix, after, limit }: ApplicationPage): Application[] => {
    const { start, end } = rangeOfPrefix(prefix, after);
    return statement.all(start, end, limit).map(applicationFromRow);
  };
}

/** What is written besides the row. */
interface Besides {
  readonly origins: ApplicationOrigins;
  readonly writeAudit: WriteAudit;
}

function prepareCreate(db: Database.Database, { origins, writeAudit }: Besides) {
  const statement = db.prepare<[ApplicationRow]>(`
    INSERT INTO applications (id, name, public_key, private_key_hash, caller_auth, allowed_origins, allowed_addresses,
      allowed_redirect_uris, calls_per_minute, connection_calls_per_minute, state, capture_until, created_at, updated_at)
    VALUES (:id, :name, :public_key, :private_key_hash, :caller_auth, :allowed_origins, :allowed_addresses,
      :allowed_redirect_uris, :calls_per_minute, :connection_calls_per_minute, :state, :capture_until, :created_at, :updated_at)`);
  return (application: Application, audit: AuditEntry | undefined): void => {
    try {
      statement.run(rowFromApplication(application));
    } catch (error) {
      throw isUniqueViolation(error) ? new ApplicationExistsError() : error;
    }
    origins.write(application.id, application.allowedOrigins);
    writeAudit(audit);
  };
}

/**
 * Writes only what the patch names: a change made meanwhile to another member stays. With a private key ends what was
 * begun with it: links, pages and attempts to connect may be those of whoever it was stolen by.
 */
function prepareUpdate(
  db: Database.Database,
  { find, origins, writeAudit }: Besides & { readonly find: (publicKey: string) => Application | undefined },
) {
  const deleteTickets = db.prepare<[string]>("DELETE FROM tickets WHERE application_id = ?");
  const statement = db.prepare<[Record<string, unknown>], ApplicationRow>(`
    UPDATE applications SET
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
    WHERE public_key = :public_key RETURNING *`);
  return (
    publicKey: string,
    patch: ApplicationPatch,
    now: number,
    options: ChangeOptions<Application>,
  ): Application | undefined => {
    const current = find(publicKey);
    if (current === undefined) return undefined;
    requireCurrent(options, current);
    const row = statement.get({ ...columnsFromPatch(patch), public_key: publicKey, now }) as ApplicationRow;
    if (patch.privateKeyHash !== undefined) deleteTickets.run(row.id);
    if (patch.allowedOrigins !== undefined) origins.write(row.id, patch.allowedOrigins);
    writeAudit(options.audit);
    return applicationFromRow(row);
  };
}
