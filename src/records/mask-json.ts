/** What stands for a value that nobody is to see. */
export const MASKED = "[masked]";

/** In a name without its dashes, dots and underscores, lower-case. */
const NAME_PART =
  /token|secret|passw|passphrase|passcode|credential|authorization|authentication|apikey|accesskey|privatekey|signingkey|sessionid|cookie|jwt|assertion|codeverifier|signature|bearer|hmac/;
const WHOLE = new Set(["auth", "otp", "pass", "pin", "pwd", "session", "sid", "sig"]);

/** Whether a member of a body says by its name that its value is a credential. Rather one too many than one too few. */
export function isSensitiveName(name: string): boolean {
  const letters = lettersOf(name);
  return WHOLE.has(letters) || NAME_PART.test(letters);
}

/** The same of a header field or a parameter of a query, where `key` is one as well. */
export function isSensitiveField(name: string): boolean {
  return isSensitiveName(name) || lettersOf(name).endsWith("key");
}

function lettersOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** The last one may end with the text. */
const STRING = /"(?:[^"\\]|\\[\s\S])*"?/g;
const COLON = /\s*:\s*/y;
const SCALAR = /[^\s,}\]]*/y;
const BRACKET_OR_STRING = /"(?:[^"\\]|\\[\s\S])*"?|[[\]{}]/g;

/** JSON within a string within JSON: deeper than that, the whole string is masked. */
const MAX_DEPTH = 3;
const MASK = JSON.stringify(MASKED);

/**
 * Masks members of JSON whose names say that they are credentials. Pure. Made for what is no whole JSON, too: a beginning
 * of it, lines of it, or text around it. JSON in strings is looked through as well.
 */
function maskJson(text: string, depth = 0): string {
  let masked = "";
  let at = 0;
  for (let string = matchFrom(STRING, text, at); string !== undefined; string = matchFrom(STRING, text, at)) {
    const colon = matchFrom(COLON, text, string.end);
    masked += text.slice(at, string.start);
    at = (colon ?? string).end;
    if (colon === undefined) {
      masked += maskString(string.text, depth);
      continue;
    }
    masked += string.text + colon.text;
    const name = nameFrom(string.text);
    if (!isSensitiveName(name)) continue;
    const end = valueEnd(text, at);
    masked += maskValue(name, text.slice(at, end));
    at = end;
  }
  return masked + text.slice(at);
}

interface Match {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

function matchFrom(pattern: RegExp, text: string, from: number): Match | undefined {
  pattern.lastIndex = from;
  const match = pattern.exec(text);
  return match === null ? undefined : { text: match[0], start: match.index, end: match.index + match[0].length };
}

/** Names may be written with escapes. */
function nameFrom(string: string): string {
  return parsed(string) ?? string;
}

/** Neither a literal nor a count, as of the tokens of a language model, gives anything away. */
function maskValue(name: string, value: string): string {
  const isCount = /tokens|count$/i.test(name) && /^\d{1,9}$/.test(value);
  return isCount || /^(?:true|false|null|)$/.test(value) ? value : MASK;
}

/** A string that holds JSON has escaped quotes. */
function maskString(string: string, depth: number): string {
  if (!string.includes('\\"')) return string;
  const text = parsed(string);
  if (text === undefined || depth === MAX_DEPTH) return MASK;
  const masked = maskJson(text, depth + 1);
  return masked === text ? string : JSON.stringify(masked);
}

/** Undefined for a string that is cut or malformed. */
function parsed(string: string): string | undefined {
  try {
    return JSON.parse(string) as string;
  } catch {
    // The text may be no JSON at all, and the error would quote it.
    return undefined;
  }
}

function valueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return matchFrom(STRING, text, start)?.end ?? text.length;
  return first === "[" || first === "{" ? nestedEnd(text, start) : (matchFrom(SCALAR, text, start)?.end ?? start);
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; ; ) {
    const next = matchFrom(BRACKET_OR_STRING, text, at);
    if (next === undefined) return text.length;
    at = next.end;
    if (next.text === "[" || next.text === "{") depth += 1;
    else if ((next.text === "]" || next.text === "}") && --depth === 0) return at;
  }
}

/** RFC 7235 section 2.1: what stands behind a scheme, wherever somebody wrote it. */
const SCHEME = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
const ELEMENT = /(<([\w:.-]+)(?:\s[^<>]*)?>)([^<]+)/g;
// Names are bounded, so that no text takes time with the square of its length.
const ATTRIBUTE = /(?<![\w:.-])([\w:.-]{1,64})(\s{0,8}=\s{0,8})("[^"]*"?|'[^']*'?)/g;
/** RFC 7578 section 4.2: the head of a part, an empty line, its content up to the next boundary. */
const PART = /(name="([^"\r\n]{1,64})"[^\r\n]{0,256}(?:\r\n[^\r\n]{1,256}){0,4}\r\n\r\n)([\s\S]*?)(?=\r\n--|$)/gi;

/**
 * Masks credentials in the beginning of a text body, found by the names of members, parameters, parts, elements and
 * attributes. Pure.
 *
 * @param contentType as the body's header says; may be empty.
 */
export function maskText(text: string, contentType: string): string {
  const type = contentType.toLowerCase();
  if (type.includes("x-www-form-urlencoded")) return maskSchemes(maskParameters(text));
  if (type.includes("multipart/")) return maskSchemes(text.replace(PART, maskNamed(isSensitiveField)));
  if (/^\s*</.test(text)) return maskSchemes(maskMarkup(text));
  return maskSchemes(maskJson(text));
}

/** A query, or a body of the same form. */
export function maskParameters(text: string): string {
  return text.replace(/(?<![^&])([^=&]*)=([^&]*)/g, (all, name: string) =>
    isSensitiveField(decoded(name)) ? `${name}=${MASKED}` : all,
  );
}

/** The value of a header field. */
export function maskField(name: string, value: string): string {
  return isSensitiveField(name) ? MASKED : maskSchemes(value);
}

function maskMarkup(text: string): string {
  const attributes = text.replace(ATTRIBUTE, (all, name: string, equals: string) =>
    isSensitiveName(name) ? `${name}${equals}"${MASKED}"` : all,
  );
  return attributes.replace(ELEMENT, maskNamed(isSensitiveName));
}

/** For a pattern whose groups are what stays, the name, and the value. */
function maskNamed(isSensitive: (name: string) => boolean) {
  return (all: string, kept: string, name: string) => (isSensitive(name) ? kept + MASKED : all);
}

function maskSchemes(text: string): string {
  return text.replace(SCHEME, `$1 ${MASKED}`);
}

/** A name that is not percent-encoded correctly is looked at as it is. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
