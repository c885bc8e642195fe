import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** One guard of the source, and how to take it out. */
export interface Guard {
  readonly name: string;
  /** Text that stands exactly once in all of src/, wherever it has moved to; any white space matches any other. */
  readonly find: string;
  /** What stands there when the guard is gone. */
  readonly replace: string;
  /** Test files below test/, without `.test.ts`, that should notice. */
  readonly tests: readonly string[];
}

/** A file below src/. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** A guard in one line: name, text → text, tests. */
export function guard(
  name: string,
  [find, replace]: readonly [find: string, replace: string],
  ...tests: readonly string[]
): Guard {
  return { name, find, replace, tests };
}

/** All source files of a working tree. */
export function readSources(folder: string): readonly Source[] {
  return readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(?:ts|js|css|html)$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(folder, "src", path), "utf8") }));
}

/** The file with the guard, as it is and without it; undefined when the text to find does not stand in the source exactly once. */
export function withoutGuard(
  sources: readonly Source[],
  { find, replace }: Pick<Guard, "find" | "replace">,
): (Source & { readonly mutated: string }) | undefined {
  const pattern = new RegExp(find.trim().split(/\s+/).map(escaped).join("\\s+"), "g");
  const places = sources.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map((match) => ({ path, text, match })),
  );
  const [place] = places;
  if (place === undefined || places.length > 1) return undefined;
  const { path, text, match } = place;
  return { path, text, mutated: text.slice(0, match.index) + replace + text.slice(match.index + match[0].length) };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
