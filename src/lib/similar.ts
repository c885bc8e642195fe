/** Longer words are not compared: the work grows with the product of both lengths. */
const MAX_LENGTH = 64;

/**
 * `. Did you mean X?`, to append to a sentence without its full stop, if one of the known words was probably meant;
 * otherwise empty. Ignores case and `_`: `client_id` is close to `clientId`. Pure.
 */
export function didYouMean(word: string, known: Iterable<string>): string {
  if (word.length > MAX_LENGTH) return "";
  const wanted = plain(word);
  let found: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = distanceOf(wanted, plain(candidate));
    if (distance <= Math.min(3, Math.floor(wanted.length / 3)) && distance < (found?.distance ?? Infinity))
      found = { word: candidate, distance };
  }
  return found === undefined ? "" : `. Did you mean ${found.word}?`;
}

function plain(word: string): string {
  return word.replaceAll("_", "").toLowerCase();
}

/** Edit distance: letters to insert, delete, replace, or swap with their neighbour (optimal string alignment). */
function distanceOf(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const steps = [(last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (isSame ? 0 : 1)];
      row.push(Math.min(...steps, isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity));
    }
    [before, last] = [last, row];
  }
  return last[other.length] ?? 0;
}
