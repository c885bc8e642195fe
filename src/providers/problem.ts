/** One thing that is wrong with a provider definition. */
export interface ProviderProblem {
  /** The file as the operator named it, or below a folder so named: two folders may have files of one name. */
  readonly file: string;
  /** Path of the member in the definition, such as `apiOrigins[0]`; empty for the file as a whole. */
  readonly field: string;
  readonly message: string;
}

/** Notes a problem of one file. */
export type Report = (field: string, message: string) => void;

/** Definitions that cannot be used: `message` has a line for every problem, for the operator. */
export class ProviderDefinitionError extends Error {
  readonly problems: readonly ProviderProblem[];

  constructor(problems: readonly ProviderProblem[]) {
    super(problems.map(textFromProblem).join("\n"));
    this.name = "ProviderDefinitionError";
    this.problems = problems;
  }
}

/** The problem as a line for an operator: `github.json: apiOrigins[0]: must use https`. */
export function textFromProblem({ file, field, message }: ProviderProblem): string {
  return field === "" ? `${file}: ${message}` : `${file}: ${field}: ${message}`;
}
