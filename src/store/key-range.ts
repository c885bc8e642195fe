/** Text from `start` on, and before `end`, compared as UTF-8 bytes. */
export interface KeyRange {
  readonly start: string;
  /** No text of its own. In SQL: `CAST(:end AS TEXT)`. */
  readonly end: Buffer;
}

/** In no UTF-8 text. */
const GREATEST = Buffer.of(0xff);

/**
 * All text that begins with `prefix`, from behind `after` on.
 *
 * @param after a text that begins so, too; undefined: from the first one on.
 */
export function rangeOfPrefix(prefix: string, after: string | undefined): KeyRange {
  const end = Buffer.concat([Buffer.from(prefix), GREATEST]);
  return { start: after === undefined ? prefix : behind(after), end };
}

/** The one text alone. */
export function rangeOfOne(text: string): KeyRange {
  return { start: text, end: Buffer.from(behind(text)) };
}

/** The least text that is greater. */
function behind(text: string): string {
  return `${text}\0`;
}
