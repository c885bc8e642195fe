import type { Connection, RenewedTokens } from "./connection.js";

/** A provider's answer that the store has not taken yet: sealed as the row keeps it, for that version of the row. */
export interface UnstoredAnswer {
  readonly connection: Pick<Connection, "id" | "applicationId" | "userId" | "providerName" | "state" | "version">;
  readonly tokens: RenewedTokens;
}

/**
 * The other processes that refresh with the same store. One that is gone never comes back under its name, and the proof
 * of its life ends with it: a lease that has only grown old proves nothing, since its owner may hold an answer that the
 * store refuses (docs/refresh.md).
 */
export interface Peers {
  /**
   * Calls `settle` for each owner that is gone for certain, with the answers that it could not store. What it left is
   * forgotten when that resolves, and stays when it rejects.
   */
  settleGone(settle: (owner: string, answers: readonly UnstoredAnswer[]) => Promise<void>): Promise<void>;
}

/** Where this process keeps what the store refuses; that it is held open is the proof that this process lives. */
export interface Spool extends Peers {
  /** The name of this process in leases: 16 hexadecimal digits, never used again. */
  readonly owner: string;
  /** Keeps an answer durably. False when it cannot be kept here either. */
  keep(answer: UnstoredAnswer): boolean;
  /** Forgets an answer that is stored. */
  drop(answer: UnstoredAnswer): void;
  /** Whether the owner is, or was, a process of this machine: then its spool tells whether it lives. */
  knows(owner: string): boolean;
  /** Whether it holds no answer; false also when that cannot be told. */
  isEmpty(): boolean;
  /** Ends the proof of life. @param isDone whether no lease of ours is left, so that nobody has to look. */
  close(isDone: boolean): void;
}
