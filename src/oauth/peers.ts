import type { LeasedConnection, RefreshedTokens } from "./connection.js";

/** A provider's answer that the store has not taken yet: sealed as the row keeps it, for that version of the row. */
export interface UnstoredAnswer {
  readonly connection: LeasedConnection;
  readonly tokens: RefreshedTokens;
}

/** What is to be done for a process that is gone. */
export interface Settlement {
  /** Stores an answer that it could not store. Rejects with RelayError STORE_UNAVAILABLE when the store refuses it now. */
  store(answer: UnstoredAnswer): Promise<void>;
  /** Ends its leases: from then on others may send the refresh tokens that it had. */
  free(owner: string): Promise<void>;
}

/**
 * The other processes that refresh with the same store. One that is gone never comes back under its name, and the proof
 * of its life ends with it: a lease that has only grown old proves nothing, since its owner may hold an answer that the
 * store refuses (docs/refresh.md).
 */
export interface Peers {
  /**
   * For each owner that is gone for certain, has the answers stored that it left, and then its leases ended. What the
   * store refuses stays, with the leases, until it takes it. An answer that cannot be stored stays by itself.
   */
  settleGone(settlement: Settlement): Promise<void>;
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
  /**
   * Ends this process's leases, and the proof that it lives. An answer that is here keeps both the leases and the spool:
   * whoever takes over stores it first. Never rejects.
   */
  close(free: Settlement["free"]): Promise<void>;
}
