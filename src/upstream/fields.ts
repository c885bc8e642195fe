/** The head of an answer, read once: its field lines, and what this folder itself must know of them. */
export interface AnswerFields {
  /** Name, value, name, value, … as received; latin1 text. */
  readonly lines: readonly string[];
  /** Octets that are announced; 0 when nothing or nonsense is announced (the parser judges that). */
  readonly contentLength: number;
  /** RFC 9110 section 8.4: codings in the order applied, repeated lines joined; undefined without any. */
  readonly contentEncoding: string | undefined;
  /** RFC 9112 section 6.1; undefined without any. */
  readonly transferEncoding: string | undefined;
}

/** Reads the parser's raw field lines. Pure; names are compared only where their length fits, since most do not. */
export function fieldsFromRaw(raw: readonly Buffer[]): AnswerFields {
  const lines = new Array<string>(raw.length);
  let contentLength = 0;
  let contentEncoding: string | undefined;
  let transferEncoding: string | undefined;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] as Buffer).toString("latin1");
    const value = (raw[at + 1] as Buffer).toString("latin1");
    lines[at] = name;
    lines[at + 1] = value;
    if (is(name, "content-length")) contentLength = Number.parseInt(value, 10) || 0;
    else if (is(name, "content-encoding")) contentEncoding = joined(contentEncoding, value);
    else if (is(name, "transfer-encoding")) transferEncoding = joined(transferEncoding, value);
  }
  return { lines, contentLength, contentEncoding, transferEncoding };
}

/** The first value of a field, empty without one. `name` is lower-case. */
export function headerValue(lines: readonly string[], name: string): string {
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (is(lines[at] as string, name)) return lines[at + 1] as string;
  }
  return "";
}

function is(name: string, expected: string): boolean {
  return name.length === expected.length && name.toLowerCase() === expected;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
