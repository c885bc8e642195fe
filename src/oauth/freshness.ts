import type { Connection, ConnectionState } from "./connection.js";

/** What an access token's times say (threats 3.1): good, good but due for refresh, ended, or lifetime unknown. */
type Freshness = "fresh" | "due" | "ended" | "unknown";

/** A token is refreshed this long before its end, or a tenth of its life where that is longer. In milliseconds. */
const MIN_LEAD_MS = 60_000;
/** Connections are spread over this part of the lead, so that those made together are not refreshed together. */
const JITTER_SHARE = 0.2;

/**
 * Judges a connection's access token at `now` (milliseconds since the epoch). Half of a short life is the most that is
 * given away. A clock that stands before the time the token was obtained says nothing (threats 3.7): the token is used
 * until the provider refuses it.
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

/** A number from 0 to 1 that is always the same for one id (FNV-1a, and a mix that lets the last characters count). */
function fractionOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000;
}

/** What people and programs are told of a connection. */
interface ToldState {
  readonly state: ConnectionState;
  /** Why the user must connect again; undefined while the state is ACTIVE. */
  readonly reason: string | undefined;
}

/**
 * The state that tells the truth at `now` (milliseconds since the epoch): a token that has ended and cannot be refreshed
 * is of no more use, though nothing has happened to the row. It is not written there at once, since a clock that is wrong
 * for a moment would end connections for good (threats 3.7); expiry-sweep.ts does it when that cannot be.
 */
export function toldStateOf(
  connection: Pick<Connection, "id" | "state" | "stateReason" | "obtainedAt" | "expiresAt"> & {
    /** Only whether there is one counts. */
    readonly refreshToken: unknown;
  },
  now: number,
): ToldState {
  const { state, stateReason, refreshToken } = connection;
  const isOver = state === "ACTIVE" && refreshToken === undefined && decideFreshness(connection, now) === "ended";
  return isOver ? { state: "REAUTHORIZATION_REQUIRED", reason: "expired" } : { state, reason: stateReason };
}
