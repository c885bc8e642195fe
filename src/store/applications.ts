import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import {
  type Application,
  ApplicationExistsError,
  type ApplicationPage,
  type ApplicationPatch,
  type ApplicationStore,
} from "../applications/application.js";
import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import { type ApplicationRow, applicationFromRow, columnsFromPatch, rowFromApplication } from "./application-row.js";
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit, type WriteAudit } from "./audit-records.js";
import type { CallsFile } from "./calls-file.js";
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

/** Which browser origins applications list, in a table that is read by origin. */
interface ApplicationOrigins {
  /** Replaces what an application lists; called inside the transaction that writes the application. */
  write(applicationId: string, origins: readonly string[]): void;
  /** Whether any active application lists it. */
  lists(origin: string): boolean;
}

/** Prepares its statements. */
export function prepareApplicationOrigins(db: Database.Database): ApplicationOrigins {
  const remove = db.prepare<[string]>("DELETE FROM application_origins WHERE application_id = ?");
  const insert = db.prepare<[string, string]>(
    "INSERT OR IGNORE INTO application_origins (origin, application_id) VALUES (?, ?)",
  );
  const find = db.prepare<[string]>(`
    SELECT 1 FROM application_origins JOIN applications ON applications.id = application_id
    WHERE origin = ? AND state = 'ACTIVE' LIMIT 1`);
  return {
    write(applicationId, origins) {
      remove.run(applicationId);
      for (const origin of origins) insert.run(origin, applicationId);
    },
    lists: (origin) => find.get(origin) !== undefined,
  };
}

/** Rows deleted in one transaction: a few milliseconds of the write lock and of the event loop. */
const BATCH = 200;

/** Records of calls: some kilobytes to a hundred each. */
const BLOCK_BATCH = 20;

const TABLES = ["connections", "tickets", "call_captures"] as const;

/**
 * Deletes an application with its connections and the records of its calls. It is disabled first, so that no call comes
 * through from then on, and emptied in short transactions; a process that dies in between leaves a disabled application to
 * delete again. The audit trail has it from the first of them on.
 */
function prepareDeleteApplication(
  db: Database.Database,
  attempt: Attempt,
  {
    find,
    writeAudit,
    calls,
  }: {
    readonly find: (publicKey: string) => Application | undefined;
    readonly writeAudit: WriteAudit;
    readonly calls: Pick<CallsFile, "deleteOf">;
  },
) {
  const disable = prepareDisable(db);
  const deletions = TABLES.map((table) => prepareDeleteSome(db, table));
  const deleteRow = prepareDeleteRow(db);
  const deleteCalls = async (id: string) => {
    while ((await calls.deleteOf(id, BLOCK_BATCH)) === BLOCK_BATCH) await nextTurn();
  };
  const begin = (publicKey: string, options: ChangeOptions<Application>): string | undefined => {
    const current = find(publicKey);
    if (current === undefined) return undefined;
    requireCurrent(options, current);
    writeAudit(options.audit);
    return disable(publicKey);
  };
  return async (publicKey: string, options: ChangeOptions<Application> = {}): Promise<boolean> => {
    const id = await attempt.write(() => begin(publicKey, options));
    if (id === undefined) return false;
    for (const deleteSome of deletions) {
      while ((await attempt.write(() => deleteSome(id))) === BATCH) await nextTurn();
    }
    await deleteCalls(id);
    const isDeleted = await attempt.write(() => deleteRow(id));
    // Of calls that were under way; from now on none is written.
    await deleteCalls(id);
    return isDeleted;
  };
}

function prepareDisable(db: Database.Database) {
  const statement = db.prepare<[string], { id: string }>(
    "UPDATE applications SET state = 'DISABLED' WHERE public_key = ? RETURNING id",
  );
  return (publicKey: string): string | undefined => statement.get(publicKey)?.id;
}

function prepareDeleteSome(db: Database.Database, table: (typeof TABLES)[number]) {
  const statement = db.prepare<[string, number]>(`
    DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE application_id = ? LIMIT ?)`);
  return (applicationId: string): number => statement.run(applicationId, BATCH).changes;
}

/** Rows that came meanwhile go with it (ON DELETE CASCADE). */
function prepareDeleteRow(db: Database.Database) {
  const statement = db.prepare<[string]>("DELETE FROM applications WHERE id = ?");
  return (id: string): boolean => statement.run(id).changes > 0;
}
