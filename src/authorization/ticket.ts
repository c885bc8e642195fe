/**
 * What a secret in a browser stands for: `LINK`, a connect link that was not opened yet; `SESSION`, an open connect
 * page; `STATE`, an authorization request on its way (RFC 6749 section 4.1.1).
 */
export type TicketKind = "LINK" | "SESSION" | "STATE";

/** A short-lived secret as the store keeps it: by its hash, bound to application, user and browser. */
export interface Ticket {
  /** Hex SHA-256 of the secret. */
  readonly id: string;
  readonly kind: TicketKind;
  /** Hex SHA-256 of the browser's cookie; empty for a link, which any browser may open. */
  readonly browser: string;
  readonly applicationId: string;
  readonly userId: string;
  /** Sealed JSON. */
  readonly payload: Uint8Array;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** Which ticket; all three must be right. */
export type TicketKey = Pick<Ticket, "id" | "kind" | "browser">;

/** Where tickets are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface TicketStore {
  /**
   * Adds a ticket, and removes some that have ended. Resolves to false, with nothing added, when the application has
   * `most` tickets of this kind that have not.
   */
  add(ticket: Ticket, most: number, now: number): Promise<boolean>;
  /** The ticket, unless it has ended. */
  find(key: TicketKey, now: number): Promise<Ticket | undefined>;
  /** The ticket, unless it has ended; it is gone from then on, so that nobody else gets it. */
  take(key: TicketKey, now: number): Promise<Ticket | undefined>;
}
