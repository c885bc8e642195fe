import type { Connection } from "../tokens/connection.js";
import { toldStateOf } from "../tokens/connection-state.js";
import { textFields } from "./text-table.js";

/** A connection for programs: an allow-list of members, so that no token is ever among them. */
export function jsonFromConnection(connection: Connection) {
  const { state, reason } = toldStateOf(connection, Date.now());
  return {
    user: connection.userId,
    provider: connection.providerName,
    state,
    stateReason: reason ?? null,
    failedRenewals: connection.failCount,
    lastFailedAt: timeFrom(connection.lastFailedAt),
    lastFailure: connection.lastErrorClass ?? null,
    nextTryAt: timeFrom(connection.nextTryAt),
    expiresAt: timeFrom(connection.expiresAt),
    hasRefreshToken: connection.refreshToken !== undefined,
    scope: connection.scope,
    tokenType: connection.tokenType,
    originParameters: connection.originParameters,
    version: connection.version,
    createdAt: timeFrom(connection.createdAt),
    updatedAt: timeFrom(connection.updatedAt),
  };
}

/** A connection for a person. */
export function textFromConnection(connection: Connection): string {
  const { user, provider, state, stateReason, expiresAt, scope, originParameters, updatedAt } =
    jsonFromConnection(connection);
  const parameters = Object.entries(originParameters).map(([name, value]) => `${name}=${value}`);
  const { failCount, lastErrorClass, lastFailedAt } = connection;
  const failure = `${failCount}, last ${timeFrom(lastFailedAt) ?? ""} (${lastErrorClass ?? ""})`;
  return textFields([
    ["user", user],
    ["provider", provider],
    ["state", stateReason === null ? state : `${state} (${stateReason})`],
    ...(failCount > 0 ? [["failed renewals", failure] as const] : []),
    ["token expires", expiresAt ?? "unknown"],
    ["can be renewed", connection.refreshToken === undefined ? "no" : "yes"],
    ["scope", scope || "unknown"],
    ...(parameters.length > 0 ? [["parameters", parameters.join(", ")] as const] : []),
    ["updated", updatedAt ?? ""],
  ]);
}

function timeFrom(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}
