import type { OAuthClientStore, StoredOAuthClient } from "../tokens/oauth-client.js";
import type { Session } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

const COLUMNS = "id, application_id, provider_name, client_id, client_secret, scope, origin_parameters, updated_at";

/** A row of `oauth_clients`: what providers and operators write is kept as bytes. */
interface ClientRow {
  readonly id: string;
  readonly application_id: string;
  readonly provider_name: string;
  readonly client_id: Buffer;
  readonly client_secret: Uint8Array | null;
  readonly scope: Buffer;
  readonly origin_parameters: string;
  readonly updated_at: number;
}

interface KeyParameters {
  readonly application_id: string;
  readonly provider_name: string;
}

const FIND = createStatement<KeyParameters, ClientRow>(
  "find_oauth_client",
  `SELECT ${COLUMNS} FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name`,
);

const LIST = createStatement<{ application_id: string }, ClientRow>(
  "list_oauth_clients",
  `SELECT ${COLUMNS} FROM oauth_clients WHERE application_id = :application_id ORDER BY provider_name`,
);

const PUT = createStatement<ClientRow>(
  "put_oauth_client",
  `INSERT INTO oauth_clients (${COLUMNS})
   VALUES (:id, :application_id, :provider_name, :client_id, :client_secret, :scope, :origin_parameters, :updated_at)
   ON CONFLICT (application_id, provider_name) DO UPDATE SET
     client_id = excluded.client_id, client_secret = excluded.client_secret, scope = excluded.scope,
     origin_parameters = excluded.origin_parameters, updated_at = excluded.updated_at`,
);

const DELETE = createStatement<KeyParameters>(
  "delete_oauth_client",
  "DELETE FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name",
);

/** OAuth clients in PostgreSQL. */
export function createPostgresOAuthClientStore(session: Session): OAuthClientStore {
  return {
    async find(applicationId, providerName) {
      const key = { application_id: applicationId, provider_name: providerName };
      const row = await session.read(({ first }) => first(FIND, key));
      return row && clientFromRow(row);
    },
    put: (client) => session.write(async ({ run }) => void (await run(PUT, rowFromClient(client)))),
    list: async (applicationId) =>
      (await session.read(({ all }) => all(LIST, { application_id: applicationId }))).map(clientFromRow),
    async delete(applicationId, providerName) {
      const key = { application_id: applicationId, provider_name: providerName };
      return (await session.write(({ run }) => run(DELETE, key))) > 0;
    },
  };
}

function clientFromRow(row: ClientRow): StoredOAuthClient {
  return {
    id: row.id,
    applicationId: row.application_id,
    providerName: row.provider_name,
    clientId: row.client_id.toString(),
    clientSecret: row.client_secret ?? undefined,
    scope: row.scope.toString(),
    originParameters: JSON.parse(row.origin_parameters) as Record<string, string>,
    updatedAt: row.updated_at,
  };
}

function rowFromClient(client: StoredOAuthClient): ClientRow {
  return {
    id: client.id,
    application_id: client.applicationId,
    provider_name: client.providerName,
    client_id: Buffer.from(client.clientId),
    client_secret: client.clientSecret ?? null,
    scope: Buffer.from(client.scope),
    origin_parameters: JSON.stringify(client.originParameters),
    updated_at: client.updatedAt,
  };
}
