/**
 * The record of a change, written in the transaction of the change. It never holds a secret, and only the names of the
 * changed fields.
 */
export interface AuditEntry {
  /**
   * UUID version 7 (RFC 9562 section 5.7): increasing within one process, and across processes as far as clocks agree.
   */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The name of an admin token, or `cli:` and the operating system's user. */
  readonly actor: string;
  /** Full name of a method of relay.admin.v1, or a command such as `relay key rotate`. */
  readonly method: string;
  /** The changed resource, such as `applications/KEY/oauthClients/PROVIDER`. */
  readonly resource: string;
  /** Public key of the application concerned; empty for none. */
  readonly publicKey: string;
  /** Names of the fields that were written. */
  readonly changedFields: readonly string[];
}

/** One line of the audit trail. */
export interface AuditRecord extends AuditEntry {
  /** `REFUSED`: the operator's role does not allow it, and nothing was changed. */
  readonly outcome: "DONE" | "REFUSED";
}

/** Selects records, newest first. */
interface AuditFilter {
  /** Only those with a smaller id. */
  readonly beforeId: string | undefined;
  /** Only those about this application. */
  readonly publicKey: string | undefined;
  /** At most this many. */
  readonly limit: number;
}

/**
 * The audit trail. Records cannot be changed or deleted. Rejects with RelayError STORE_UNAVAILABLE when the store
 * cannot be used.
 */
export interface AuditStore {
  /** Writes a record that belongs to no change. */
  add(record: AuditRecord): Promise<void>;
  list(filter: AuditFilter): Promise<AuditRecord[]>;
}

/** A console session, which a logged-in browser uses instead of an admin token. */
export interface Session {
  /** Random; it does not authenticate anyone. */
  readonly id: string;
  /** When it expires, in milliseconds since the epoch. */
  readonly endsAt: number;
}

/** Sessions that were ended before they expired. Rejects with RelayError STORE_UNAVAILABLE if the store is unusable. */
export interface SessionStore {
  /**
   * Ends a session on every relay that shares the store, and deletes those that expired over a week ago. False when it
   * was ended before.
   */
  end(session: Session, now: number, audit: AuditEntry): Promise<boolean>;
  isEnded(id: string): Promise<boolean>;
}

/** Options for a change of one row. */
export interface ChangeOptions<Row> {
  /** Written in the same transaction, if anything was changed. */
  readonly audit?: AuditEntry | undefined;
  /** Checks the row inside the transaction; if false, nothing is changed and ChangedMeanwhileError is thrown. */
  readonly isCurrent?: ((row: Row) => boolean) | undefined;
}

/** The row was changed by another writer since it was read. */
export class ChangedMeanwhileError extends Error {
  constructor() {
    super("It was changed in the meantime. Read it again and retry; nothing was written.");
    this.name = "ChangedMeanwhileError";
  }
}

/** Throws ChangedMeanwhileError if `isCurrent` refuses the row. */
export function requireCurrent<Row>({ isCurrent }: ChangeOptions<Row>, row: Row): void {
  if (isCurrent !== undefined && !isCurrent(row)) throw new ChangedMeanwhileError();
}
