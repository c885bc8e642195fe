/** A database that the relay cannot start with. The message is for the operator: which one, and what to do. */
export class StoreOpenError extends Error {
  /** @param database its file, or its address without user and password. */
  constructor(database: string, problem: string, options?: { cause?: unknown }) {
    super(`Database ${database}: ${problem}`, options);
    this.name = "StoreOpenError";
  }
}
