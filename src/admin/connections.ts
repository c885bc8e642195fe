import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import type { AuditEntry } from "../model/audit.js";
import { RelayError } from "../model/errors.js";
import type { Connection, NewConnection } from "../oauth/connection.js";
import { boundValuesOf, withAnswer } from "../oauth/connection-values.js";
import {
  isOfClient,
  obtainedAtOf,
  parseGiven,
  problemOfClient,
  responseFromSecrets,
  secretsIn,
} from "../oauth/credentials.js";
import { type DisconnectOptions, disconnect } from "../oauth/disconnect.js";
import { toldStateOf } from "../oauth/refreshable.js";
import type { Refresher } from "../oauth/refresher.js";
import { newConnectionFrom } from "../oauth/store-answer.js";
import type { Revocation } from "../oauth/token-endpoint.js";
import {
  parseTokenResponse,
  type TokenResponse,
  TokenResponseError,
  type ToldMembers,
  toldMembersFrom,
} from "../oauth/token-response.js";
import { parseValues, withDefaults } from "../providers/connection-value.js";
import type { Provider } from "../providers/provider.js";
import { type Administration, auditAction, auditEntryFrom, connectionResource } from "./administration.js";

/** A connection to store: user, provider and content. */
export interface PutConnectionInput {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  readonly originParameters: Readonly<Record<string, string>>;
  readonly response: TokenResponse;
  /** Further members of the token response. */
  readonly told: ToldMembers;
}

/** Unparsed content of a connection. */
interface GivenContent {
  /** Text of a token response, for the kind oauth2. */
  readonly tokenResponse: string;
  /** For all other kinds. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Values stored with the connection in the clear. */
  readonly open: ReadonlyMap<string, string>;
}

/** Why the content is refused. Never quotes the content. */
interface ContentProblem {
  readonly part: "token_response" | "secrets" | "parameters";
  /** Empty for a token response, where `problem` is a whole sentence; otherwise `problem` follows this name. */
  readonly parameter: string;
  readonly problem: string;
}

/** Parses the content that the provider's kind expects. Pure. */
export function contentFrom(
  given: GivenContent,
  provider: Provider,
): Pick<PutConnectionInput, "response" | "originParameters" | "told"> | ContentProblem {
  if (provider.kind !== "oauth2") {
    const parsed = parseGiven(given, provider);
    if ("problem" in parsed) return { ...parsed, part: parsed.isSecret ? "secrets" : "parameters" };
    const response = responseFromSecrets(provider.kind, parsed.secrets);
    return { response, originParameters: parsed.open, told: toldMembersFrom("") };
  }
  try {
    const response = parseTokenResponse(given.tokenResponse, provider.oauth2?.tokenResponseMember);
    const parsed = parseValues(given.open, provider);
    if ("problem" in parsed) return { ...parsed, part: "parameters" };
    return { response, originParameters: parsed.values, told: toldMembersFrom(given.tokenResponse) };
  } catch (error) {
    if (!(error instanceof TokenResponseError)) throw error;
    // The message names the member and never contains a value.
    return { part: "token_response", parameter: "", problem: error.message };
  }
}

/**
 * Seals the tokens and stores the connection; an existing one gets the new tokens. Values that the operator has fixed
 * for the OAuth client, or that the token response contains, are stored with it unless others were given.
 */
export async function putConnection(administration: Administration, input: PutConnectionInput): Promise<Connection> {
  const at = administration.now();
  const { connection, audit } = await connectionFrom(administration, input, at);
  return administration.store.connections.put(connection, at, audit);
}

/**
 * What `putConnection()` stores.
 *
 * @param obtainedAt when the tokens were obtained, milliseconds since the epoch.
 */
export async function connectionFrom(
  administration: Administration,
  { application, userId, provider, originParameters: given, response, told }: PutConnectionInput,
  obtainedAt: number,
): Promise<{ readonly connection: NewConnection; readonly audit: AuditEntry }> {
  const { store, sealer } = administration;
  const client = await store.oauthClients.find(application.id, provider.name);
  const hasOwnClient = isOfClient(provider.kind) && Object.hasOwn(given, "client_id");
  const known = client === undefined || hasOwnClient ? given : { ...boundValuesOf(provider, client), ...given };
  const originParameters = withDefaults(withAnswer(provider, known, known, "token", told), provider);
  const connection = newConnectionFrom(sealer, {
    id: randomUUID(),
    key: { applicationId: application.id, userId, providerName: provider.name },
    response,
    defaultExpiresInS: provider.oauth2?.defaultExpiresIn,
    originParameters,
    obtainedAt: obtainedAtOf(provider.kind, obtainedAt),
  });
  const resource = connectionResource(application.publicKey, userId, provider.name);
  const fields = [provider.kind === "oauth2" ? "token_response" : "secrets", "origin_parameters"];
  return { connection, audit: auditEntryFrom(administration, "ConnectionService.PutConnection", resource, fields) };
}

/** What is wrong with the client of a connection whose tokens the relay obtains; undefined when nothing is. */
export async function findClientProblem(
  { oauthClients }: Pick<Administration["store"], "oauthClients">,
  { application, provider, originParameters, response }: PutConnectionInput,
) {
  if (!isOfClient(provider.kind)) return undefined;
  const hasClient = (await oauthClients.find(application.id, provider.name)) !== undefined;
  const secrets = secretsIn(response.refreshToken ?? response.accessToken);
  return problemOfClient(provider, originParameters, secrets, hasClient);
}

export interface NamedConnection {
  readonly application: { readonly id: string; readonly publicKey: string };
  readonly userId: string;
  readonly providerName: string;
}

/** Result of a refresh on an operator's request, or, as a sentence, why none was attempted. */
export type Refreshed =
  | {
      /** The connection after the refresh. */
      readonly connection: Connection;
      /** Why there is no new token, as a sentence; empty when there is one. */
      readonly problem: string;
    }
  | { readonly hopeless: string };

/**
 * Refreshes a connection's token now, due or not; undefined when there is no such connection. Writes the audit entry
 * before it contacts the provider. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function refreshNow(
  administration: Administration,
  { refresher }: { readonly refresher: Pick<Refresher, "refresh"> },
  { application, userId, providerName }: NamedConnection,
): Promise<Refreshed | undefined> {
  const { connections } = administration.store;
  const key = { applicationId: application.id, userId, providerName };
  const before = await connections.find(key);
  if (before === undefined) return undefined;
  if (toldStateOf(before, administration.now()).state !== "ACTIVE")
    return { hopeless: "The user must connect again; refreshing no longer helps." };
  if (before.refreshToken === undefined)
    return { hopeless: "This connection has no refresh token. The user can connect again." };
  const resource = connectionResource(application.publicKey, userId, providerName);
  await auditAction(administration, "ConnectionService.RefreshConnection", resource);
  const problem = await problemOf(refresher.refresh(before, "requested"));
  const connection = await connections.find(key);
  return connection && { connection, problem };
}

async function problemOf(refresh: Promise<void>): Promise<string> {
  try {
    await refresh;
    return "";
  } catch (error) {
    if (error instanceof RelayError && error.reason !== "STORE_UNAVAILABLE") return error.message;
    throw error;
  }
}

/** Result of the revocation; `SKIPPED` when the operator chose not to notify the provider. */
export type ToldRevocation = Revocation | "SKIPPED";

/**
 * Deletes a connection, and revokes its token at the provider unless `provider` is `untold`. Undefined when there was
 * none. Rejects with RelayError STORE_UNAVAILABLE when it cannot be deleted.
 */
export async function deleteConnection(
  administration: Administration,
  { application, userId, providerName }: NamedConnection,
  provider: DisconnectOptions | "untold",
): Promise<ToldRevocation | undefined> {
  const resource = connectionResource(application.publicKey, userId, providerName);
  const audit = auditEntryFrom(administration, "ConnectionService.DeleteConnection", resource);
  const key = { applicationId: application.id, userId, providerName };
  if (provider !== "untold") return disconnect(provider, key, audit);
  const deleted = await administration.store.connections.delete(key, administration.now(), audit);
  return deleted === undefined ? undefined : "SKIPPED";
}
