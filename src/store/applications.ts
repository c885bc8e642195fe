import {
  type Application,
  ApplicationExistsError,
  type ApplicationPage,
  type ApplicationPatch,
  type ApplicationSettings,
  type ApplicationStore,
} from "../applications/application.js";
import { type CallRulesByProvider, jsonFromCallRules, storedCallRules } from "../applications/call-rules.js";
import { inBatches } from "../lib/turns.js";
import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import { writeAudit } from "./audit-records.js";
import type { CallBlockStore } from "./call-blocks.js";
import {
  all,
  camelCase,
  createRemoval,
  createStatement,
  type Database,
  first,
  isUniqueViolation,
  nothing,
  type Operation,
  rangeOfPrefix,
  run,
} from "./database.js";

/** Columns that a patch may change, except the icon, which no look-up and no list reads. */
const CHANGEABLE = [
  ...["name", "private_key_hash", "caller_auth", "allowed_origins", "allowed_addresses", "allowed_redirect_uris"],
  ...["calls_per_minute", "connection_calls_per_minute", "call_rules", "max_call_token_seconds", "accent_color"],
  ...["state", "capture_until"],
];
const EACH = ["id", "public_key", ...CHANGEABLE, "created_at", "updated_at"];
const COLUMNS = EACH.join(", ");

const FIND = createStatement<{ publicKey: string }, ApplicationRow>(
  `SELECT ${COLUMNS} FROM applications WHERE public_key = :public_key`,
);

/** Only for PostgreSQL's cache. */
const FIND_BY_IDS = createStatement<{ ids: readonly string[] }, ApplicationRow>(
  `SELECT ${COLUMNS} FROM applications WHERE id = ANY(:ids::text[])`,
);

/** Locks the row, so that nobody else changes it before the transaction ends. */
const LOCK = createStatement<{ publicKey: string }, ApplicationRow>(
  `SELECT ${COLUMNS} FROM applications WHERE public_key = :public_key FOR UPDATE`,
);

const PUBLIC_KEY = createStatement<{ id: string }, { publicKey: string }>(
  "SELECT public_key FROM applications WHERE id = :id",
);

const ICON = createStatement<{ id: string }, { icon: Uint8Array }>("SELECT icon FROM applications WHERE id = :id");

const LIST = createStatement<object, ApplicationRow>(`SELECT ${COLUMNS} FROM applications ORDER BY created_at, id`);

const PAGE = createStatement<{ keyStart: string; keyEnd: Buffer; limit: number }, ApplicationRow>(`
   SELECT ${COLUMNS} FROM applications WHERE public_key >= :key_start AND public_key < CAST(:key_end AS KEY)
   ORDER BY public_key LIMIT :limit`);

const CREATE = createStatement<object>(
  `INSERT INTO applications (${COLUMNS}, icon) VALUES (${[...EACH, "icon"].map((column) => `:${column}`).join(", ")})`,
);

/** Writes only the columns of the patch, so that a concurrent change of another column stays. */
const UPDATE = createStatement<object, ApplicationRow>(`UPDATE applications
   SET ${[...CHANGEABLE, "icon"].map((column) => `${column} = coalesce(:${column}, ${column})`).join(", ")}, updated_at = :now
   WHERE public_key = :public_key RETURNING ${COLUMNS}`);

const removeTickets = createRemoval("tickets", "kind, expires_at");

const DELETE_TICKETS = createStatement<{ id: string }>("DELETE FROM tickets WHERE application_id = :id");

/** Most application rows that the SQLite cache keeps: a relay has few, and each of its calls needs one. */
const MAX_KEPT = 1000;

interface CachedApplicationStore extends ApplicationStore {
  /** The look-up of every call. */
  readonly lookup: Pick<ApplicationStore, "findByPublicKey">;
}

/** Opens the table. @param calls records of calls, which are deleted with their application. */
export function createApplicationStore(
  database: Database,
  calls: Pick<CallBlockStore, "deleteOf">,
): CachedApplicationStore {
  const textOf = (publicKey: string) => publicKey;
  const kept = database.createCache<string, Application>({ maxRows: MAX_KEPT, textOf, find, findByIds });
  const forget = (publicKey: string) => () => kept.forget(publicKey);
  return {
    findByPublicKey: kept.find,
    lookup: { findByPublicKey: kept.lookUp },
    publicKeyOf: async (id) => (await database.read(() => first(PUBLIC_KEY, { id })))?.publicKey,
    iconOf: async (id) => (await database.read(() => first(ICON, { id })))?.icon ?? NO_ICON,
    listsOrigin: async (origin) => (await database.read(() => first(LISTS_ORIGIN, { origin }))) !== undefined,
    list: async () => (await database.read(() => all(LIST, {}))).map(applicationFromRow),
    page: async (page) => (await database.read(() => all(PAGE, boundsOf(page)))).map(applicationFromRow),
    create: (application, audit) => database.write(() => create(application, audit), nothing),
    async update(publicKey, patch, now, options = {}) {
      const current = patch.privateKeyHash && (await kept.find(publicKey));
      // There may be many, so most are deleted before the transaction.
      if (current !== undefined && (options.isCurrent?.(current) ?? true))
        await removeTickets(database, current.id, nothing);
      return database.write(() => update(publicKey, patch, now, options), forget(publicKey));
    },
    async delete(publicKey, options = {}) {
      const id = await database.write(() => begin(publicKey, options), forget(publicKey));
      return id !== undefined && deleteDisabled(database, calls, id);
    },
  };
}

function* find(publicKey: string): Operation<Application | undefined> {
  const row = yield* first(FIND, { publicKey });
  return row && applicationFromRow(row);
}

function* findByIds(ids: readonly string[]): Operation<Application[]> {
  return (yield* all(FIND_BY_IDS, { ids })).map(applicationFromRow);
}

function boundsOf({ prefix, after, limit }: ApplicationPage) {
  const { start, end } = rangeOfPrefix(prefix, after);
  return { keyStart: start, keyEnd: end, limit };
}

function* create(
  application: Application & Partial<ApplicationSettings>,
  audit: AuditEntry | undefined,
): Operation<void> {
  try {
    yield* run(CREATE, { icon: NO_ICON, ...columnsFromPatch(application) });
  } catch (error) {
    throw isUniqueViolation(error) ? new ApplicationExistsError() : error;
  }
  yield* writeOrigins(application.id, application.allowedOrigins);
  yield* writeAudit(audit);
}

/**
 * Applies a patch. A new private key ends all of the application's links, pages and attempts to connect: whoever stole
 * the old key may have begun them.
 */
function* update(
  publicKey: string,
  patch: ApplicationPatch,
  now: number,
  options: ChangeOptions<Application>,
): Operation<Application | undefined> {
  const current = yield* first(LOCK, { publicKey });
  if (current === undefined) return undefined;
  requireCurrent(options, applicationFromRow(current));
  const row = yield* first(UPDATE, { ...UNCHANGED, ...columnsFromPatch(patch), publicKey, now });
  if (patch.privateKeyHash !== undefined) yield* run(DELETE_TICKETS, { id: current.id });
  if (patch.allowedOrigins !== undefined) yield* writeOrigins(current.id, patch.allowedOrigins);
  yield* writeAudit(options.audit);
  return row && applicationFromRow(row);
}

const REMOVE_ORIGINS = createStatement<{ applicationId: string }>(
  "DELETE FROM application_origins WHERE application_id = :application_id",
);

const ADD_ORIGIN = createStatement<{ origin: string; applicationId: string }>(
  "INSERT INTO application_origins (origin, application_id) VALUES (:origin, :application_id) ON CONFLICT DO NOTHING",
);

/** Whether any active application lists an origin: a preflight names no application, and must not read all of them. */
const LISTS_ORIGIN = createStatement<{ origin: string }, unknown>(`
   SELECT 1 FROM application_origins JOIN applications ON applications.id = application_id
   WHERE origin = :origin AND state = 'ACTIVE' LIMIT 1`);

/** Replaces the origins that an application lists; called inside the transaction that writes the application. */
function* writeOrigins(applicationId: string, origins: readonly string[]): Operation<void> {
  yield* run(REMOVE_ORIGINS, { applicationId });
  for (const origin of origins) yield* run(ADD_ORIGIN, { origin, applicationId });
}

/** Blocks of call records deleted per transaction: a few to a hundred kilobytes each. */
const BLOCK_BATCH = 20;

/** The tables that may have many rows of an application; of these only connections are cached. */
const removeConnections = createRemoval("connections", "user_id, provider_name");
const REMOVALS = [
  removeTickets,
  createRemoval("call_captures", "capture_until"),
  createRemoval("webhook_events", "next_try_at"),
  createRemoval("webhook_deliveries", "place"),
];

const DISABLE = createStatement<{ publicKey: string }>(
  "UPDATE applications SET state = 'DISABLED' WHERE public_key = :public_key",
);

/** Rows that were added meanwhile are deleted with it (ON DELETE CASCADE). */
const DELETE = createStatement<{ id: string }>("DELETE FROM applications WHERE id = :id");

/**
 * Deletes an application with its connections and the records of its calls, in short transactions. It was disabled
 * before, so that calls are refused. A process that dies in between leaves a disabled application that can be deleted
 * again.
 */
async function deleteDisabled(
  database: Database,
  calls: Pick<CallBlockStore, "deleteOf">,
  id: string,
): Promise<boolean> {
  await removeConnections(database, id);
  for (const remove of REMOVALS) await remove(database, id, nothing);
  await deleteCalls(calls, id);
  const isDeleted = (await database.write(() => run(DELETE, { id }))) > 0;
  // Records of calls that were in progress; no more are written from now on.
  await deleteCalls(calls, id);
  return isDeleted;
}

/** Disables an application that will be deleted, and writes the audit record. Returns its id. */
function* begin(publicKey: string, options: ChangeOptions<Application>): Operation<string | undefined> {
  const current = yield* first(LOCK, { publicKey });
  if (current === undefined) return undefined;
  requireCurrent(options, applicationFromRow(current));
  yield* writeAudit(options.audit);
  yield* run(DISABLE, { publicKey });
  return current.id;
}

function deleteCalls(calls: Pick<CallBlockStore, "deleteOf">, id: string): Promise<void> {
  return inBatches(BLOCK_BATCH, () => calls.deleteOf(id, BLOCK_BATCH));
}

/** Columns with JSON. */
type JsonColumn = "allowedOrigins" | "allowedAddresses" | "allowedRedirectUris" | "callRules";
/** A row of `applications`. */
type ApplicationRow = Omit<Application, JsonColumn> & Readonly<Record<JsonColumn, string>>;

const NO_ICON = new Uint8Array(0);
const NO_RULES: CallRulesByProvider = Object.freeze({});

function applicationFromRow(row: ApplicationRow): Application {
  return {
    ...row,
    allowedOrigins: JSON.parse(row.allowedOrigins) as string[],
    allowedAddresses: JSON.parse(row.allowedAddresses) as string[],
    allowedRedirectUris: JSON.parse(row.allowedRedirectUris) as string[],
    callRules: row.callRules === "{}" ? NO_RULES : storedCallRules(row.callRules),
  };
}

/** A patch of no column. */
const UNCHANGED = Object.fromEntries([...CHANGEABLE, "icon"].map((column) => [camelCase(column), undefined]));

function columnsFromPatch(patch: ApplicationPatch) {
  const { allowedOrigins, allowedAddresses, allowedRedirectUris, callRules } = patch;
  return {
    ...patch,
    allowedOrigins: allowedOrigins && JSON.stringify(allowedOrigins),
    allowedAddresses: allowedAddresses && JSON.stringify(allowedAddresses),
    allowedRedirectUris: allowedRedirectUris && JSON.stringify(allowedRedirectUris),
    callRules: callRules && JSON.stringify(jsonFromCallRules(callRules)),
  };
}
