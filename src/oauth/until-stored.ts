import { setTimeout as delay } from "node:timers/promises";
import { RelayError } from "../model/errors.js";
import type { Sealer } from "../sealing/seal.js";
import type { Secret } from "../sealing/secret.js";
import type { Connection, ConnectionStore, Lease } from "./connection.js";
import { connectionBinding } from "./connection-binding.js";

/** How often, and for how long, what the store refuses is written again. */
export interface Persistence {
  /** Resolves after so many milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /** Whether the process is to end. @param isKept whether what was refused is safe elsewhere, or worth little. */
  readonly mustGiveUp: (isKept: boolean) => boolean;
  /** Called once for what the store refuses, with how it did. */
  readonly onRefused: (error: unknown) => void;
}

/** Writes again for so many milliseconds, whatever becomes of the process. */
export function persistFor(ms: number, onRefused: Persistence["onRefused"]): Persistence {
  const until = performance.now() + ms;
  return { pause: (pauseMs) => delay(pauseMs), mustGiveUp: () => performance.now() > until, onRefused };
}

/** A store that is locked or full may take the tokens a moment later. Milliseconds between tries. */
const STORE_AGAIN_MS = 500;

/**
 * Writes again until the store takes it, while the process lives; also after a fault, since what it is for exists nowhere
 * else. Rejects as the last try did, and at once when the store says that it never will.
 *
 * @param isKept asked after a failure, before the process is to end.
 */
export async function untilStored<T>(
  { pause, mustGiveUp, onRefused }: Persistence,
  write: () => Promise<T>,
  isKept: () => boolean = () => false,
): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await write();
    } catch (error) {
      const isFinal = error instanceof RelayError && !isRefusedByStore(error);
      if (isFinal || mustGiveUp(isKept())) throw error;
      if (isFirst) onRefused(error);
    }
    await pause(STORE_AGAIN_MS);
  }
}

/** Whether the store refused for now; any other error would be the same the next time. */
function isRefusedByStore(error: unknown): boolean {
  return error instanceof RelayError && error.reason === "STORE_UNAVAILABLE";
}

/**
 * A store whose writes that end a lease without new tokens are tried once more behind the callers' backs when it refuses
 * them: who has the lease waits for nobody, but others wait for its end.
 *
 * @param holdBack given the connection's id and what is not written yet; that never rejects.
 */
export function persistentStore(
  connections: ConnectionStore,
  persistence: Persistence,
  holdBack: (connectionId: string, work: Promise<void>) => void,
): ConnectionStore {
  async function finish<T>(connectionId: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (isRefusedByStore(error)) {
        const again = () => write().catch((later) => (isRefusedByStore(later) ? Promise.reject(later) : undefined));
        // A lease that stays is ended with its owner, so it does not keep the process.
        const settled = untilStored(persistence, again, () => true).then(noted, noted);
        holdBack(connectionId, settled);
      }
      throw error;
    }
  }
  return {
    ...connections,
    releaseLease: (lease) => finish(lease.connection.id, () => connections.releaseLease(lease)),
    recordFailure: (lease, failure, now) =>
      finish(lease.connection.id, () => connections.recordFailure(lease, failure, now)),
    requireReauthorization: (connection, reason, now, trouble) =>
      finish(connection.id, () => connections.requireReauthorization(connection, reason, now, trouble)),
  };
}

function noted(): void {}

/** What keeping a late answer needs. */
interface LateAnswerOptions {
  readonly connections: Pick<ConnectionStore, "find" | "keepPreviousRefreshToken">;
  readonly sealer: Sealer;
  readonly persistence: Persistence;
}

/**
 * What is to be done about an answer that came too late: nothing, revoke its tokens since the connection is gone, or
 * renew this lease with its refresh token.
 */
type LateAnswer = "kept" | "orphaned" | Lease;

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
