/** Where a call goes, without a value of its query. */
export interface CallTarget {
  readonly path: string;
  readonly queryKeys: readonly string[];
}

/** Longer paths are cut, so that a record stays small. */
const MAX_PATH_LENGTH = 1024;
/** More says nothing more. */
const MAX_KEYS = 32;
const MAX_KEY_LENGTH = 64;

const NONE: readonly string[] = Object.freeze([]);

/**
 * Leaves out what may be secret. Pure. What stands in the query without a `=` may be a value, so it is no key.
 *
 * @param target path and query of the url, as it was judged: before a token came into it.
 * @param parameters what the call adds to the query.
 */
export function describeTarget(
  target: string,
  parameters: ReadonlyArray<readonly [name: string, value: string]>,
): CallTarget {
  const mark = target.indexOf("?");
  const path = (mark === -1 ? target : target.slice(0, mark)).slice(0, MAX_PATH_LENGTH);
  if (mark === -1 && parameters.length === 0) return { path, queryKeys: NONE };
  const keys = mark === -1 ? [] : keysOf(target.slice(mark + 1));
  for (const [name] of parameters) keys.push(name);
  return { path, queryKeys: [...new Set(keys)].slice(0, MAX_KEYS).map((key) => key.slice(0, MAX_KEY_LENGTH)) };
}

function keysOf(query: string): string[] {
  return query
    .split("&")
    .map((part) => part.slice(0, Math.max(0, part.indexOf("="))))
    .filter((key) => key !== "");
}
