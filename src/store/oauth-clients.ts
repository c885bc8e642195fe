import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import type { OAuthClientStore, StoredOAuthClient } from "../oauth/oauth-client.js";
import { writeAudit } from "./audit-records.js";
import { all, createStatement, type Database, first, isUniqueViolation, type Operation, run } from "./database.js";

const WRITTEN = "id, application_id, provider_name, client_id, client_secret, scope, origin_parameters, updated_at";
const COLUMNS = `${WRITTEN}, refused_since`;

/** A row of `oauth_clients`. */
type ClientRow = Omit<StoredOAuthClient, "originParameters"> & { /** JSON. */ readonly originParameters: string };

type WrittenRow = Omit<ClientRow, "refusedSince">;
type ClientKey = Pick<ClientRow, "applicationId" | "providerName">;

const FIND = createStatement<ClientKey, ClientRow>(
  `SELECT ${COLUMNS} FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name`,
);

const LIST = createStatement<{ applicationId: string }, ClientRow>(
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

const REFUSE = createStatement<ClientKey & { updatedAt: number; refusedSince: number }>(`
   UPDATE oauth_clients SET refused_since = :refused_since WHERE application_id = :application_id
     AND provider_name = :provider_name AND updated_at = :updated_at AND refused_since IS NULL`);

const ACCEPT = createStatement<ClientKey & { updatedAt: number }>(`
   UPDATE oauth_clients SET refused_since = NULL WHERE application_id = :application_id
     AND provider_name = :provider_name AND updated_at = :updated_at AND refused_since IS NOT NULL`);

const DELETE = createStatement<ClientKey>(
  "DELETE FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name",
);

/** OAuth clients. */
export function createOAuthClientStore(database: Database): OAuthClientStore {
  return {
    async find(applicationId, providerName) {
      const row = await database.read(() => first(FIND, { applicationId, providerName }));
      return row && clientFromRow(row);
    },
    async change(applicationId, providerName, decide, audit) {
      const operation = () => change({ applicationId, providerName }, decide, audit);
      try {
        return await database.write(operation);
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        // A missing row cannot be locked. Another process has inserted it first, so now it is found.
        return database.write(operation);
      }
    },
    noteRefused: async (client, refusedSince) => {
      await database.write(() =>
        refusedSince === undefined ? run(ACCEPT, client) : run(REFUSE, { ...client, refusedSince }),
      );
    },
    list: async (applicationId) => (await database.read(() => all(LIST, { applicationId }))).map(clientFromRow),
    delete: (applicationId, providerName, options = {}) =>
      database.write(() => deleteOne({ applicationId, providerName }, options)),
  };
}

function* change(
  key: ClientKey,
  decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
  audit: AuditEntry | undefined,
): Operation<StoredOAuthClient> {
  const current = yield* first(LOCK, key);
  const written = rowFromClient(decide(current && clientFromRow(current)));
  // What is known of a client is of this version: so each change has a later one, even if the clock has gone back.
  const updatedAt = current === undefined ? written.updatedAt : Math.max(written.updatedAt, current.updatedAt + 1);
  const row = yield* first(current === undefined ? INSERT : UPDATE, { ...written, updatedAt });
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
  return { ...row, originParameters: JSON.parse(row.originParameters) as Record<string, string> };
}

function rowFromClient(client: StoredOAuthClient): WrittenRow {
  return { ...client, originParameters: JSON.stringify(client.originParameters) };
}
