import { type FailureCode, operatorExitCode } from "../lib/exit-codes.js";
import { ExitError } from "./exit-error.js";
import { writeNote } from "./output.js";

/** Tells the person at the terminal what failed, and answers with the exit code. */
export function exitCodeFrom(error: unknown): FailureCode {
  if (error instanceof ExitError) {
    if (error.message !== "") writeNote(error.message);
    return error.exitCode;
  }
  const exitCode = operatorExitCode(error);
  writeNote(exitCode === undefined ? faultText(error) : (error as Error).message);
  return exitCode ?? 1;
}

/** A fault of ours or of the system. Its text may quote input, so only class and code are told. */
function faultText(error: unknown): string {
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { name: typeof error, code: "" };
  return `The command failed (${[name, code].filter(Boolean).join(" ")}). Please report this.`;
}
