import { RelayError } from "../model/errors.js";
import { revealed } from "../oauth/authorization-server.js";
import type { Connection, ConnectionKey, ConnectionSummary } from "../oauth/connection.js";
import { isGrantKind, isOfClient, isOfKind, isUnfetched, secretsIn } from "../oauth/credentials.js";
import { openToken } from "../oauth/store-answer.js";
import type { Provider, ProviderCatalog } from "../providers/provider.js";
import type { SealBinding, Sealer, Secret } from "../sealing/seal.js";
import type { AdministeredStore } from "./administration.js";

/** One line of an export or import. Unvalidated when imported. */
export interface ConnectionLine extends SealedParts {
  /** Public key. */
  readonly application?: unknown;
  readonly user?: unknown;
  readonly provider?: unknown;
  /** The {@link SealedParts}, sealed, in base64url. */
  readonly sealed?: unknown;
}

/** Members that an exported line contains sealed. A line from another source has them in the clear. */
export interface SealedParts {
  /** Token response (RFC 6749 section 5.1), for the kind oauth2. */
  readonly token?: unknown;
  /** Secret values, for all other kinds. */
  readonly secrets?: unknown;
  /** Values stored with the connection in the clear. */
  readonly parameters?: unknown;
  /** When the tokens were obtained (RFC 3339). */
  readonly obtained_at?: unknown;
}

/** The binding of a line's sealed parts: they open only for this connection. */
export function transferBinding({
  publicKey,
  userId,
  provider,
}: {
  readonly publicKey: string;
  readonly userId: string;
  readonly provider: string;
}): SealBinding {
  return { table: "transfer", column: "connection", applicationId: publicKey, userId, providerName: provider };
}

/** Options of {@link exportConnections}. */
interface ExportOptions {
  readonly store: Pick<AdministeredStore, "connections">;
  readonly catalog: Pick<ProviderCatalog, "find">;
  /** Opens the stored tokens. */
  readonly sealer: Sealer;
  /** Seals lines for the relay that imports them. */
  readonly sealerOfTarget: Pick<Sealer, "seal">;
  /** Undefined for all applications. */
  readonly applicationId: string | undefined;
  /** Undefined for all users. */
  readonly userId: string | undefined;
  /** Undefined for all providers. */
  readonly providerName: string | undefined;
}

/** Rows read at a time. */
const PAGE = 200;

/**
 * Yields lines page by page, with the number of connections left out: those that have ended, whose provider has no
 * definition or one of another kind, or whose tokens do not open. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function* exportConnections(
  options: ExportOptions,
): AsyncGenerator<{ readonly lines: readonly ConnectionLine[]; readonly leftOut: number }> {
  const { store, applicationId, userId, providerName } = options;
  const user = userId === undefined ? { prefix: "" } : { id: userId };
  for (let after: ConnectionKey | undefined; ; ) {
    const found = await store.connections.scan({ applicationId, user, after, limit: PAGE });
    const wanted = found.filter((each) => providerName === undefined || each.providerName === providerName);
    const lines: ConnectionLine[] = [];
    for (const summary of wanted) {
      const line = await lineOf(options, summary);
      if (line !== undefined) lines.push(line);
    }
    yield { lines, leftOut: wanted.length - lines.length };
    after = found.at(-1);
    if (found.length < PAGE) return;
  }
}

async function lineOf(options: ExportOptions, summary: ConnectionSummary): Promise<ConnectionLine | undefined> {
  const { publicKey, userId: user } = summary;
  const connection = await options.store.connections.find(summary);
  const provider = options.catalog.find(summary.providerName);
  if (connection?.state !== "ACTIVE" || provider === undefined || !isOfKind(connection, provider.kind))
    return undefined;
  const parts = openedPartsOf(options, connection, provider);
  if (parts === undefined) return undefined;
  const binding = transferBinding({ publicKey, userId: user, provider: provider.name });
  const sealed = Buffer.from(options.sealerOfTarget.seal(parts, binding)).toString("base64url");
  return { application: publicKey, user, provider: provider.name, sealed };
}

/** The parts as JSON. Undefined for a damaged row, so that the others can still be exported. */
function openedPartsOf(...row: Parameters<typeof partsOf>): string | undefined {
  try {
    return JSON.stringify(partsOf(...row));
  } catch (error) {
    if (error instanceof RelayError) return undefined;
    throw error;
  }
}

function partsOf({ sealer }: ExportOptions, connection: Connection, provider: Provider): SealedParts {
  const { originParameters: parameters, obtainedAt, updatedAt, accessToken, refreshToken, idToken } = connection;
  const obtained_at = new Date(isUnfetched(connection) ? updatedAt : obtainedAt).toISOString();
  const access = openToken(sealer, connection, "access_token", accessToken);
  const refresh = refreshToken && openToken(sealer, connection, "refresh_token", refreshToken);
  if (provider.kind === "oauth2") {
    const id = idToken && openToken(sealer, connection, "id_token", idToken);
    return { token: tokenResponseFrom(connection, { access, refresh, id }), parameters, obtained_at };
  }
  const secrets = revealed(secretsIn(isGrantKind(provider.kind) && refresh !== undefined ? refresh : access));
  // A client that belongs to the application is not exported with the connection.
  const { client_id: clientId, ...others } = parameters;
  const isNamed = isOfClient(provider.kind) && provider.kind !== "jwt_bearer" && clientId !== undefined;
  const isOfApplication = isNamed && !("client_secret" in secrets);
  return { secrets, parameters: isOfApplication ? others : parameters, obtained_at };
}

interface Opened {
  readonly access: Secret;
  readonly refresh: Secret | undefined;
  readonly id: Secret | undefined;
}

/** The stored token as a token response. JSON drops its undefined members. */
function tokenResponseFrom({ tokenType, scope, obtainedAt, expiresAt }: Connection, { access, refresh, id }: Opened) {
  return {
    access_token: access.reveal(),
    refresh_token: refresh?.reveal(),
    id_token: id?.reveal(),
    token_type: tokenType,
    scope,
    expires_in: expiresAt === undefined ? undefined : Math.max(1, Math.ceil((expiresAt - obtainedAt) / 1000)),
  };
}
