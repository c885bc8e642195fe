/** A request parameter that cannot be used; the sandbox answers 400. The message never repeats the value. */
export class InvalidParameter extends Error {
  constructor(name: string, expected: string) {
    super(`${name} must be ${expected}`);
    this.name = "InvalidParameter";
  }
}

/** A range of integers with the value that stands for a missing parameter. */
export interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

/** Reads an integer from the query. Throws {@link InvalidParameter} when it is not one or out of range. */
export function integerParameter(query: URLSearchParams, name: string, range: IntegerRange): number {
  const text = query.get(name);
  return text === null ? range.fallback : parseInteger(text, name, range);
}

/** Parses decimal digits into an integer of the range. Throws {@link InvalidParameter}. */
export function parseInteger(text: string, name: string, { min, max }: Omit<IntegerRange, "fallback">): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new InvalidParameter(name, `an integer from ${min} to ${max}`);
  return value;
}
