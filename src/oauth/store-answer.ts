import { setTimeout as delay } from "node:timers/promises";
import { isRefusedByStore, RelayError, UnconfirmedWriteError } from "../model/errors.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import type { CommitOutcome, ConnectionKey, ConnectionStore, Lease, NewConnection } from "./connection.js";
import type { Spool, UnstoredAnswer } from "./peers.js";
import type { TokenPair } from "./token-endpoint.js";
import { expiresAtFrom, type TokenResponse } from "./token-response.js";

/** How writes that the store refuses are retried, and for how long. */
export interface Persistence {
  /** Resolves after `ms` milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
  /** Whether to stop retrying. @param isKept whether the refused write is safe elsewhere, or expendable. */
  readonly mustGiveUp: (isKept: boolean) => boolean;
  /** Called with the error of the first attempt only. */
  readonly onRefused: (error: unknown) => void;
}

/** Retries for `ms` milliseconds, even while the process stops. */
export function persistFor(ms: number, onRefused: Persistence["onRefused"]): Persistence {
  const until = performance.now() + ms;
  return { pause: (pauseMs) => delay(pauseMs), mustGiveUp: () => performance.now() > until, onRefused };
}

/** Milliseconds between tries: a store that is locked or full may accept the tokens a moment later. */
const STORE_AGAIN_MS = 500;

/**
 * Retries a write until the store accepts it or `mustGiveUp` says so. It also retries after a fault, since the tokens
 * exist nowhere else. Rejects as the last try did, and at once when the store says that it will never accept the write.
 *
 * @param isKept called after a failure; its result is passed to `mustGiveUp`.
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
 * Wraps a store so that refused writes which end a lease without new tokens are retried in the background: the caller
 * need not wait, but others wait for the lease to end.
 *
 * @param holdBack called with the connection's id and the pending write, which never rejects.
 */
export function persistentStore(
  connections: ConnectionStore,
  persistence: Persistence,
  holdBack: (connectionId: string, work: Promise<void>) => void,
): ConnectionStore {
  function later(connectionId: string, write: () => Promise<unknown>): void {
    const again = () => write().catch((error) => (isRefusedByStore(error) ? Promise.reject(error) : undefined));
    // A lease that is left is ended when its owner is gone, so the process need not stay for it.
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
    /** After an unconfirmed write the lease may have been taken. Nothing is sent under it, so it is released. */
    takeLease: (connection, owner, leaseMs, skipsWait) =>
      connections.takeLease(connection, owner, leaseMs, skipsWait).catch((error: unknown) => {
        if (error instanceof UnconfirmedWriteError) giveBack({ connection, owner, previousRefreshToken: undefined });
        throw error;
      }),
    /** After a refused extension the refresh token is not sent, so the lease is released. */
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
interface CameTokens extends TokenPair {
  readonly idToken: Secret | undefined;
}

/** Seals new tokens for the row; the refresh token a second time, for the column it goes to if it comes too late. */
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
  /** Keeps the tokens that the store refuses. */
  readonly spool: Pick<Spool, "keep" | "drop">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Stores tokens that exist nowhere else: retries until the store accepts them, and keeps them in the spool meanwhile.
 */
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

interface NewConnectionStoring extends Pick<StoringOptions, "persistence" | "now"> {
  readonly connections: Pick<ConnectionStore, "find" | "put">;
  /** Revokes the connection's tokens; never rejects. */
  readonly revoke: () => Promise<unknown>;
}

/**
 * Stores a new connection, whose tokens exist nowhere else: retries until the store accepts it. A write that may have
 * been done (threats A06) is looked for and never repeated: since then the tokens may have been refreshed, or the user
 * may have disconnected or connected again, and a second write would undo that. Revokes the tokens when it resolves to
 * `gone`, and when it rejects and they are certainly not stored, as when the application has been deleted.
 */
export async function storeConnection(
  { connections, persistence, now, revoke }: NewConnectionStoring,
  connection: NewConnection,
): Promise<CommitOutcome> {
  let mayBeDone = false;
  const write = async () => {
    if (mayBeDone) {
      const current = await connections.find(connection);
      if (current === undefined) return "gone";
      return current.id === connection.id ? "stored" : "superseded";
    }
    try {
      await connections.put(connection, now());
      return "stored";
    } catch (error) {
      mayBeDone = error instanceof UnconfirmedWriteError;
      throw error;
    }
  };
  try {
    const outcome = await untilStored<CommitOutcome>(persistence, write);
    if (outcome === "gone") await revoke();
    return outcome;
  } catch (error) {
    if (!mayBeDone) await revoke();
    throw error;
  }
}

/**
 * Stores an answer that a dead process could not store, resealed under the current key. Rejects with RelayError
 * STORE_UNAVAILABLE, and with SealError when a token does not open.
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

/** The sealed columns of a connection. */
export const TOKEN_COLUMNS = ["access_token", "refresh_token", "previous_refresh_token", "id_token"] as const;
export type ConnectionColumn = (typeof TOKEN_COLUMNS)[number];

/**
 * The binding that a connection's token is sealed for. A token that moves to another column, such as a refresh token
 * that becomes the previous one, must be opened and sealed again.
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

/** Opens the token that a revocation sends; the other may be damaged. Throws as {@link openToken} does. */
export function openPair(
  sealer: Sealer,
  key: ConnectionKey,
  { accessToken, refreshToken }: Record<keyof TokenPair, Uint8Array | undefined>,
): TokenPair {
  if (refreshToken === undefined)
    return { accessToken: accessToken && openToken(sealer, key, "access_token", accessToken), refreshToken };
  return { accessToken: undefined, refreshToken: openToken(sealer, key, "refresh_token", refreshToken) };
}

/** What a connection is made from. */
interface NewConnectionInput {
  /** A new random id; an existing connection of this key gets it as well. */
  readonly id: string;
  readonly key: ConnectionKey;
  readonly response: TokenResponse;
  /** Seconds to assume when the response has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the token was requested, milliseconds since the epoch: its lifetime counts from then (threats 3.7). */
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
