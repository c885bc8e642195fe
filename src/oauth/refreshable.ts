import { RelayError } from "../model/errors.js";
import type { Breaker, ClientHolds } from "./breaker.js";
import { type Connection, type ConnectionState, isAhead, MAX_BACKOFF_MS } from "./connection.js";
import { isUnfetched } from "./credentials.js";
import type { RefreshPlace, RegisteredClient } from "./oauth-client.js";

/** What is needed to tell whether a refresh could begin. */
export interface RefreshableOptions {
  readonly breaker: Pick<Breaker, "peekMs">;
  readonly clients: Pick<ClientHolds, "peekMs">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Finds where a connection is refreshed; opens no secret. Rejects with RelayError when it cannot be. */
  readonly placeFor: (connection: Connection) => Promise<RefreshPlace>;
}

/**
 * Rejects as a refresh would before it asks the provider, with RelayError REFRESH_UNAVAILABLE or
 * PROVIDER_MISCONFIGURED. Begins no refresh, and opens no secret.
 */
export async function requireRefreshable(
  { breaker, clients, now, placeFor }: RefreshableOptions,
  connection: Connection,
): Promise<void> {
  const place = await placeFor(connection);
  requireDue(connection, place.client, now());
  // What another process was told about the client is in the store.
  if (clients.peekMs(place, now()) > 0 || place.client.refusedSince !== undefined) throw misconfigured();
  requireNoWait(breaker.peekMs(place, now()));
}

/**
 * Throws RelayError REFRESH_UNAVAILABLE while the wait after a failed refresh is not over, or PROVIDER_MISCONFIGURED if
 * the client was refused. The wait does not count once the operator has changed the client, or when it ends further
 * ahead than any wait does: then a wrong clock set it.
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

/** For failures that only the user can resolve. */
export function reauthorizationRequired(): RelayError {
  return new RelayError(
    "REAUTHORIZATION_REQUIRED",
    "The provider no longer accepts this user's connection. The user must connect again.",
  );
}

/** For failures that only the operator can resolve. */
export function misconfigured(): RelayError {
  return new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The provider refuses the application's OAuth client. The operator must correct its client id and secret.",
  );
}

/** For failures that pass by themselves. @param waitMs until a refresh may be tried again, in milliseconds. */
export function refreshUnavailable(waitMs = 0): RelayError {
  const when = waitMs > 0 ? `in ${Math.ceil(waitMs / 1000)} s` : "later";
  return new RelayError(
    "REFRESH_UNAVAILABLE",
    `The relay cannot refresh this user's access token right now. Try again ${when}.`,
  );
}

/** State of an access token by its times (threats 3.1): valid, valid but due for refresh, expired, or unknown. */
type Freshness = "fresh" | "due" | "ended" | "unknown";

/** A token is refreshed this long before it expires, or a tenth of its lifetime if that is longer. In milliseconds. */
const MIN_LEAD_MS = 60_000;
/** Connections are spread over this part of the lead, so that those made together are not refreshed together. */
const JITTER_SHARE = 0.2;

/**
 * Judges a connection's access token at `now` (milliseconds since the epoch). It is never due before half of its
 * lifetime. When the clock is before the time the token was obtained, its state is unknown (threats 3.7): the token is
 * used until the provider refuses it.
 */
export function decideFreshness(
  { id, obtainedAt, expiresAt }: Pick<Connection, "id" | "obtainedAt" | "expiresAt">,
  now: number,
): Freshness {
  if (expiresAt === undefined || now < obtainedAt) return "unknown";
  if (now >= expiresAt) return "ended";
  const lifeMs = expiresAt - obtainedAt;
  const leadMs = Math.min(Math.max(MIN_LEAD_MS, lifeMs / 10), lifeMs / 2);
  return now >= expiresAt - leadMs * (1 - JITTER_SHARE * fractionOf(id)) ? "due" : "fresh";
}

/** Hashes an id to a number from 0 to 1 (FNV-1a, and a final mix so that the last characters count). */
function fractionOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000;
}

/** The state of a connection as reported to people and programs. */
interface ToldState {
  readonly state: ConnectionState;
  /** Why the user must connect again; undefined while the state is ACTIVE. */
  readonly reason: string | undefined;
  /** When the access token ends, milliseconds since the epoch; undefined when unknown, or when there is none yet. */
  readonly expiresAt: number | undefined;
}

/**
 * The effective state at `now` (milliseconds since the epoch): a token that has expired and cannot be refreshed is
 * useless, although the row still says ACTIVE. The row is not changed here, since a clock that is wrong for a moment
 * would end connections for good (threats 3.7); sweep.ts changes it once the clock has proven steady.
 */
export function toldStateOf(
  connection: Pick<Connection, "id" | "state" | "stateReason" | "obtainedAt" | "expiresAt"> & {
    /** Only whether there is one counts. */
    readonly refreshToken: unknown;
  },
  now: number,
): ToldState {
  const { state, stateReason: reason, refreshToken } = connection;
  const expiresAt = isUnfetched(connection) ? undefined : connection.expiresAt;
  const isOver = state === "ACTIVE" && refreshToken === undefined && decideFreshness(connection, now) === "ended";
  return isOver ? { state: "REAUTHORIZATION_REQUIRED", reason: "expired", expiresAt } : { state, reason, expiresAt };
}
