import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
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
import {
  type CallerFields,
  callerFrom,
  requireAllowedCaller,
  requireApplication,
  requireCallerIds,
} from "../../applications/caller.js";
import { RelayError } from "../../model/errors.js";
import type { AuthorizationOptions } from "../../oauth/authorization-server.js";
import type { Connection } from "../../oauth/connection.js";
import { disconnect } from "../../oauth/disconnect.js";
import { toldStateOf } from "../../oauth/refreshable.js";
import { createConnectLink, requireProvider } from "../../oauth/visit.js";

/** The methods about connections: message → message. Every one rejects with RelayError, and nothing else. */
export interface ConnectionOperations {
  listConnections(request: ListConnectionsRequest, caller: CallerFields): Promise<ListConnectionsResponse>;
  deleteConnection(request: DeleteConnectionRequest, caller: CallerFields): Promise<DeleteConnectionResponse>;
  createConnectLink(request: CreateConnectLinkRequest, caller: CallerFields): Promise<CreateConnectLinkResponse>;
}

/** A user has at most one for each provider. */
const MAX_CONNECTIONS = 1000;

/** Creates the methods. REST and the RPCs use the same, each in front of it. */
export function createConnectionOperations(options: AuthorizationOptions): ConnectionOperations {
  const { connections, pending, now } = options;
  return {
    async listConnections(request, caller) {
      const { id: applicationId } = await requireCaller(options, request, caller);
      const found = await connections.list({ applicationId, userId: request.userId, limit: MAX_CONNECTIONS });
      return create(ListConnectionsResponseSchema, {
        connections: found.map((connection) => messageFromConnection(connection, now())),
      });
    },
    async deleteConnection(request, caller) {
      const { id: applicationId } = await requireCaller(options, request, caller);
      // One that is no longer in the catalogue is taken as written: its connections can still be listed and ended.
      const providerName = options.catalog.find(request.providerName)?.name ?? request.providerName;
      const revocation = await pending.track(
        disconnect(options, { applicationId, userId: request.userId, providerName }),
      );
      if (revocation === undefined) {
        requireProvider(options, providerName);
        throw new RelayError("INVALID_OAUTHID", "This user has no connection at this provider.");
      }
      return create(DeleteConnectionResponseSchema, { revocation });
    },
    async createConnectLink(request, caller) {
      const asserted = { ...request, userSignature: "" };
      const application = await requireCaller(options, asserted, caller, "PRIVATE_KEY");
      const { uri, expiresAt } = await createConnectLink(options, {
        application,
        userId: request.userId,
        providerName: request.providerName,
        providers: request.providers,
        redirectUri: request.redirectUri || undefined,
        scope: request.scope || undefined,
        originParameters: new Map(Object.entries(request.originParameters)),
      });
      return create(CreateConnectLinkResponseSchema, { connectUri: uri, expireTime: timestampFromMs(expiresAt) });
    },
  };
}

/**
 * The application, when the caller may act for the user.
 *
 * @param callerAuth what the caller must show; what the application asks for by default.
 */
async function requireCaller(
  options: AuthorizationOptions,
  request: Pick<ListConnectionsRequest, "publicKey" | "userId" | "userSignature" | "privateKey">,
  fields: CallerFields,
  callerAuth?: Application["callerAuth"],
): Promise<Application> {
  const { publicKey, proof } = callerFrom(fields, request);
  const { userId } = request;
  requireCallerIds({ publicKey, userId });
  const application = await requireApplication(options, { publicKey });
  const judged = callerAuth === undefined ? application : { ...application, callerAuth };
  requireAllowedCaller(options, judged, { userId, proof });
  return application;
}

/** An allow-list of members, so that no token is ever among them. */
function messageFromConnection(connection: Connection, now: number): ConnectionMessage {
  const { state, reason } = toldStateOf(connection, now);
  const time = (ms: number | undefined) => (ms === undefined ? undefined : timestampFromMs(ms));
  return create(ConnectionSchema, {
    providerName: connection.providerName,
    state,
    stateReason: reason ?? "",
    scope: connection.scope,
    originParameters: { ...connection.originParameters },
    createTime: time(connection.createdAt),
    updateTime: time(connection.updatedAt),
    expireTime: time(connection.expiresAt),
    refreshFailureCount: connection.failCount,
    lastRefreshFailureTime: time(connection.lastFailedAt),
    refreshFailingTime: time(connection.failCount > 0 ? connection.trouble?.since : undefined),
    lastRefreshFailure: connection.lastErrorClass ?? "",
    nextRefreshTime: time(connection.nextTryAt),
  });
}
