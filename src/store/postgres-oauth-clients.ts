import { type AuditEntry, type ChangeOptions, requireCurrent } from "../model/audit.js";
import type { OAuthClientStore, StoredOAuthClient } from "../oauth/oauth-client.js";
import { writeAudit } from "./postgres-audit-records.js";
import { isUniqueViolation } from "./postgres-error.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

const WRITTEN = "id, application_id, provider_name, client_id, client_secret, scope, origin_parameters, updated_at";
const COLUMNS = `${WRITTEN}, refused_since`;

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
  readonly refused_since: number | null;
}

type WrittenRow = Omit<ClientRow, "refused_since">;

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

/** Nobody else changes it before the transaction ends. */
const LOCK = createStatement<KeyParameters, ClientRow>(
  "lock_oauth_client",
  `SELECT ${COLUMNS} FROM oauth_clients
   WHERE application_id = :application_id AND provider_name = :provider_name FOR UPDATE`,
);

const INSERT = createStatement<WrittenRow, ClientRow>(
  "insert_oauth_client",
  `INSERT INTO oauth_clients (${WRITTEN})
   VALUES (:id, :application_id, :provider_name, :client_id, :client_secret, :scope, :origin_parameters, :updated_at)
   RETURNING ${COLUMNS}`,
);

const UPDATE = createStatement<WrittenRow, ClientRow>(
  "update_oauth_client",
  `UPDATE oauth_clients SET client_id = :client_id, client_secret = :client_secret, scope = :scope,
     origin_parameters = :origin_parameters, updated_at = :updated_at, refused_since = NULL
   WHERE application_id = :application_id AND provider_name = :provider_name
   RETURNING ${COLUMNS}`,
);

const REFUSE = createStatement<KeyParameters & { updated_at: number; refused_since: number }>(
  "refuse_oauth_client",
  `UPDATE oauth_clients SET refused_since = :refused_since WHERE application_id = :application_id
     AND provider_name = :provider_name AND updated_at = :updated_at AND refused_since IS NULL`,
);

const ACCEPT = createStatement<KeyParameters>(
  "accept_oauth_client",
  `UPDATE oauth_clients SET refused_since = NULL
   WHERE application_id = :application_id AND provider_name = :provider_name AND refused_since IS NOT NULL`,
);

const DELETE = createStatement<KeyParameters>(
  "delete_oauth_client",
  "DELETE FROM oauth_clients WHERE application_id = :application_id AND provider_name = :provider_name",
);

/** OAuth clients in PostgreSQL. */
export function createPostgresOAuthClientStore(session: Session): OAuthClientStore {
  return {
    async find(applicationId, providerName) {
      const row = await session.read(({ first }) => first(FIND, keyFrom(applicationId, providerName)));
      return row && clientFromRow(row);
    },
    put: async (client) => {
      const key = keyFrom(client.applicationId, client.providerName);
      await changeTwice(session, (queries) => change(queries, key, () => client, undefined));
    },
    change: (applicationId, providerName, decide, audit) =>
      changeTwice(session, (queries) => change(queries, keyFrom(applicationId, providerName), decide, audit)),
    noteRefused: ({ applicationId, providerName, updatedAt }, refusedSince) =>
      session.write(async ({ run }) => {
        const key = keyFrom(applicationId, providerName);
        if (refusedSince === undefined) await run(ACCEPT, key);
        else await run(REFUSE, { ...key, updated_at: updatedAt, refused_since: refusedSince });
      }),
    list: async (applicationId) =>
      (await session.read(({ all }) => all(LIST, { application_id: applicationId }))).map(clientFromRow),
    delete: (applicationId, providerName, options = {}) =>
      session.write((queries) => deleteOne(queries, keyFrom(applicationId, providerName), options)),
  };
}

function keyFrom(applicationId: string, providerName: string): KeyParameters {
  return { application_id: applicationId, provider_name: providerName };
}

/** A row that is not there cannot be locked: who was second to make one begins again, and finds it. */
async function changeTwice<T>(session: Session, work: (queries: Queries) => Promise<T>): Promise<T> {
  try {
    return await session.write(work);
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    return session.write(work);
  }
}

async function change(
  queries: Queries,
  key: KeyParameters,
  decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
  audit: AuditEntry | undefined,
): Promise<StoredOAuthClient> {
  const current = await queries.first(LOCK, key);
  const client = decide(current && clientFromRow(current));
  const row = await queries.first(current === undefined ? INSERT : UPDATE, rowFromClient(client));
  await writeAudit(queries, audit);
  return clientFromRow(row as ClientRow);
}

async function deleteOne(
  queries: Queries,
  key: KeyParameters,
  options: ChangeOptions<StoredOAuthClient>,
): Promise<boolean> {
  const current = await queries.first(LOCK, key);
  if (current === undefined) return false;
  requireCurrent(options, clientFromRow(current));
  await writeAudit(queries, options.audit);
  return (await queries.run(DELETE, key)) > 0;
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
    refusedSince: row.refused_since ?? undefined,
  };
}

function rowFromClient(client: StoredOAuthClient): WrittenRow {
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
