import { RelayError } from "../model/errors.js";
import type { Breaker } from "./breaker.js";
import type { ClientHolds, RegisteredClient } from "./client-holds.js";
import { type Connection, isAhead, MAX_BACKOFF_MS } from "./connection.js";

/** Where a connection is refreshed, and as whom; no secret. */
export interface RefreshPlace {
  readonly endpoint: string;
  readonly client: RegisteredClient;
}

/** What tells whether a refresh could begin. */
export interface RefreshableOptions {
  readonly breaker: Pick<Breaker, "peekMs">;
  readonly clients: Pick<ClientHolds, "peekMs">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Where a connection is refreshed; opens no secret. Rejects with RelayError when there is nowhere. */
  readonly placeFor: (connection: Connection) => Promise<RefreshPlace>;
}

/**
 * Rejects as a refresh would before the provider is asked, with RelayError REFRESH_UNAVAILABLE or
 * PROVIDER_MISCONFIGURED; begins none, and opens no secret.
 */
export async function requireRefreshable(
  { breaker, clients, now, placeFor }: RefreshableOptions,
  connection: Connection,
): Promise<void> {
  const { endpoint, client } = await placeFor(connection);
  requireDue(connection, client, now());
  if (clients.peekMs(client, now()) > 0) throw misconfigured();
  requireNoWait(breaker.peekMs(endpoint, now()));
}

/**
 * A refresh that has failed is not tried again before its time, unless the operator has changed the client since; a time
 * further ahead than any was set by a clock that stood wrong. Throws RelayError REFRESH_UNAVAILABLE, or
 * PROVIDER_MISCONFIGURED where that was the failure.
 */
export function requireDue(connection: Connection, client: RegisteredClient, now: number): void {
  if (isOfChangedClient(connection, client) || !isAhead(connection.nextTryAt, now, MAX_BACKOFF_MS)) return;
  if (connection.lastErrorClass === "invalid_client") throw misconfigured();
  requireNoWait((connection.nextTryAt ?? 0) - now);
}

/** Whether the last try was made with a client that has been changed since. */
export function isOfChangedClient({ trouble }: Pick<Connection, "trouble">, { updatedAt }: RegisteredClient): boolean {
  return trouble?.clientUpdatedAt !== undefined && trouble.clientUpdatedAt !== updatedAt;
}

/** Throws RelayError REFRESH_UNAVAILABLE unless the time to wait, in milliseconds, is over. */
export function requireNoWait(waitMs: number): void {
  if (waitMs > 0) throw refreshUnavailable(waitMs);
}

/** Only the user can help. */
export function reauthorizationRequired(): RelayError {
  return new RelayError(
    "REAUTHORIZATION_REQUIRED",
    "The provider no longer accepts this user's connection. The user must connect again.",
  );
}

/** Only the operator can help. */
export function misconfigured(): RelayError {
  return new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The provider refuses the application's OAuth client. The operator must correct its client id and secret.",
  );
}

/** Nobody needs to help. @param waitMs until it may be tried again, in milliseconds. */
export function refreshUnavailable(waitMs = 0): RelayError {
  const when = waitMs > 0 ? `in ${Math.ceil(waitMs / 1000)} seconds` : "later";
  return new RelayError(
    "REFRESH_UNAVAILABLE",
    `This user's access token has ended and cannot be refreshed right now. Try again ${when}.`,
  );
}
