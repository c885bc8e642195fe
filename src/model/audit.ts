/**
 * What is written down of a change, in the change's own transaction. It never holds a secret, and of what was changed
 * the names only.
 */
export interface AuditEntry {
  /** See {@link AuditRecord.id}. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The name of an admin token, or `cli:` and the operating system's user. */
  readonly actor: string;
  /** Full name of a method of relay.admin.v1, or a command such as `relay key rotate`. */
  readonly method: string;
  /** What it was done to, such as `applications/KEY/oauthClients/PROVIDER`. */
  readonly resource: string;
  /** Of the application that it is about; empty for none. */
  readonly publicKey: string;
  /** Names of the fields that were written. */
  readonly changedFields: readonly string[];
}

/** One line of the audit trail. */
export interface AuditRecord extends AuditEntry {
  /** UUID version 7 (RFC 9562 section 5.7): later ones of one process are greater, those of others by their clocks. */
  readonly id: string;
  /** `REFUSED`: the operator's role does not allow it, and nothing was changed. */
  readonly outcome: "DONE" | "REFUSED";
}

/** Which records, the newest first. */
interface AuditFilter {
  /** Only those with a smaller id. */
  readonly beforeId: string | undefined;
  /** Only those about this application. */
  readonly publicKey: string | undefined;
  /** At most this many. */
  readonly limit: number;
}

/**
 * The audit trail. There is no way to change or delete a record. Rejects with RelayError STORE_UNAVAILABLE when the
 * store cannot be used.
 */
export interface AuditStore {
  /** Writes a record that belongs to no change. */
  add(record: AuditRecord): Promise<void>;
  list(filter: AuditFilter): Promise<AuditRecord[]>;
}

/** What a browser that was let in to the console sends in place of an admin token. */
export interface Session {
  /** Random; it lets nobody in. */
  readonly id: string;
  /** When it ends by itself, milliseconds since the epoch. */
  readonly endsAt: number;
}

/** The sessions that were ended before their time. Rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface SessionStore {
  /** Ends a session on every relay that shares the store, and forgets those whose time has been over for a week. False when it was ended before. */
  end(session: Session, now: number, audit: AuditEntry): Promise<boolean>;
  isEnded(id: string): Promise<boolean>;
}

/** What a change of one row may ask for beside itself. */
export interface ChangeOptions<Row> {
  /** Written in the same transaction, if there was something to change. */
  readonly audit?: AuditEntry | undefined;
  /** Judges the row as it is in the transaction; where it says no, nothing is changed: ChangedMeanwhileError. */
  readonly isCurrent?: ((row: Row) => boolean) | undefined;
}

/** Somebody else has changed the row since it was read. */
export class ChangedMeanwhileError extends Error {
  constructor() {
    super("It was changed in the meantime. Read it again and retry; nothing was written.");
    this.name = "ChangedMeanwhileError";
  }
}

/** Throws ChangedMeanwhileError where the options refuse the row. */
export function requireCurrent<Row>({ isCurrent }: ChangeOptions<Row>, row: Row): void {
  if (isCurrent !== undefined && !isCurrent(row)) throw new ChangedMeanwhileError();
}
