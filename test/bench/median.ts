/** The middle value; undefined of none. */
export function medianOf(values: readonly number[]): number | undefined {
  return quantileOf(values, 0.5);
}

/** The value below which this part of the values lies, between two neighbours in proportion; undefined of none. */
export function quantileOf(values: readonly number[], part: number): number | undefined {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (sorted.length - 1) * part;
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low === undefined || high === undefined ? undefined : low + (high - low) * (at - Math.floor(at));
}
