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
  /** Whether a body ends with its length or its last chunk, and not with the connection (RFC 9112 section 6.3). */
  readonly isDelimited: boolean;
  /** Whether the provider closes the connection after it (RFC 9112 section 9.6). */
  readonly isLast: boolean;
}

/** Reads the parser's raw field lines. Pure; names are compared only where their length fits, since most do not. */
export function fieldsFromRaw(raw: readonly Buffer[]): AnswerFields {
  const lines = textsOf(raw);
  let contentLength: number | undefined;
  let contentEncoding: string | undefined;
  let transferEncoding: string | undefined;
  let isLast = false;
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = lines[at] as string;
    const value = lines[at + 1] as string;
    if (is(name, "content-length")) contentLength = Number.parseInt(value, 10) || 0;
    else if (is(name, "content-encoding")) contentEncoding = joined(contentEncoding, value);
    else if (is(name, "transfer-encoding")) transferEncoding = joined(transferEncoding, value);
    else if (is(name, "connection")) isLast ||= is(value.trim(), "close");
  }
  const isDelimited = contentLength !== undefined || transferEncoding !== undefined;
  return { lines, contentLength: contentLength ?? 0, contentEncoding, transferEncoding, isDelimited, isLast };
}

/** The first value of a field, empty without one. `name` is lower-case. */
export function headerValue(lines: readonly string[], name: string): string {
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (is(lines[at] as string, name)) return lines[at + 1] as string;
  }
  return "";
}

/**
 * Bytes as latin1 text. Nearly always all of them lie in the one packet that the head came in: then it is decoded once and
 * the text is cut, since each call into Node.js for a few bytes takes as long as cutting all of it.
 */
function textsOf(raw: readonly Buffer[]): string[] {
  const packet = packetOf(raw);
  if (packet === undefined) return raw.map((bytes) => bytes.toString("latin1"));
  const head = packet.toString("latin1");
  return raw.map((bytes) => {
    const start = bytes.byteOffset - packet.byteOffset;
    return head.slice(start, start + bytes.length);
  });
}

/** From the first byte to the last; undefined when they are not one after the other in one memory. */
function packetOf(raw: readonly Buffer[]): Buffer | undefined {
  const [first] = raw;
  if (first === undefined) return undefined;
  const { buffer, byteOffset } = first;
  let end = byteOffset;
  for (const bytes of raw) {
    if (bytes.buffer !== buffer || bytes.byteOffset < end) return undefined;
    end = bytes.byteOffset + bytes.length;
  }
  return Buffer.from(buffer, byteOffset, end - byteOffset);
}

function is(name: string, expected: string): boolean {
  return name.length === expected.length && name.toLowerCase() === expected;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
