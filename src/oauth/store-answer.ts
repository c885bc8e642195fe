import { setTimeout as delay } from "node:timers/promises";
import { isRefusedByStore, RelayError, UnconfirmedWriteError } from "../model/errors.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import type { CommitOutcome, ConnectionKey, ConnectionStore, Lease, NewConnection } from "./connection.js";
import type { Spool, UnstoredAnswer } from "./peers.js";
import type { TokenPair } from "./token-request.js";
import { expiresAtFrom, type TokenResponse } from "./token-response.js";

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
  function later(connectionId: string, write: () => Promise<unknown>): void {
    const again = () => write().catch((error) => (isRefusedByStore(error) ? Promise.reject(error) : undefined));
    // A lease that stays is ended with its owner, so it does not keep the process.
    holdBack(connectionId, untilStored(persistence, again, () => true).then(noted, noted));
  }
  async function finish<T>(connectionId: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (isRefusedByStore(error)) later(connectionId, write);
      throw error;
    }
  }
  const giveBack = (lease: Lease) => later(lease.connection.id, () => connections.releaseLease(lease));
  return {
    ...connections,
    /** It may be taken: nothing is sent under it, so it is given back. */
    takeLease: (connection, owner, leaseMs, skipsWait) =>
      connections.takeLease(connection, owner, leaseMs, skipsWait).catch((error: unknown) => {
        if (error instanceof UnconfirmedWriteError) giveBack({ connection, owner, previousRefreshToken: undefined });
        throw error;
      }),
    /** The refresh token that it was for is not sent. */
    extendLease: (lease, leaseMs) =>
      connections.extendLease(lease, leaseMs).catch((error: unknown) => {
        if (isRefusedByStore(error)) giveBack(lease);
        throw error;
      }),
    releaseLease: (lease) => finish(lease.connection.id, () => connections.releaseLease(lease)),
    recordFailure: (lease, failure, now) =>
      finish(lease.connection.id, () => connections.recordFailure(lease, failure, now)),
    requireReauthorization: (connection, reason, now, options) =>
      finish(connection.id, () => connections.requireReauthorization(connection, reason, now, options)),
  };
}

function noted(): void {}

/** New tokens, in the clear. */
interface CameTokens {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret | undefined;
  readonly idToken: Secret | undefined;
}

/** Seals new tokens for the row; the refresh token also for the case that it comes too late. */
export function sealTokens(
  sealer: Sealer,
  key: ConnectionKey,
  { accessToken, refreshToken, idToken }: CameTokens,
): Record<"accessToken" | "refreshToken" | "lateRefreshToken" | "idToken", Uint8Array | undefined> {
  const seal = (column: ConnectionColumn, token: Secret | undefined) =>
    token && sealer.seal(token.reveal(), connectionBinding(key, column));
  return {
    accessToken: seal("access_token", accessToken),
    refreshToken: seal("refresh_token", refreshToken),
    lateRefreshToken: seal("previous_refresh_token", refreshToken),
    idToken: seal("id_token", idToken),
  };
}

/** What storing an answer needs. */
export interface StoringOptions {
  readonly connections: ConnectionStore;
  readonly persistence: Persistence;
  /** Takes the tokens that the store refuses. */
  readonly spool: Pick<Spool, "keep" | "drop">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Writes tokens that exist nowhere else: into the spool when the store refuses them, and into the store when it can. */
export async function storeAnswer(
  { connections, spool, persistence, now }: StoringOptions,
  answer: UnstoredAnswer,
): Promise<CommitOutcome> {
  let isKept = false;
  const writeOrKeep = async () => {
    try {
      return await connections.commitRefresh(answer.connection, answer.tokens, now());
    } catch (error) {
      isKept ||= spool.keep(answer);
      throw error;
    }
  };
  const outcome = await untilStored(persistence, writeOrKeep, () => isKept);
  if (isKept) spool.drop(answer);
  return outcome;
}

/**
 * Stores an answer that a process which is gone could not store, as that would have done: under the key of today. Rejects
 * with RelayError STORE_UNAVAILABLE, and with SealError when a token does not open.
 */
export async function storeLeftAnswer(
  { connections, sealer, now }: Omit<StoringOptions, "persistence" | "spool"> & { readonly sealer: Sealer },
  { connection, tokens }: UnstoredAnswer,
): Promise<CommitOutcome> {
  const reseal = (column: ConnectionColumn, value: Uint8Array | undefined) =>
    value && sealer.reseal(value, connectionBinding(connection, column));
  const resealed = {
    ...tokens,
    accessToken: reseal("access_token", tokens.accessToken),
    refreshToken: reseal("refresh_token", tokens.refreshToken),
    lateRefreshToken: reseal("previous_refresh_token", tokens.lateRefreshToken),
    idToken: reseal("id_token", tokens.idToken),
  };
  return connections.commitRefresh(connection, resealed, now());
}

/** Sealed columns of a connection. */
export type ConnectionColumn = "access_token" | "refresh_token" | "previous_refresh_token" | "id_token";

/**
 * What a connection's token is sealed for. A token that moves to another column, as a refresh token does that becomes
 * the previous one, must be opened and sealed again.
 */
export function connectionBinding(key: ConnectionKey, column: ConnectionColumn): SealBinding {
  const { applicationId, userId, providerName } = key;
  return { table: "connections", column, applicationId, userId, providerName };
}

const DOES_NOT_OPEN =
  "This connection's stored token cannot be opened. The operator must restore the store or its key file, or the user must connect again.";

/** Opens a connection's sealed token. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openToken(sealer: Sealer, key: ConnectionKey, column: ConnectionColumn, sealed: Uint8Array): Secret {
  return new Secret(openSealed(sealer, sealed, connectionBinding(key, column), DOES_NOT_OPEN).toString());
}

/** Opens the tokens that revoking asks for. Throws as {@link openToken} does. */
export function openPair(
  sealer: Sealer,
  key: ConnectionKey,
  { accessToken, refreshToken }: Record<keyof TokenPair, Uint8Array | undefined>,
): TokenPair {
  return {
    accessToken: accessToken && openToken(sealer, key, "access_token", accessToken),
    refreshToken: refreshToken && openToken(sealer, key, "refresh_token", refreshToken),
  };
}

/** What a connection is made from. */
interface NewConnectionInput {
  /** A new random id; an existing connection of this key keeps its own. */
  readonly id: string;
  readonly key: ConnectionKey;
  readonly response: TokenResponse;
  /** Seconds to assume when the response has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the token was asked for, milliseconds since the epoch: the lifetime counts from there (threats 3.7). */
  readonly obtainedAt: number;
}

/** Seals the tokens of a token response into what the store keeps. */
export function newConnectionFrom(sealer: Sealer, input: NewConnectionInput): NewConnection {
  const { id, key, response, defaultExpiresInS, originParameters, obtainedAt } = input;
  const seal = (token: Secret, column: ConnectionColumn) => sealer.seal(token.reveal(), connectionBinding(key, column));
  return {
    id,
    applicationId: key.applicationId,
    userId: key.userId,
    providerName: key.providerName,
    state: "ACTIVE",
    accessToken: seal(response.accessToken, "access_token"),
    refreshToken: response.refreshToken && seal(response.refreshToken, "refresh_token"),
    idToken: response.idToken && seal(response.idToken, "id_token"),
    tokenType: response.tokenType,
    scope: response.scope,
    originParameters,
    obtainedAt,
    expiresAt: expiresAtFrom(response, defaultExpiresInS, obtainedAt),
  };
}
