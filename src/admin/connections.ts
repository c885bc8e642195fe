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
import type { Revocation } from "../oauth/token-request.js";
import {
  parseTokenResponse,
  type TokenResponse,
  TokenResponseError,
  type ToldMembers,
  toldMembersFrom,
} from "../oauth/token-response.js";
import { parseValues } from "../providers/connection-value.js";
import type { Provider } from "../providers/provider.js";
import { type Administration, auditEntryFrom, connectionResource } from "./administration.js";

/** Whose connection, at which provider, with what. */
export interface PutConnectionInput {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  readonly originParameters: Readonly<Record<string, string>>;
  readonly response: TokenResponse;
  /** What the token response tells besides. */
  readonly told: ToldMembers;
}

/** What somebody gave for a connection. */
interface GivenContent {
  /** Text of one, of the kind oauth2. */
  readonly tokenResponse: string;
  /** Of all other kinds. */
  readonly secrets: ReadonlyMap<string, string>;
  /** Values that stand with the connection. */
  readonly open: ReadonlyMap<string, string>;
}

/** What is wrong with it; never holds any of it. */
interface ContentProblem {
  readonly part: "token_response" | "secrets" | "parameters";
  /** Empty for a token response, of which `problem` is a whole sentence; else that follows the name. */
  readonly parameter: string;
  readonly problem: string;
}

/** Reads what the provider's kind takes. Pure. */
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
    // Its message names the member and never holds a value.
    return { part: "token_response", parameter: "", problem: error.message };
  }
}

/**
 * Seals the tokens and stores the connection; one that exists gets the new tokens. Values that the operator has fixed for the
 * OAuth client, or the token response tells, stand with it unless others were given.
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
  const originParameters = withAnswer(provider, known, known, "token", told);
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

/** What is wrong with the client of a connection whose tokens the relay gets; undefined when nothing is. */
export async function findClientProblem(
  { oauthClients }: Pick<Administration["store"], "oauthClients">,
  { application, provider, originParameters, response }: PutConnectionInput,
) {
  if (!isOfClient(provider.kind)) return undefined;
  const hasClient = (await oauthClients.find(application.id, provider.name)) !== undefined;
  const secrets = secretsIn(response.refreshToken ?? response.accessToken);
  return problemOfClient(provider, originParameters, secrets, hasClient);
}

/** Which connection. */
export interface NamedConnection {
  readonly application: { readonly id: string; readonly publicKey: string };
  readonly userId: string;
  readonly providerName: string;
}

/** What came of a refresh that an operator asked for; or, as a sentence, why none can help, and none was begun. */
export type Refreshed =
  | {
      /** As it is afterwards. */
      readonly connection: Connection;
      /** Why there is no new token, for people; empty when there is one. */
      readonly problem: string;
    }
  | { readonly hopeless: string };

/**
 * Gets a new token for a connection now, due or not; undefined when there is no such connection. Written down before the
 * provider is asked. Rejects with RelayError STORE_UNAVAILABLE.
 */
export async function refreshNow(
  administration: Administration,
  { refresher }: { readonly refresher: Pick<Refresher, "refresh"> },
  { application, userId, providerName }: NamedConnection,
): Promise<Refreshed | undefined> {
  const { connections, audit } = administration.store;
  const key = { applicationId: application.id, userId, providerName };
  const before = await connections.find(key);
  if (before === undefined) return undefined;
  if (toldStateOf(before, administration.now()).state !== "ACTIVE")
    return { hopeless: "The user must connect again: a refresh cannot help any more." };
  if (before.refreshToken === undefined)
    return { hopeless: "There is nothing to refresh this connection with. The user can connect again." };
  const resource = connectionResource(application.publicKey, userId, providerName);
  const entry = auditEntryFrom(administration, "ConnectionService.RefreshConnection", resource);
  await audit.add({ ...entry, outcome: "DONE" });
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

/** What became of the token; `SKIPPED`: the operator did not want the provider to be told. */
export type ToldRevocation = Revocation | "SKIPPED";

/**
 * Deletes a connection, and tells the provider unless there is no way given. Undefined when there was none. Rejects with
 * RelayError STORE_UNAVAILABLE when it cannot be deleted.
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
