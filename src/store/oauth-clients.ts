import type Database from "better-sqlite3";
import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import type { OAuthClientStore, StoredOAuthClient } from "../oauth/oauth-client.js";
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit } from "./audit-records.js";

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

/** OAuth clients in SQLite. */
export function createOAuthClientStore(db: Database.Database, attempt: Attempt): OAuthClientStore {
  const { find, list } = prepareReads(db);
  const change = prepareChange(db, find);
  const note = prepareNote(db);
  const deleteOne = prepareDelete(db, find);
  return {
    find: (applicationId, providerName) => attempt.read(() => find(applicationId, providerName)),
    put: (client) => attempt.write(() => void change(client.applicationId, client.providerName, () => client)),
    change: (applicationId, providerName, decide, audit) =>
      attempt.write(() => change(applicationId, providerName, decide, audit)),
    noteRefused: (client, refusedSince) => attempt.write(() => note(client, refusedSince)),
    list: (applicationId) => attempt.read(() => list(applicationId)),
    delete: (applicationId, providerName, options = {}) =>
      attempt.write(() => deleteOne(applicationId, providerName, options)),
  };
}

type Find = (applicationId: string, providerName: string) => StoredOAuthClient | undefined;

function prepareReads(db: Database.Database): {
  readonly find: Find;
  readonly list: (applicationId: string) => StoredOAuthClient[];
} {
  const selectOne = db.prepare<[string, string], ClientRow>(
    "SELECT * FROM oauth_clients WHERE application_id = ? AND provider_name = ?",
  );
  const selectAll = db.prepare<[string], ClientRow>(
    "SELECT * FROM oauth_clients WHERE application_id = ? ORDER BY provider_name",
  );
  return {
    find: (applicationId, providerName) => {
      const row = selectOne.get(applicationId, providerName);
      return row && clientFromRow(row);
    },
    list: (applicationId) => selectAll.all(applicationId).map(clientFromRow),
  };
}

function prepareChange(db: Database.Database, find: Find) {
  const writeAudit = prepareWriteAudit(db);
  const upsert = db.prepare<[Omit<ClientRow, "refused_since">], ClientRow>(`
    INSERT INTO oauth_clients (id, application_id, provider_name, client_id, client_secret, scope,
      origin_parameters, updated_at)
    VALUES (:id, :application_id, :provider_name, :client_id, :client_secret, :scope, :origin_parameters, :updated_at)
    ON CONFLICT (application_id, provider_name) DO UPDATE SET
      client_id = excluded.client_id, client_secret = excluded.client_secret, scope = excluded.scope,
      origin_parameters = excluded.origin_parameters, updated_at = excluded.updated_at,
      refused_since = NULL
    RETURNING *`);
  return (
    applicationId: string,
    providerName: string,
    decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
    audit?: AuditEntry,
  ): StoredOAuthClient => {
    const client = decide(find(applicationId, providerName));
    const row = upsert.get(rowFromClient(client)) as ClientRow;
    writeAudit(audit);
    return clientFromRow(row);
  };
}

function prepareNote(db: Database.Database) {
  const refuse = db.prepare<[number, string, string, number]>(`
    UPDATE oauth_clients SET refused_since = ?
    WHERE application_id = ? AND provider_name = ? AND updated_at = ? AND refused_since IS NULL`);
  const accept = db.prepare<[string, string]>(`
    UPDATE oauth_clients SET refused_since = NULL
    WHERE application_id = ? AND provider_name = ? AND refused_since IS NOT NULL`);
  return (
    { applicationId, providerName, updatedAt }: Pick<StoredOAuthClient, "applicationId" | "providerName" | "updatedAt">,
    refusedSince: number | undefined,
  ): void => {
    if (refusedSince === undefined) accept.run(applicationId, providerName);
    else refuse.run(refusedSince, applicationId, providerName, updatedAt);
  };
}

function prepareDelete(db: Database.Database, find: Find) {
  const writeAudit = prepareWriteAudit(db);
  const statement = db.prepare<[string, string]>(
    "DELETE FROM oauth_clients WHERE application_id = ? AND provider_name = ?",
  );
  return (applicationId: string, providerName: string, options: ChangeOptions<StoredOAuthClient>): boolean => {
    const current = find(applicationId, providerName);
    if (current === undefined) return false;
    requireCurrent(options, current);
    writeAudit(options.audit);
    return statement.run(applicationId, providerName).changes > 0;
  };
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

function rowFromClient(client: StoredOAuthClient): Omit<ClientRow, "refused_since"> {
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
