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
    failingSince: timeFrom(connection.failCount > 0 ? connection.trouble?.since : undefined),
    tokenRefusedSince: timeFrom(connection.refreshToken === undefined ? connection.trouble?.since : undefined),
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
  return textFields([
    ["user", user],
    ["provider", provider],
    ["state", stateReason === null ? state : `${state} (${stateReason})`],
    ...troubleFields(connection),
    ["token expires", expiresAt ?? "unknown"],
    ["can be refreshed", connection.refreshToken === undefined || state !== "ACTIVE" ? "no" : "yes"],
    ["scope", scope || "unknown"],
    ...(parameters.length > 0 ? [["parameters", parameters.join(", ")] as const] : []),
    ["updated", updatedAt ?? ""],
  ]);
}

/** Since when refreshing fails, how it failed last, and when it is tried next; or since when a token is refused. */
function troubleFields(connection: Connection): ReadonlyArray<readonly [string, string]> {
  const { trouble, lastErrorClass, lastFailedAt, nextTryAt, failCount, refreshToken } = connection;
  if (trouble !== undefined && refreshToken === undefined)
    return [["token refused since", timeFrom(trouble.since) ?? ""]];
  if (failCount === 0) return [];
  const since = timeFrom(trouble?.since ?? lastFailedAt) ?? "";
  const last = `${lastErrorClass ?? "unknown"} at ${timeFrom(lastFailedAt) ?? ""}, failed ${failCount} times`;
  return [
    ["refresh failing since", since],
    ["last answer", last],
    ...(nextTryAt === undefined ? [] : [["next try", `${timeFrom(nextTryAt)}, when it is called`] as const]),
  ];
}

function timeFrom(time: number | undefined): string | null {
  return time === undefined ? null : new Date(time).toISOString();
}
