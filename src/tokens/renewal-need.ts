import { RelayError } from "../model/errors.js";
import type { Connection } from "./connection.js";
import { decideFreshness } from "./freshness.js";
import { requireUsable } from "./usable.js";

/** Whether a token is renewed for a call: not at all, beside it, or before it. */
export type RenewalNeed = "none" | "beside" | "before";

/**
 * Decides from state and times what the token of a connection needs at `now` (milliseconds since the epoch). Pure.
 *
 * Throws RelayError REAUTHORIZATION_REQUIRED when only the user can help.
 */
export function decideRenewalNeed(connection: Connection, now: number): RenewalNeed {
  requireUsable(connection);
  const freshness = decideFreshness(connection, now);
  if (freshness === "ended") {
    requireRefreshToken(connection);
    return "before";
  }
  return freshness === "due" && connection.refreshToken !== undefined ? "beside" : "none";
}

function requireRefreshToken({ refreshToken }: Connection): void {
  if (refreshToken !== undefined) return;
  throw new RelayError(
    "REAUTHORIZATION_REQUIRED",
    "This user's access token is expired and there is no refresh token. The user must connect again.",
  );
}
