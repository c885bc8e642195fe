import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
  RefreshAttempt_Cause as Cause,
  type Connection as ConnectionMessage,
  ConnectionSchema,
  type ConnectionService,
  type CreateConnectLinkRequest,
  DeleteConnectionResponse_Revocation,
  type ListConnectionsRequest,
  RefreshAttempt_Outcome as Outcome,
  type PutConnectionRequest,
  RefreshAttemptSchema,
  Connection_State as State,
} from "../../gen/relay/admin/v1/connection_pb.js";
import { timestampFrom, toldFieldsOf } from "../api/rpc/connection-operations.js";
import { type Reason, RelayError } from "../model/errors.js";
import { createConnectLink } from "../oauth/connect-session.js";
import type {
  AttemptOutcome,
  Connection,
  ConnectionKey,
  ConnectionRange,
  ConnectionSummary,
  RefreshCause,
} from "../oauth/connection.js";
import { toldStateOf } from "../oauth/refreshable.js";
import type { Provider } from "../providers/provider.js";
import { auditAction, userResource } from "./administration.js";
import {
  contentFrom,
  deleteConnection,
  findClientProblem,
  type PutConnectionInput,
  putConnection,
  refreshNow,
} from "./connections.js";
import {
  type AdminOptions,
  administrationFor,
  invalidArgument,
  invalidField,
  NAME_PART,
  namedApplication,
  namedProvider,
  notFound,
  pageFrom,
  pageOfScan,
  providerNameFrom,
  required,
  requiredId,
  USER_PART,
} from "./standard-methods.js";

/** Four times the longest tokens together, as in the command. In characters. */
const MAX_TOKEN_RESPONSE = 64 * 1024;

/** relay.admin.v1.ConnectionService: message → use case → message. */
export function createConnectionService(options: AdminOptions): ServiceImpl<typeof ConnectionService> {
  const { store, now, disconnection } = options;
  return {
    async getConnection(request) {
      const { application, userId, providerName } = await keyFrom(options, request);
      const connection = await store.connections.find({ applicationId: application.id, userId, providerName });
      if (connection === undefined) throw noConnection();
      return wholeMessage(options, connection, application.publicKey);
    },
    async listConnections(request) {
      const { rows, nextPageToken } = await listConnections(options, request);
      return { connections: rows.map((row) => messageFromConnection(row, now())), nextPageToken };
    },
    async putConnection(request, context) {
      const input = await inputFrom(options, request);
      const connection = await putConnection(administrationFor(options, context), input);
      return messageFromConnection(summaryFrom(connection, request.publicKey), now());
    },
    async refreshConnection(request, context) {
      const refreshed = await refreshNow(administrationFor(options, context), options, await keyFrom(options, request));
      if (refreshed === undefined) throw noConnection();
      if ("hopeless" in refreshed) throw new ConnectError(refreshed.hopeless, Code.FailedPrecondition);
      const { connection, problem } = refreshed;
      return { connection: await wholeMessage(options, connection, request.publicKey), problem };
    },
    createConnectLink: (request, context) => connectLinkFor(options, request, context),
    async deleteConnection(request, context) {
      const key = await keyFrom(options, request);
      const provider = request.skipRevocation ? "untold" : disconnection;
      const deletion = deleteConnection(administrationFor(options, context), key, provider);
      const revocation = await disconnection.pending.track(deletion);
      if (revocation === undefined) throw noConnection();
      return { revocation: DeleteConnectionResponse_Revocation[revocation] };
    },
  };
}

async function keyFrom(
  { store, catalog }: AdminOptions,
  request: { readonly publicKey: string; readonly userId: string; readonly providerName: string },
) {
  const userId = requiredId(request.userId, "user_id");
  const providerName = providerNameFrom(catalog, request.providerName);
  return { application: await namedApplication(store.applications, request.publicKey), userId, providerName };
}

async function inputFrom({ store, catalog }: AdminOptions, request: PutConnectionRequest): Promise<PutConnectionInput> {
  const { publicKey, userId, providerName } = request;
  const provider = namedProvider(catalog, providerName);
  const input = {
    userId: requiredId(userId, "user_id"),
    provider,
    ...inputContentFrom(request, provider),
    application: await namedApplication(store.applications, publicKey),
  };
  const problem = await findClientProblem(store, input);
  if (problem === undefined) return input;
  const part = problem.parameter === "client_id" ? "origin_parameters" : "secrets";
  throw invalidArgument(`${part}.${problem.parameter}`, problem.problem);
}

/** Throws INVALID_ARGUMENT, which never contains a value. */
function inputContentFrom(request: PutConnectionRequest, provider: Provider) {
  const { tokenResponse, secrets, originParameters } = request;
  const { kind } = provider;
  if (kind !== "oauth2" && tokenResponse !== "")
    throw invalidArgument("token_response", `does not apply to the kind ${kind}: send secrets`);
  if (kind === "oauth2") {
    if (Object.keys(secrets).length > 0)
      throw invalidArgument("secrets", `does not apply to the kind ${kind}: send token_response`);
    if (tokenResponse.length > MAX_TOKEN_RESPONSE) throw invalidArgument("token_response", "is longer than 64 KiB");
    required(tokenResponse, "token_response");
  }
  // On the wire these are maps, so duplicates cannot be detected.
  const mapOf = (texts: Readonly<Record<string, string>>) => new Map(Object.entries(texts));
  const given = { tokenResponse, secrets: mapOf(secrets), open: mapOf(originParameters) };
  const content = contentFrom(given, provider);
  if (!("problem" in content)) return content;
  const { part, parameter, problem } = content;
  if (part === "token_response") throw invalidArgument(part, `is invalid: ${problem.replace(/\.$/, "")}`);
  throw invalidArgument(`${part === "secrets" ? part : "origin_parameters"}.${parameter}`, problem);
}

function noConnection() {
  return notFound("connection of this user at this provider");
}

/** Rows scanned for one page. */
const MAX_SCANNED_ROWS = 50_000;
/** Application, user, provider. */
const KEY_PARTS = [NAME_PART, USER_PART, NAME_PART];

/** Lists connections by key. Provider and state have no index, so rows are scanned. */
async function listConnections(options: AdminOptions, request: ListConnectionsRequest) {
  const { publicKey, userId, userIdPrefix, providerName, state, refreshFailing } = request;
  const page = pageFrom(request, [publicKey, userId, userIdPrefix, providerName, state, refreshFailing], KEY_PARTS);
  const applicationId = await applicationIdFrom(options, request);
  const range = { applicationId, user: userId === "" ? { prefix: userIdPrefix } : { id: userId } };
  const { connections } = options.store;
  return pageOfScan<ConnectionSummary>(page, {
    read: (texts, limit) => {
      const after = keyFromTexts(texts);
      return applicationId === undefined && userId !== ""
        ? connections.scanUser(userId, after, limit)
        : connections.scan({ ...range, after, limit } satisfies ConnectionRange);
    },
    isWanted: wantedFrom(options, request),
    keyOf: (row) => [row.applicationId, row.userId, row.providerName],
    maxRows: MAX_SCANNED_ROWS,
  });
}

async function applicationIdFrom(
  { store }: AdminOptions,
  { publicKey, userId, userIdPrefix }: ListConnectionsRequest,
): Promise<string | undefined> {
  if (userId !== "" && userIdPrefix !== "") throw invalidArgument("user_id_prefix", "cannot be combined with user_id");
  if (publicKey !== "") return (await namedApplication(store.applications, publicKey)).id;
  if (userIdPrefix !== "")
    throw invalidArgument("public_key", "is required, because user ids belong to an application");
  return undefined;
}

/** The filter for rows; undefined when every row matches. */
function wantedFrom(
  { catalog, now }: AdminOptions,
  { providerName, state, refreshFailing }: ListConnectionsRequest,
): ((connection: ConnectionSummary) => boolean) | undefined {
  if (providerName === "" && state === State.UNSPECIFIED && !refreshFailing) return undefined;
  const name = providerName === "" ? undefined : providerNameFrom(catalog, providerName);
  const at = now();
  return (connection) =>
    (name === undefined || connection.providerName === name) &&
    (!refreshFailing || (connection.failCount > 0 && connection.state === "ACTIVE")) &&
    (state === State.UNSPECIFIED || State[shownStateOf(connection, at).state] === state);
}

function keyFromTexts(texts: readonly string[] | undefined): ConnectionKey | undefined {
  if (texts === undefined) return undefined;
  const [applicationId = "", userId = "", providerName = ""] = texts;
  return { applicationId, userId, providerName };
}

/** The message of a connection, as of `now` (milliseconds since the epoch). */
export function messageFromConnection(connection: ConnectionSummary, now: number): ConnectionMessage {
  const told = shownStateOf(connection, now);
  return create(ConnectionSchema, {
    ...toldFieldsOf(connection, told),
    publicKey: connection.publicKey,
    userId: connection.userId,
    state: State[told.state],
    tokenType: connection.tokenType,
    hasRefreshToken: connection.hasRefreshToken,
    // 0 for a connection that has not obtained its first token yet.
    tokenTime: timestampFrom(connection.obtainedAt || undefined),
    refreshTime: timestampFrom(connection.refreshedAt),
  });
}

/** The same with the last refreshes, which take another query. */
async function wholeMessage(
  { store, now }: AdminOptions,
  connection: Connection,
  publicKey: string,
): Promise<ConnectionMessage> {
  const attempts = await store.connections.refreshesOf(connection);
  return {
    ...messageFromConnection(summaryFrom(connection, publicKey), now()),
    refreshAttempts: attempts.map(({ at, outcome, cause, answer, durationMs }) =>
      create(RefreshAttemptSchema, {
        endTime: timestampFromMs(at),
        outcome: Outcome[outcome.toUpperCase() as Uppercase<AttemptOutcome>],
        cause: Cause[cause.toUpperCase() as Uppercase<RefreshCause>],
        answer,
        duration: durationFromMs(durationMs),
      }),
    ),
  };
}

/** The state that is shown and filtered by. */
function shownStateOf(connection: ConnectionSummary, now: number) {
  return toldStateOf({ ...connection, refreshToken: connection.hasRefreshToken || undefined }, now);
}

/** A connection without its tokens. */
export function summaryFrom(connection: Connection, publicKey: string): ConnectionSummary {
  const { accessToken: _accessToken, refreshToken, idToken: _idToken, ...shown } = connection;
  return { ...shown, publicKey, hasRefreshToken: refreshToken !== undefined };
}

/**
 * Creates a connect link for a user, after writing the audit entry: for the named providers, or all of the
 * application's. The link itself is not stored.
 */
async function connectLinkFor(options: AdminOptions, request: CreateConnectLinkRequest, context: HandlerContext) {
  const { store, connecting } = options;
  const { publicKey, userId, providerNames, redirectUri, scope } = request;
  const application = await namedApplication(store.applications, publicKey);
  requiredId(userId, "user_id");
  if (application.state !== "ACTIVE")
    throw new ConnectError("This application is disabled: no user can connect.", Code.FailedPrecondition);
  // An empty name would make the link valid for all of the application's providers, which the list does not say.
  if (providerNames.includes("")) throw invalidField("provider_names", "provider_names has an empty entry.");
  const [only = "", ...others] = providerNames;
  const link = await createConnectLink(connecting, {
    application,
    userId,
    providerName: others.length === 0 ? only : "",
    providers: others.length === 0 ? [] : providerNames,
    redirectUri: redirectUri || undefined,
    scope: scope || undefined,
    originParameters: new Map(),
    authorizationParameters: {},
  }).catch((error: unknown) => {
    throw refusedLink(error);
  });
  const administration = administrationFor(options, context);
  await auditAction(administration, "ConnectionService.CreateConnectLink", userResource(publicKey, userId));
  return { connectUri: link.uri, expireTime: timestampFromMs(link.expiresAt) };
}

/** The request field that causes each refusal. */
const FIELDS: Partial<Record<Reason, string>> = {
  INVALID_PROVIDER: "provider_names",
  CALLER_NOT_ALLOWED: "redirect_uri",
  CALL_FORMAT_ERROR: "scope",
};

function refusedLink(error: unknown): unknown {
  if (!(error instanceof RelayError)) return error;
  const field = FIELDS[error.reason];
  if (field !== undefined) return invalidField(field, error.message);
  return error.reason === "PROVIDER_MISCONFIGURED" ? new ConnectError(error.message, Code.FailedPrecondition) : error;
}
