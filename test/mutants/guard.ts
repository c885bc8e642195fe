/** One guard of the source, and how to take it out. */
export interface Guard {
  readonly name: string;
  /** File below src/. */
  readonly file: string;
  /** Text that stands in the file exactly once. */
  readonly find: string;
  /** What stands there when the guard is gone. */
  readonly replace: string;
  /** Test files below test/, without `.test.ts`, that should notice. */
  readonly tests: readonly string[];
}

/** A guard in one line: name, file, text → text, tests. */
export function guard(
  name: string,
  file: string,
  [find, replace]: readonly [find: string, replace: string],
  ...tests: readonly string[]
): Guard {
  return { name, file, find, replace, tests };
}

/** The file's text without the guard; undefined when the text to find does not stand in it exactly once. */
export function withoutGuard(text: string, { find, replace }: Pick<Guard, "find" | "replace">): string | undefined {
  const at = text.indexOf(find);
  if (at === -1 || text.indexOf(find, at + 1) !== -1) return undefined;
  return text.slice(0, at) + replace + text.slice(at + find.length);
}
