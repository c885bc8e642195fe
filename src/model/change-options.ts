import type { AuditEntry } from "./audit.js";

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
    super("It was changed meanwhile. Read it again, and decide anew. Nothing was changed.");
    this.name = "ChangedMeanwhileError";
  }
}

/** Throws ChangedMeanwhileError where the options refuse the row. */
export function requireCurrent<Row>({ isCurrent }: ChangeOptions<Row>, row: Row): void {
  if (isCurrent !== undefined && !isCurrent(row)) throw new ChangedMeanwhileError();
}
