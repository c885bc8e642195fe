import type Database from "better-sqlite3";
import type { OAuthClientStore, StoredOAuthClient } from "../tokens/oauth-client.js";
import type { Attempt } from "./attempt.js";

interface ClientRow {
  readonly id: string;
  readonly application_id: string;
  readonly provider_name: string;
  readonly client_id: string;
  readonly client_secret: Uint8Array | null;
  readonly scope: string;
  readonly origin_parameters: string;
  readonly updated_at: number;
}

/** OAuth clients in SQLite. */
export function createOAuthClientStore(db: Database.Database, attempt: Attempt): OAuthClientStore {
  const selectOne = db.prepare<[string, string], ClientRow>(
    "SELECT * FROM oauth_clients WHERE application_id = ? AND provider_name = ?",
  );
  const selectAll = db.prepare<[string], ClientRow>(
    "SELECT * FROM oauth_clients WHERE application_id = ? ORDER BY provider_name",
  );
  const upsert = db.prepare<[ClientRow]>(`
    INSERT INTO oauth_clients (id, application_id, provider_name, client_id, client_secret, scope,
      origin_parameters, updated_at)
    VALUES (:id, :application_id, :provider_name, :client_id, :client_secret, :scope, :origin_parameters, :updated_at)
    ON CONFLICT (application_id, provider_name) DO UPDATE SET
      client_id = excluded.client_id, client_secret = excluded.client_secret, scope = excluded.scope,
      origin_parameters = excluded.origin_parameters, updated_at = excluded.updated_at`);
  const deleteOne = db.prepare<[string, string]>(
    "DELETE FROM oauth_clients WHERE application_id = ? AND provider_name = ?",
  );
  return {
    find: (applicationId, providerName) =>
      attempt.read(() => {
        const row = selectOne.get(applicationId, providerName);
        return row && clientFromRow(row);
      }),
    put: (client) => attempt.write(() => void upsert.run(rowFromClient(client))),
    list: (applicationId) => attempt.read(() => selectAll.all(applicationId).map(clientFromRow)),
    delete: (applicationId, providerName) =>
      attempt.write(() => deleteOne.run(applicationId, providerName).changes > 0),
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
  };
}

function rowFromClient(client: StoredOAuthClient): ClientRow {
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
