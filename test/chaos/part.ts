/** What a part is told. */
export interface PartOptions {
  readonly count: number;
  readonly seed: number;
}

/** What a part did, in one line or a few, and what it found. */
export interface PartReport {
  readonly lines: readonly string[];
  readonly findings: readonly string[];
}
