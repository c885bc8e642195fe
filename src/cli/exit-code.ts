import { ApplicationExistsError } from "../applications/application.js";
import { RelayError } from "../errors.js";
import { ExitError, type FailureCode } from "./exit-error.js";
import { writeNote } from "./output.js";

/** Tells the person at the terminal what failed, and answers with the exit code. */
export async function exitCodeFrom(error: unknown): Promise<FailureCode> {
  if (error instanceof ExitError) {
    if (error.message !== "") writeNote(error.message);
    return error.exitCode;
  }
  for (const [type, exitCode] of await knownErrors()) {
    if (error instanceof type) {
      writeNote(error.message);
      return exitCode;
    }
  }
  writeNote(faultText(error));
  return 1;
}

type ErrorClass = abstract new (...args: never[]) => Error;

/** Errors whose message is for the operator; their files are loaded only now, since some load the database. */
async function knownErrors(): Promise<ReadonlyArray<readonly [ErrorClass, FailureCode]>> {
  const [{ KeyFileError }, { KeyMismatchError }, { StoreOpenError }, { ProviderDefinitionError }] = await Promise.all([
    import("../tokens/key-file.js"),
    import("../store/verify-keys.js"),
    import("../store/sqlite-error.js"),
    import("../providers/problem.js"),
  ]);
  return [
    [RelayError, 1],
    [ApplicationExistsError, 1],
    [StoreOpenError, 1],
    [KeyFileError, 2],
    [KeyMismatchError, 2],
    [ProviderDefinitionError, 2],
  ];
}

/** A fault of ours or of the system. Its text may quote input, so only class and code are told. */
function faultText(error: unknown): string {
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { name: typeof error, code: "" };
  return `The command failed (${[name, code].filter(Boolean).join(" ")}). Please report this.`;
}
