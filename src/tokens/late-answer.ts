import type { Connection, ConnectionStore, Lease } from "./connection.js";
import { connectionBinding } from "./connection-binding.js";
import type { Sealer } from "./seal.js";
import type { Secret } from "./secret.js";
import { untilStored } from "./until-stored.js";

/** What keeping a late answer needs. */
export interface LateAnswerOptions {
  readonly connections: Pick<ConnectionStore, "find" | "keepPreviousRefreshToken">;
  readonly sealer: Sealer;
}

/**
 * What becomes of a refresh token whose answer came when the row had changed: it is kept beside the row's own, never
 * thrown away and never written over what is newer (threats 3.1).
 *
 * A process that stood still may find that another one asked with the same refresh token meanwhile, was refused, and
 * gave the connection up as `rotation_lost_suspected`. Here is the rotation that seemed lost. Whether the provider ended
 * it over the repeated refresh token only the provider knows, so the row says ACTIVE again after it renews once more.
 *
 * @returns what to renew with this token, to find out; undefined when there is nothing to find out.
 */
export async function keepLateAnswer(
  { connections, sealer }: LateAnswerOptions,
  lease: Lease,
  refreshToken: Secret,
): Promise<Lease | undefined> {
  const { connection } = lease;
  const sealed = sealer.seal(refreshToken.reveal(), connectionBinding(connection, "previous_refresh_token"));
  await untilStored(() => connections.keepPreviousRefreshToken(lease, sealed));
  const current = await connections.find(connection);
  const isSuspected = current !== undefined && isGivenUpOver(connection, current);
  return isSuspected ? { ...lease, connection: current, previousRefreshToken: undefined } : undefined;
}

/** Whether the very tokens that were being renewed were given up, and nothing has happened since. */
function isGivenUpOver(leased: Connection, { id, version, stateReason }: Connection): boolean {
  return id === leased.id && version === leased.version + 1 && stateReason === "rotation_lost_suspected";
}
