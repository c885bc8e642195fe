import type { LeasedConnection, RefreshedTokens } from "./connection.js";

/** A provider's answer that is not in the store yet: sealed as for the row, and for that version of the row. */
export interface UnstoredAnswer {
  readonly connection: LeasedConnection;
  readonly tokens: RefreshedTokens;
}

/** What to do for a process that is gone. */
export interface Settlement {
  /** Stores an answer that it could not store. Rejects with STORE_UNAVAILABLE when the store cannot be used now. */
  store(answer: UnstoredAnswer): Promise<void>;
  /** Ends its leases, so that others may send the refresh tokens that it held. */
  free(owner: string): Promise<void>;
}

/**
 * The other processes that refresh with the same store. A process proves that it lives by a lock, which ends with it,
 * and its name is never used again. An expired lease proves nothing: its owner may hold an answer that the store
 * refuses (docs/refresh.md).
 */
export interface Peers {
  /**
   * For each owner that is certainly gone: stores the answers that it left, then ends its leases. Answers that the
   * store refuses stay, with the leases, until it accepts them. An answer that can never be stored stays as well, and
   * the leases then end only by time, but it does not keep the other answers back.
   */
  settleGone(settlement: Settlement): Promise<void>;
}

/** Makes this process visible to those on other machines, and finds those that are gone. */
export interface Presence extends Peers {
  /**
   * Proves at once that this process lives; settling does so too. For a process that takes leases but settles nothing.
   * Rejects when the store cannot be used.
   */
  begin(): Promise<void>;
}

/** Where this process keeps answers that the store refuses; holding it open proves that the process lives. */
export interface Spool extends Peers {
  /** The name of this process in leases: 16 hexadecimal digits, never used again. */
  readonly owner: string;
  /** Keeps an answer durably. Returns false when that fails as well. */
  keep(answer: UnstoredAnswer): boolean;
  /** Forgets an answer that is stored. */
  drop(answer: UnstoredAnswer): void;
  /** Whether the owner is, or was, a process on this machine: then its spool shows whether it lives. */
  knows(owner: string): boolean;
  /**
   * Ends this process's leases, and the proof that it lives. If the spool still holds an answer, both the leases and
   * the spool stay: the process that takes over stores the answer first. Never rejects.
   */
  close(free: Settlement["free"]): Promise<void>;
}
