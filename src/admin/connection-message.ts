import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Connection as ConnectionMessage,
  ConnectionSchema,
  Connection_State as State,
} from "../../gen/relay/admin/v1/connection_pb.js";
import type { Connection, ConnectionSummary } from "../tokens/connection.js";
import { toldStateOf } from "../tokens/connection-state.js";

/** A connection as operators see it at `now` (milliseconds since the epoch). */
export function messageFromConnection(connection: ConnectionSummary, now: number): ConnectionMessage {
  const { state, reason } = shownStateOf(connection, now);
  const time = (ms: number | undefined) => (ms === undefined ? undefined : timestampFromMs(ms));
  return create(ConnectionSchema, {
    publicKey: connection.publicKey,
    userId: connection.userId,
    providerName: connection.providerName,
    state: State[state],
    stateReason: reason ?? "",
    scope: connection.scope,
    tokenType: connection.tokenType,
    hasRefreshToken: connection.hasRefreshToken,
    originParameters: { ...connection.originParameters },
    createTime: time(connection.createdAt),
    updateTime: time(connection.updatedAt),
    expireTime: time(connection.expiresAt),
    refreshFailureCount: connection.failCount,
    lastRefreshFailureTime: time(connection.lastFailedAt),
    lastRefreshFailure: connection.lastErrorClass ?? "",
    nextRefreshTime: time(connection.nextTryAt),
    refreshFailingTime: time(connection.failCount > 0 ? connection.trouble?.since : undefined),
  });
}

/** The state that a connection is shown in, and filtered by. */
export function shownStateOf(connection: ConnectionSummary, now: number) {
  return toldStateOf({ ...connection, refreshToken: connection.hasRefreshToken || undefined }, now);
}

/** Leaves the tokens out. */
export function summaryFrom(connection: Connection, publicKey: string): ConnectionSummary {
  const { accessToken: _accessToken, refreshToken, idToken: _idToken, ...shown } = connection;
  return { ...shown, publicKey, hasRefreshToken: refreshToken !== undefined };
}
