/** Ctrl-C reaches a process twice when npm started it: from the terminal, and passed on by npm. In milliseconds. */
const SAME_KEYPRESS_MS = 500;

/**
 * Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. Call it once.
 *
 * @param beforeExit called before a second one ends the process.
 */
export function stopSignal(beforeExit: () => void = () => {}): Promise<void> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const onSignal = (signal: NodeJS.Signals) => {
      const isSameKeypress =
        signal === "SIGINT" && firstAt !== undefined && performance.now() - firstAt < SAME_KEYPRESS_MS;
      if (firstAt !== undefined && !isSameKeypress) {
        beforeExit();
        process.exit(1);
      }
      firstAt ??= performance.now();
      resolve();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}

/** Exit codes of a failure: 1 the operation failed, 2 the usage or the configuration is wrong. */
export type FailureCode = 1 | 2;

/** Errors whose message is for the operator, by name, so that nothing needs to be loaded to tell them. */
const OPERATOR_ERRORS: ReadonlyMap<string, FailureCode> = new Map([
  ["RelayError", 1],
  ["ApplicationExistsError", 1],
  ["StoreOpenError", 1],
  ["StoreNotEmptyError", 1],
  ["KeyFileError", 2],
  ["KeyMismatchError", 2],
  ["AdminTokenFileError", 2],
  ["ProviderDefinitionError", 2],
]);

/** The exit code of an error whose message is for the operator; undefined for every other one. */
export function operatorExitCode(error: unknown): FailureCode | undefined {
  return error instanceof Error ? OPERATOR_ERRORS.get(error.name) : undefined;
}
