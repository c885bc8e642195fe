import type { Guard } from "./guard.js";

/** Names told for one that no guard has. */
const MAX_NEAR = 5;
const MIN_LIKENESS = 0.6;

/**
 * The guards with these names, in the list's order, all of them without any name; or what is wrong with the names: one
 * that no guard has would choose nothing. Pure.
 */
export function chosenFrom(
  guards: readonly Guard[],
  names: readonly string[] | undefined,
): readonly Guard[] | { readonly problem: string } {
  if (names === undefined) return guards;
  const known = guards.map(({ name }) => name);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) return { problem: unknown.map((name) => problemOf(name, known)).join("\n") };
  return guards.filter(({ name }) => names.includes(name));
}

function problemOf(name: string, known: readonly string[]): string {
  const near = nearTo(name, known);
  const hint = near.length > 0 ? ` Near it: ${near.map((each) => JSON.stringify(each)).join(", ")}.` : "";
  return `No guard is called ${JSON.stringify(name)}.${hint} --list shows them all.`;
}

/** Those that share most pairs of letters with the name, the likest first. */
function nearTo(name: string, known: readonly string[]): readonly string[] {
  const pairs = pairsOf(name);
  return known
    .map((each) => ({ each, likeness: likenessOf(pairs, pairsOf(each)) }))
    .filter(({ likeness }) => likeness > MIN_LIKENESS)
    .sort((one, other) => other.likeness - one.likeness)
    .slice(0, MAX_NEAR)
    .map(({ each }) => each);
}

/** Of the shorter name's pairs, the part that the other has. */
function likenessOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  const shared = [...one].filter((pair) => other.has(pair)).length;
  return shared / Math.max(1, Math.min(one.size, other.size));
}

function pairsOf(text: string): ReadonlySet<string> {
  const letters = text.toLowerCase();
  return new Set(Array.from({ length: Math.max(0, letters.length - 1) }, (_, at) => letters.slice(at, at + 2)));
}
