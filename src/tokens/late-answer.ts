import type { Connection, ConnectionStore, Lease } from "./connection.js";
import { connectionBinding } from "./connection-binding.js";
import type { Sealer } from "./seal.js";
import type { Secret } from "./secret.js";
import { type Persistence, untilStored } from "./until-stored.js";

/** What keeping a late answer needs. */
export interface LateAnswerOptions {
  readonly connections: Pick<ConnectionStore, "find" | "keepPreviousRefreshToken">;
  readonly sealer: Sealer;
  readonly persistence: Persistence;
}

/**
 * What is to be done about an answer that came too late: nothing, revoke its tokens since the connection is gone, or
 * renew this lease with its refresh token.
 */
export type LateAnswer = "kept" | "orphaned" | Lease;

/**
 * What becomes of a refresh token whose answer came when the row had changed: it is kept beside the row's own, never
 * thrown away and never written over what is newer (threats 3.1).
 *
 * A process that stood still may find that another one asked with the same refresh token meanwhile, was refused, and
 * gave the connection up as `rotation_lost_suspected`. Here is the rotation that seemed lost. Whether the provider ended
 * it over the repeated refresh token only the provider knows, so the row says ACTIVE again after it renews once more.
 *
 * Where there is no connection any more nobody needs the tokens. One that was made again is another matter: at many
 * providers its tokens would be revoked as well, being of the same user's grant.
 *
 * @param refreshToken undefined when none came.
 */
export async function keepLateAnswer(
  { connections, sealer, persistence }: LateAnswerOptions,
  lease: Lease,
  refreshToken: Secret | undefined,
): Promise<LateAnswer> {
  const { connection } = lease;
  if (refreshToken !== undefined) {
    const sealed = sealer.seal(refreshToken.reveal(), connectionBinding(connection, "previous_refresh_token"));
    await untilStored(persistence, () => connections.keepPreviousRefreshToken(lease, sealed));
  }
  const current = await untilStored(persistence, () => connections.find(connection));
  if (current === undefined) return "orphaned";
  if (!isGivenUpOver(connection, current)) return "kept";
  return { ...lease, connection: current, previousRefreshToken: undefined };
}

/** Whether the very tokens that were being renewed were given up, and nothing has happened since. */
function isGivenUpOver(leased: Connection, { id, version, stateReason }: Connection): boolean {
  return id === leased.id && version === leased.version + 1 && stateReason === "rotation_lost_suspected";
}
