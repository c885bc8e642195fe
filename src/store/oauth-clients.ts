import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import type { OAuthClientStore, StoredOAuthClient } from "../oauth/oauth-client.js";
import { writeAudit } from "./audit-records.js";
import { all, createStatement, type Database, first, isUniqueViolation, type Operation, run } from "./database.js";

const WRITTEN = "id, application_id, provider_name, client_id, client_secret, scope, origin_parameters, updated_at";
const COLUMNS = `${WRITTEN}, refused_since`;

/** A row of `oauth_clients`. */
interface ClientRow {
  readonly id: string;
  readonly application_id: string;
  readonly provider_name: string;
  readonly client_id: string;
  readonly client_secret: Uint8Array | null;
  readonly scope: string;
  readonly origin_parameters: string;
  readonly updated_at: number;
  readonly refused_since: number | null;
}

type WrittenRow = Omit<ClientRow, "refused_since">;

interface ClientKey {
  readonly application_id: string;
  readonly provider_name: string;
}

const FIND = createStatement<ClientKey, ClientRow>(
  `SELECT ${COLUMNS} FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name`,
);

const LIST = createStatement<{ application_id: string }, ClientRow>(
  `SELECT ${COLUMNS} FROM oauth_clients WHERE application_id = :application_id ORDER BY provider_name`,
);

/** Locks the row, so that nobody else changes it before the transaction ends. */
const LOCK = createStatement<ClientKey, ClientRow>(`SELECT ${COLUMNS} FROM oauth_clients
   WHERE application_id = :application_id AND provider_name = :provider_name FOR UPDATE`);

const INSERT = createStatement<WrittenRow, ClientRow>(`INSERT INTO oauth_clients (${WRITTEN})
   VALUES (:id, :application_id, :provider_name, :client_id, :client_secret, :scope, :origin_parameters, :updated_at)
   RETURNING ${COLUMNS}`);

const UPDATE = createStatement<WrittenRow, ClientRow>(`
   UPDATE oauth_clients SET client_id = :client_id, client_secret = :client_secret, scope = :scope,
     origin_parameters = :origin_parameters, updated_at = :updated_at, refused_since = NULL
   WHERE application_id = :application_id AND provider_name = :provider_name
   RETURNING ${COLUMNS}`);

const REFUSE = createStatement<ClientKey & { updated_at: number; refused_since: number }>(`
   UPDATE oauth_clients SET refused_since = :refused_since WHERE application_id = :application_id
     AND provider_name = :provider_name AND updated_at = :updated_at AND refused_since IS NULL`);

const ACCEPT = createStatement<ClientKey & { updated_at: number }>(`
   UPDATE oauth_clients SET refused_since = NULL WHERE application_id = :application_id
     AND provider_name = :provider_name AND updated_at = :updated_at AND refused_since IS NOT NULL`);

const DELETE = createStatement<ClientKey>(
  "DELETE FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name",
);

/** OAuth clients. */
export function createOAuthClientStore(database: Database): OAuthClientStore {
  return {
    async find(applicationId, providerName) {
      const row = await database.read(() => first(FIND, keyFrom(applicationId, providerName)));
      return row && clientFromRow(row);
    },
    put: async (client) => {
      const key = keyFrom(client.applicationId, client.providerName);
      await changeTwice(database, () => change(key, () => client, undefined));
    },
    change: (applicationId, providerName, decide, audit) =>
      changeTwice(database, () => change(keyFrom(applicationId, providerName), decide, audit)),
    noteRefused: async ({ applicationId, providerName, updatedAt }, refusedSince) => {
      const key = { ...keyFrom(applicationId, providerName), updated_at: updatedAt };
      await database.write(() =>
        refusedSince === undefined ? run(ACCEPT, key) : run(REFUSE, { ...key, refused_since: refusedSince }),
      );
    },
    list: async (applicationId) =>
      (await database.read(() => all(LIST, { application_id: applicationId }))).map(clientFromRow),
    delete: (applicationId, providerName, options = {}) =>
      database.write(() => deleteOne(keyFrom(applicationId, providerName), options)),
  };
}

function keyFrom(applicationId: string, providerName: string): ClientKey {
  return { application_id: applicationId, provider_name: providerName };
}

/** A missing row cannot be locked. If another process inserts it first, the second attempt finds it. */
async function changeTwice<T>(database: Database, operation: () => Operation<T>): Promise<T> {
  try {
    return await database.write(operation);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    return database.write(operation);
  }
}

function* change(
  key: ClientKey,
  decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
  audit: AuditEntry | undefined,
): Operation<StoredOAuthClient> {
  const current = yield* first(LOCK, key);
  const written = rowFromClient(decide(current && clientFromRow(current)));
  // What is known of a client is of this version: so each change has a later one, even if the clock has gone back.
  const updated_at = current === undefined ? written.updated_at : Math.max(written.updated_at, current.updated_at + 1);
  const row = yield* first(current === undefined ? INSERT : UPDATE, { ...written, updated_at });
  yield* writeAudit(audit);
  return clientFromRow(row as ClientRow);
}

function* deleteOne(key: ClientKey, options: ChangeOptions<StoredOAuthClient>): Operation<boolean> {
  const current = yield* first(LOCK, key);
  if (current === undefined) return false;
  requireCurrent(options, clientFromRow(current));
  yield* writeAudit(options.audit);
  return (yield* run(DELETE, key)) > 0;
}

function clientFromRow(row: ClientRow): StoredOAuthClient {
  return {
    id: row.id,
    applicationId: row.application_id,
    providerName: row.provider_name,
    clientId: row.client_id,
    clientSecret: row.client_secret ?? undefined,
    scope: row.scope,
    originParameters: JSON.parse(row.origin_parameters) as Record<string, string>,
    updatedAt: row.updated_at,
    refusedSince: row.refused_since ?? undefined,
  };
}

function rowFromClient(client: StoredOAuthClient): WrittenRow {
  return {
    id: client.id,
    application_id: client.applicationId,
    provider_name: client.providerName,
    client_id: client.clientId,
    client_secret: client.clientSecret ?? null,
    scope: client.scope,
    origin_parameters: JSON.stringify(client.originParameters),
    updated_at: client.updatedAt,
  };
}
