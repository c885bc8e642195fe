import type { FailureCode } from "../lib/exit-codes.js";

/** A failure of a command. `message` is for the person at the terminal; empty when everything has been said. */
export class ExitError extends Error {
  readonly exitCode: FailureCode;

  constructor(exitCode: FailureCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ExitError";
    this.exitCode = exitCode;
  }
}

/** The operation failed: not found, refused, an error row. */
export function failure(message: string, cause?: unknown): ExitError {
  return new ExitError(1, message, { cause });
}

/** The command line, what was piped in, or the configuration is wrong. */
export function usageError(message: string, cause?: unknown): ExitError {
  return new ExitError(2, message, { cause });
}
