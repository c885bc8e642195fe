import type { Connection } from "./connection.js";

/** What an access token's times say (threats 3.1): good, good but due for renewal, ended, or lifetime unknown. */
export type Freshness = "fresh" | "due" | "ended" | "unknown";

/** A token is renewed this long before its end, or a tenth of its life where that is longer. In milliseconds. */
const MIN_LEAD_MS = 60_000;
/** Connections are spread over this part of the lead, so that those made together are not renewed together. */
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
