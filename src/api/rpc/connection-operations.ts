import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Connection as ConnectionMessage,
  ConnectionSchema,
  type CreateConnectLinkRequest,
  type CreateConnectLinkResponse,
  CreateConnectLinkResponseSchema,
  type DeleteConnectionRequest,
  type DeleteConnectionResponse,
  DeleteConnectionResponseSchema,
  type ListConnectionsRequest,
  type ListConnectionsResponse,
  ListConnectionsResponseSchema,
} from "../../../gen/relay/v1/relay_pb.js";
import type { Application } from "../../applications/application.js";
import { type CallToken, isForProvider } from "../../applications/call-token.js";
import {
  type CallerFields,
  callerFrom,
  requireAllowedCaller,
  requireApplication,
  requireCallerIds,
} from "../../applications/caller.js";
import { RelayError } from "../../model/errors.js";
import type { AuthorizationOptions } from "../../oauth/authorization-server.js";
import { createConnectLink } from "../../oauth/connect-session.js";
import type { Connection, ConnectionSummary } from "../../oauth/connection.js";
import { disconnect } from "../../oauth/disconnect.js";
import { toldStateOf } from "../../oauth/refreshable.js";
import { requireProvider } from "../../providers/catalog.js";
import { namesOf } from "../../providers/provider.js";

/** The connection methods: message → message. Each rejects only with RelayError. */
export interface ConnectionOperations {
  listConnections(request: ListConnectionsRequest, caller: CallerFields): Promise<ListConnectionsResponse>;
  deleteConnection(request: DeleteConnectionRequest, caller: CallerFields): Promise<DeleteConnectionResponse>;
  createConnectLink(request: CreateConnectLinkRequest, caller: CallerFields): Promise<CreateConnectLinkResponse>;
}

/** Far above what a user has: at most one for each provider. */
const MAX_CONNECTIONS = 1000;

/** Creates the methods, which the REST routes and the RPCs share. */
export function createConnectionOperations(options: AuthorizationOptions): ConnectionOperations {
  const { connections, pending, now } = options;
  return {
    async listConnections(request, caller) {
      const { application, userId, callToken } = await requireCaller(options, request, caller, {
        takesCallToken: true,
      });
      const found = await connections.list({ applicationId: application.id, userId, limit: MAX_CONNECTIONS });
      const mayKnow = ({ providerName }: Connection) =>
        isForProvider(callToken, namesOf(options.catalog, providerName));
      return create(ListConnectionsResponseSchema, {
        connections: found.filter(mayKnow).map((connection) => messageFromConnection(connection, now())),
      });
    },
    async deleteConnection(request, caller) {
      const { application, userId } = await requireCaller(options, request, caller);
      // A provider that is no longer in the catalogue is taken as written, so that its connections can still be
      // deleted.
      const providerName = options.catalog.find(request.providerName)?.name ?? request.providerName;
      const revocation = await pending.track(
        disconnect(options, { applicationId: application.id, userId, providerName }),
      );
      if (revocation === undefined) {
        requireProvider(options, providerName);
        throw new RelayError("INVALID_OAUTHID", "This user has no connection at this provider.");
      }
      return create(DeleteConnectionResponseSchema, { revocation });
    },
    async createConnectLink(request, caller) {
      const asserted = { ...request, userSignature: "" };
      const { application, userId } = await requireCaller(options, asserted, caller, { callerAuth: "PRIVATE_KEY" });
      const { uri, expiresAt } = await createConnectLink(options, {
        application,
        userId,
        providerName: request.providerName,
        providers: request.providers,
        redirectUri: request.redirectUri || undefined,
        scope: request.scope || undefined,
        originParameters: new Map(Object.entries(request.originParameters)),
        authorizationParameters: request.authorizationParameters,
      });
      return create(CreateConnectLinkResponseSchema, { connectUri: uri, expireTime: timestampFromMs(expiresAt) });
    },
  };
}

/** What a method requires of its caller. */
interface Demand {
  /** The proof that the caller must have; by default what the application requires. */
  readonly callerAuth?: Application["callerAuth"];
  /** Accepts a call token. Its holder must not delete a connection or connect another account. */
  readonly takesCallToken?: true;
}

/** Returns the application and the user. Rejects unless the caller may act for that user. */
async function requireCaller(
  options: AuthorizationOptions,
  request: Pick<ListConnectionsRequest, "publicKey" | "userId" | "userSignature" | "privateKey">,
  fields: CallerFields,
  { callerAuth, takesCallToken }: Demand = {},
): Promise<{ readonly application: Application; readonly userId: string; readonly callToken: CallToken | undefined }> {
  const { publicKey, userId, proof } = callerFrom(fields, request);
  const callToken = proof.callToken?.token;
  if (callToken !== undefined && !takesCallToken) {
    throw new RelayError(
      "CALLER_NOT_ALLOWED",
      "A call token is only for calls. Send the application's own credential.",
    );
  }
  requireCallerIds({ publicKey, userId });
  const application = await requireApplication(options, { publicKey });
  const judged = callerAuth === undefined ? application : { ...application, callerAuth };
  requireAllowedCaller(options, judged, { userId, proof });
  return { application, userId, callToken };
}

function messageFromConnection(connection: Connection, now: number): ConnectionMessage {
  const told = toldStateOf(connection, now);
  return create(ConnectionSchema, { ...toldFieldsOf(connection, told), state: told.state });
}

/** What callers and operators see alike. Copies an allow-list of members, so that a token can never be among them. */
export function toldFieldsOf(
  connection: Omit<ConnectionSummary, "publicKey" | "hasRefreshToken">,
  { reason, expiresAt }: ReturnType<typeof toldStateOf>,
) {
  return {
    providerName: connection.providerName,
    stateReason: reason ?? "",
    scope: connection.scope,
    originParameters: { ...connection.originParameters },
    createTime: timestampFromMs(connection.createdAt),
    updateTime: timestampFromMs(connection.updatedAt),
    expireTime: timestampFrom(expiresAt),
    refreshFailureCount: connection.failCount,
    lastRefreshFailureTime: timestampFrom(connection.lastFailedAt),
    refreshFailingTime: timestampFrom(connection.failCount > 0 ? connection.trouble?.since : undefined),
    lastRefreshFailure: connection.lastErrorClass ?? "",
    nextRefreshTime: timestampFrom(connection.nextTryAt),
  };
}

/** @param ms milliseconds since the epoch. */
export function timestampFrom(ms: number | undefined): Timestamp | undefined {
  return ms === undefined ? undefined : timestampFromMs(ms);
}
