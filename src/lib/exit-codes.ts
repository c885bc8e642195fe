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
