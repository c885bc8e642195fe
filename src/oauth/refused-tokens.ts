import { RelayError } from "../model/errors.js";
import { type Connection, type ConnectionStore, isAhead } from "./connection.js";
import { reauthorizationRequired } from "./refreshable.js";
import { fingerprintOf } from "./token-answer.js";
import { decideRefusedToken, REFUSED_TOKEN_APART_MS } from "./verdict.js";

/** What judging refused tokens needs. */
export interface RefusedTokensOptions {
  readonly connections: Pick<ConnectionStore, "noteTrouble" | "findEvidence" | "requireReauthorization">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Keeps account of access tokens that providers refuse and that no refresh replaces. */
interface RefusedTokens {
  /** The provider took the connection's token. A promise where a refusal before it has to be forgotten; never rejects. */
  noteTaken(connection: Connection): Promise<void> | undefined;
  /**
   * The provider said that the token is no good. Rejects with RelayError REAUTHORIZATION_REQUIRED when that ends the
   * connection.
   *
   * @param connection as it is stored now.
   */
  noteRefused(connection: Connection): Promise<void>;
}

/** Which of a provider's connections were answered last. Times are milliseconds since the epoch. */
interface Taken {
  id: string;
  at: number;
  /** When one other than `id` was. */
  othersAt: number | undefined;
}

const WORDS = fingerprintOf("token_refused");

/** What others show is remembered by each process alone: where it has seen nothing, it takes longer. */
export function createRefusedTokens({ connections, now }: RefusedTokensOptions): RefusedTokens {
  /** By provider: as many as the catalogue has. */
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

  async function judge(connection: Connection): Promise<boolean> {
    const at = now();
    const before = connection.trouble?.refusal;
    if (before !== undefined && isAhead(before.countedAt + REFUSED_TOKEN_APART_MS, at, REFUSED_TOKEN_APART_MS))
      return false;
    const evidence = await connections.findEvidence(connection, WORDS, before?.since ?? at, at);
    const others = othersTakenAt(connection);
    const { isOver, refusal } = decideRefusedToken({ words: WORDS, before, evidence, othersTakenAt: others, now: at });
    const trouble = { since: refusal.since, refusal };
    if (isOver) return connections.requireReauthorization(connection, "token_refused", at, { trouble });
    await connections.noteTrouble(connection, trouble);
    return false;
  }

  return {
    noteTaken(connection) {
      remember(connection);
      if (connection.trouble === undefined || connection.refreshToken !== undefined) return undefined;
      // A store that refuses this one is asked again with the next answer.
      return connections.noteTrouble(connection, undefined).catch(() => {});
    },
    async noteRefused(connection) {
      const isOver = await judge(connection).catch((error: unknown) => {
        // What cannot be written now counts when the provider says it again: the caller has its answer all the same.
        if (error instanceof RelayError) return false;
        throw error;
      });
      if (isOver) throw reauthorizationRequired();
    },
  };
}
