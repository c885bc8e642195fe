import { keepNewest } from "../lib/keep-newest.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { RelayError } from "../model/errors.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { createMemo, type Sealer, type Secret } from "../sealing/seal.js";
import { type Connection, type ConnectionStore, isAhead } from "./connection.js";
import { type Credentials, credentialsOf, isOfKind, isUnfetched } from "./credentials.js";
import { openOAuthClient, type StoredOAuthClient } from "./oauth-client.js";
import { decideFreshness, reauthorizationRequired, refreshUnavailable } from "./refreshable.js";
import type { Refresher } from "./refresher.js";
import { openToken } from "./store-answer.js";
import { fingerprintOf } from "./token-answer.js";
import { decideRefusal, decideRefusedToken, REFUSED_TOKEN_APART_MS } from "./verdict.js";

/** A connection's credentials in the clear, and their row; the same object for the same row. */
export interface CurrentToken extends Credentials {
  readonly connection: Connection;
}

/**
 * How an answer refuses a token: it says that the token has expired, it blames the token, or the token is likely at
 * fault.
 */
export type TokenRefusal = "ended" | "named" | "likely";

/** How long a caller waits for a refresh; the refresh itself goes on. */
interface Wait {
  /** In milliseconds of `performance.now()`. */
  readonly deadline: number;
  readonly signal: CallerSignal | undefined;
}

/** Where a call gets a connection's tokens in the clear. */
export type TokenSource = ReturnType<typeof createTokenSource>;

/** What a token source needs. */
interface TokenSourceOptions {
  readonly sealer: Sealer;
  readonly catalog: Pick<ProviderCatalog, "find">;
  readonly connections: Pick<ConnectionStore, "find" | "noteTrouble" | "findEvidence" | "requireReauthorization">;
  readonly refresher: Refresher;
  /** See `createSigningClientFor()`. */
  readonly signingClientFor: (connection: Connection) => Promise<StoredOAuthClient | undefined>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** How long no refresh is forced after a refreshed token was refused, in milliseconds. */
const HOLD_MS = 60_000;
/** Most holds that are remembered; the oldest is evicted. */
const MAX_HOLDS = 10_000;

/** Creates a token source. It opens a token only when the connection's state and times allow its use. */
export function createTokenSource(options: TokenSourceOptions) {
  const { sealer, catalog, connections, refresher, now } = options;
  /** Connection id → until when. */
  const holds = new Map<string, number>();
  const refusedTokens = createRefusedTokens(options);

  /** Opened tokens by row object, which the store replaces when the row changes and drops when it is deleted. */
  const opened = createMemo<Connection, CurrentToken & { readonly clientUpdatedAt: number | undefined }>();

  function current(connection: Connection, client?: StoredOAuthClient): CurrentToken {
    const known = opened.get(connection);
    const clientUpdatedAt = client?.updatedAt;
    if (known !== undefined && known.clientUpdatedAt === clientUpdatedAt) return known;
    const provider = catalog.find(connection.providerName);
    // Cannot happen for a call, whose provider comes from the same catalogue.
    if (provider === undefined) throw disconnected();
    const open = () => openToken(sealer, connection, "access_token", connection.accessToken);
    const { refreshToken } = connection;
    const openSecrets = refreshToken && (() => openToken(sealer, connection, "refresh_token", refreshToken));
    const signing = client && openOAuthClient(sealer, client);
    const { token, texts, secrets, sign } = credentialsOf(provider, connection, open, openSecrets, signing);
    // With a spread, V8 makes a hidden class per row, and every call would look up its members again.
    const made = { token, texts, secrets, sign, connection, clientUpdatedAt };
    opened.set(connection, made);
    return made;
  }

  /**
   * The access token to send now; not a promise when there is nothing to wait for. A token that is due is refreshed in
   * the background, an expired one before the call. Fails with RelayError REAUTHORIZATION_REQUIRED when only the user
   * can help, REFRESH_UNAVAILABLE when the token cannot be refreshed now, PROVIDER_MISCONFIGURED when only the operator
   * can help, STORE_UNAVAILABLE when it does not open.
   */
  function accessToken(connection: Connection, wait: Wait): CurrentToken | Promise<CurrentToken> {
    const need = decideRefreshNeed(connection, now());
    if (need === "before") return refreshedRow(options, connection, wait).then((row) => current(row));
    if (need === "beside") refresher.refreshBeside(connection, "due");
    if (!isOfKind(connection, "oauth1")) return current(connection);
    return options.signingClientFor(connection).then((client) => current(connection, client));
  }

  return {
    accessToken,
    /**
     * Fetches a connection's first token if it has none yet, and resolves to the row, since the token response may add
     * values to it. Any other connection is returned unchanged. Rejects as `accessToken()` does.
     */
    fetched: async (connection: Connection, wait: Wait): Promise<Connection> =>
      isUnfetched(connection) ? refreshedRow(options, connection, wait) : connection,
    noteTaken: refusedTokens.noteTaken,
    /**
     * Another token after the provider refused this connection's (threats 3.6): one that was stored meanwhile, or a
     * refreshed one. Undefined when there is none. Rejects with REAUTHORIZATION_REQUIRED when the refusal, or the
     * refresh that follows it, ends the connection.
     *
     * @param refusal how the provider blamed the token.
     */
    async tokenAfterRefusal(
      connection: Connection,
      wait: Wait,
      refusal: TokenRefusal,
    ): Promise<CurrentToken | undefined> {
      const stored = await connections.find(connection);
      if (stored === undefined || stored.state !== "ACTIVE") return undefined;
      if (stored.version !== connection.version) return accessToken(stored, wait);
      if (stored.refreshToken === undefined && refusal !== "likely") await refusedTokens.noteRefused(stored, refusal);
      if (stored.refreshToken === undefined || isAhead(holds.get(stored.id), now(), HOLD_MS)) return undefined;
      const refreshed = await forcedRow(options, stored, wait);
      return refreshed && current(refreshed);
    },
    /** Notes that the refreshed token was refused as well: no refresh is forced for a while, since it would not help. */
    noteRefusedAgain({ id }: Connection): void {
      keepNewest(holds, id, now() + HOLD_MS, MAX_HOLDS);
    },
    /** The ID token (OpenID Connect Core section 2); undefined when the provider gave none. */
    async idToken(connection: Connection): Promise<Secret | undefined> {
      requireUsable(connection);
      return connection.idToken && openToken(sealer, connection, "id_token", connection.idToken);
    },
  };
}

/** Refreshes, and reads the row again: the refresh that was joined may have been for an older version. */
async function refreshedRow(options: TokenSourceOptions, connection: Connection, wait: Wait): Promise<Connection> {
  await within(options.refresher.refresh(connection, "expired"), wait);
  const row = await options.connections.find(connection);
  if (row === undefined) throw disconnected();
  requireUsable(row);
  if (decideFreshness(row, options.now()) === "ended") throw refreshUnavailable();
  return row;
}

/** Refreshes a refused token. Undefined when that fails for now: then the caller gets the provider's own refusal. */
async function forcedRow(options: TokenSourceOptions, stored: Connection, wait: Wait): Promise<Connection | undefined> {
  try {
    await within(options.refresher.refresh(stored, "refused"), wait);
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    if (error.reason !== "REAUTHORIZATION_REQUIRED") return undefined;
    // One that cannot be refreshed has not ended: its token may be good for other calls.
    if ((await options.connections.find(stored))?.state === "ACTIVE") return undefined;
    throw error;
  }
  const row = await options.connections.find(stored);
  return row?.state === "ACTIVE" && row.version !== stored.version && !isUnfetched(row) ? row : undefined;
}

/** Waits for a refresh until the caller's deadline or abort; the refresh itself goes on, and may fail with nobody waiting. */
function within(flight: Promise<void>, { deadline, signal }: Wait): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => end(() => reject(refreshUnavailable())), Math.max(0, deadline - performance.now()));
    const listener = { handleEvent: () => end(() => reject(signal?.reason)) };
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", listener);
      settle();
    };
    flight.then(
      () => end(resolve),
      (error: unknown) => end(() => reject(error)),
    );
    if (signal?.aborted) return listener.handleEvent();
    signal?.addEventListener("abort", listener);
  });
}

/** The user has disconnected while the call waited for the token. */
function disconnected(): RelayError {
  return new RelayError(
    "INVALID_OAUTHID",
    "This user is no longer connected to this provider. Connect the user again.",
  );
}

/** Whether a token is refreshed for a call: not at all, in the background (`beside`), or before it. */
export type RefreshNeed = "none" | "beside" | "before";

/**
 * Decides by state and times whether a connection's token needs a refresh at `now` (milliseconds since the epoch).
 * Pure.
 *
 * Throws RelayError REAUTHORIZATION_REQUIRED when only the user can help.
 */
export function decideRefreshNeed(connection: Connection, now: number): RefreshNeed {
  requireUsable(connection);
  const freshness = decideFreshness(connection, now);
  if (freshness === "ended" && connection.refreshToken === undefined) {
    throw new RelayError(
      "REAUTHORIZATION_REQUIRED",
      "This user's access token has expired, and there is no refresh token. The user must connect again.",
    );
  }
  if (freshness === "ended") return "before";
  return freshness === "due" && connection.refreshToken !== undefined ? "beside" : "none";
}

/** Throws RelayError REAUTHORIZATION_REQUIRED unless the connection's tokens may be used. */
function requireUsable({ state }: Pick<Connection, "state">): void {
  if (state !== "ACTIVE") throw reauthorizationRequired();
}

/** Which of a provider's connections had a token accepted last. Times are milliseconds since the epoch. */
interface Taken {
  id: string;
  at: number;
  /** The last time for a connection other than `id`. */
  othersAt: number | undefined;
}

const WORDS = fingerprintOf("token_refused");

/**
 * Tracks access tokens that providers refuse and that cannot be refreshed. Each process remembers only the accepted
 * tokens that it has seen; without any, a decision takes longer.
 */
function createRefusedTokens({ connections, now }: TokenSourceOptions) {
  /** By provider name, so bounded by the catalogue. */
  const taken = new Map<string, Taken>();

  function remember({ id, providerName }: Connection): void {
    const last = taken.get(providerName);
    if (last === undefined) {
      taken.set(providerName, { id, at: now(), othersAt: undefined });
      return;
    }
    if (last.id !== id) {
      last.othersAt = last.at;
      last.id = id;
    }
    last.at = now();
  }

  function othersTakenAt({ id, providerName }: Connection): number | undefined {
    const last = taken.get(providerName);
    return last?.id === id ? last.othersAt : last?.at;
  }

  async function judge(connection: Connection, isEnded: boolean): Promise<boolean> {
    const at = now();
    const before = connection.trouble?.refusal;
    const isSoon =
      before !== undefined && isAhead(before.countedAt + REFUSED_TOKEN_APART_MS, at, REFUSED_TOKEN_APART_MS);
    if (isSoon && !isEnded) return false;
    const evidence = await connections.findEvidence(connection, WORDS, before?.since ?? at, at);
    const known = { words: WORDS, before, evidence, now: at };
    const { isOver, refusal } = isEnded
      ? decideRefusal({ ...known, isKnown: true, clientUpdatedAt: 0 })
      : decideRefusedToken({ ...known, othersTakenAt: othersTakenAt(connection) });
    const trouble = { since: refusal.since, refusal };
    if (isOver) return connections.requireReauthorization(connection, "token_refused", at, { trouble });
    await connections.noteTrouble(connection, trouble);
    return false;
  }

  return {
    /** Notes that the provider accepted the token. A promise when an earlier refusal must be cleared; never rejects. */
    noteTaken(connection: Connection): Promise<void> | undefined {
      remember(connection);
      if (connection.trouble === undefined || connection.refreshToken !== undefined) return undefined;
      // If the store refuses the write, the next answer repeats it.
      return connections.noteTrouble(connection, undefined).catch(() => {});
    },
    /** Notes that the provider refused the token of a row as it is now. Rejects when that ends the connection. */
    async noteRefused(connection: Connection, refusal: Exclude<TokenRefusal, "likely">): Promise<void> {
      const isOver = await judge(connection, refusal === "ended").catch((error: unknown) => {
        // If it cannot be stored now, the next refusal counts instead. The caller gets its answer either way.
        if (error instanceof RelayError) return false;
        throw error;
      });
      if (isOver) throw reauthorizationRequired();
    },
  };
}
