/** What stands in an answer where a token was. */
export const REDACTED = "[redacted]";

/** Shorter secrets are not searched for: they would match ordinary text. No provider issues such tokens. */
const MIN_SECRET_LENGTH = 8;

/** Takes secrets out of what a provider sent back. */
export interface Redactor {
  /** Returns the same bytes when nothing was found. */
  bytes(input: Buffer): Buffer;
  text(input: string): string;
}

/**
 * Searches for the given secrets as they are, URL-encoded, JSON-escaped and in base64 at any alignment (threats L01,
 * L02). A provider that transforms a token in another way cannot be found out; the caller's own provider already has
 * the token, so what this stops is an ordinary echo.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const needles = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH).flatMap(formsOf);
  const byteNeedles = needles.map((needle) => Buffer.from(needle, "latin1"));
  return {
    bytes: (input) => byteNeedles.reduce(replaceBytes, input),
    text: (input) =>
      needles.reduce((text, needle) => (text.includes(needle) ? text.replaceAll(needle, REDACTED) : text), input),
  };
}

/** The spellings of one secret, longest first so that no part of one is left when a shorter one is replaced. */
function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret);
  const forms = new Set([
    secret,
    json,
    json.replaceAll("/", "\\/"),
    url,
    url.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase()),
    url.replaceAll("%20", "+"),
    ...base64Forms(secret),
  ]);
  return [...forms].sort((a, b) => b.length - a.length);
}

/**
 * The part of the secret's base64 that is the same whatever stands before and behind it, for each of the three
 * alignments, in the standard and the URL-safe alphabet (RFC 4648 sections 4 and 5).
 */
function base64Forms(secret: string): string[] {
  const forms: string[] = [];
  for (const lead of [0, 1, 2]) {
    const encoded = Buffer.from("\0".repeat(lead) + secret, "latin1")
      .toString("base64")
      .replace(/=+$/, "");
    const first = Math.ceil((lead * 8) / 6);
    const last = Math.floor(((lead + secret.length) * 8) / 6);
    const core = encoded.slice(first, last);
    if (core.length >= MIN_SECRET_LENGTH) forms.push(core, core.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return forms;
}

function replaceBytes(input: Buffer, needle: Buffer): Buffer {
  let at = input.indexOf(needle);
  if (at === -1) return input;
  const parts: Buffer[] = [];
  let from = 0;
  for (; at !== -1; at = input.indexOf(needle, from)) {
    parts.push(input.subarray(from, at), Buffer.from(REDACTED));
    from = at + needle.length;
  }
  parts.push(input.subarray(from));
  return Buffer.concat(parts);
}
