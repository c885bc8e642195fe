import { maskElements, partAt } from "./mask-markup.js";
import { isSensitiveField, isSensitiveName, lettersOf, MASKED, roleOf } from "./sensitive-name.js";

/** The credential after an authentication scheme, anywhere in a text (RFC 7235 section 2.1). */
const SCHEME = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
/** User and password in a url (RFC 3986 section 3.2.1). */
const USER_INFO = /(?<=\/\/)[^\s/?#@"'<>\\]{1,256}@/g;
/** Text between tags, and attributes. */
const MARKUP_TEXT = /[^<>"]+/g;

/**
 * Masks credentials in a text, which may be truncated. Finds them by the names in front of them: JSON members,
 * parameters, parts of a multipart body, elements, attributes, header fields, settings. Pure.
 *
 * It looks for all of these in every text, because content types are wrong and formats are nested in strings of other
 * formats. When in doubt it masks. Each level of encoding is scanned once, so the work is linear in the length of the
 * text.
 *
 * @param depth how many levels of encoding have been decoded.
 */
export function maskText(text: string, depth = 0): string {
  const plain = text.includes("&")
    ? text.replace(MARKUP_TEXT, (span) => (span.includes("&") ? maskEncoded(span, ENTITIES, depth) : span))
    : text;
  const named = maskNamed(plain.includes("<") ? maskElements(plain) : plain, depth);
  return named.replace(SCHEME, `$1 ${MASKED}`).replace(USER_INFO, `${MASKED}@`);
}

/** The value of a header field. */
export function maskField(name: string, value: string): string {
  return isSensitiveField(name) ? MASKED : maskText(value);
}

/** A way to write one text within another. */
interface Encoding {
  readonly decode: (text: string) => string;
  readonly encode: (text: string) => string;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
/** The inside of a JSON string. */
const JSON_STRING: Encoding = {
  decode: (text) =>
    text.replace(/\\(?:u([\da-f]{4})|([\s\S]))/gi, (_, hex: string | undefined, letter: string) =>
      hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  encode: (text) => JSON.stringify(text).slice(1, -1),
};

/**
 * Percent-encoding (RFC 3986 section 2.1). Malformed escapes stay as they are; bytes that are not UTF-8 become U+FFFD.
 */
const PERCENT: Encoding = {
  decode: (text) =>
    text.replace(/(?:%[\da-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll("%", ""), "hex").toString()),
  encode: (text) => encodeURIComponent(Buffer.from(text).toString()),
};

const CHARACTERS: Readonly<Record<string, string>> = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&" };
/** Character references of XML and HTML. */
const ENTITIES: Encoding = {
  decode: (text) =>
    text.replace(/&(?:(quot|apos|lt|gt|amp)|#(\d{1,5})|#x([\da-f]{1,4}));/gi, (_, name, decimal, hex) =>
      name === undefined
        ? String.fromCharCode(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal))
        : (CHARACTERS[name.toLowerCase()] as string),
    ),
  encode: (text) => text.replace(/["'<>&]/g, (character) => `&#${character.charCodeAt(0)};`),
};

/** Most nested encodings, such as JSON in a string of JSON. Text nested deeper is masked whole. */
const MAX_DEPTH = 4;

/** Masks an encoded text. Returns it unchanged when there is nothing to mask. */
function maskEncoded(text: string, { decode, encode }: Encoding, depth: number): string {
  const plain = decode(text);
  if (plain === text) return text;
  if (depth === MAX_DEPTH) return MASKED;
  const masked = maskText(plain, depth + 1);
  return masked === plain ? text : encode(masked);
}

/** A string (an unclosed one ends with its line), the separator between a name and a value, a bracket, or a word. */
const TOKEN = /"(?:[^"\\\r\n]|\\[^\r\n])*"?|[:=][:=>]*|[{}<>]|[^\s"'`<>&=:?#;,{}()]+/g;
/** Matches a token that is really the gap between two strings: an earlier quotation mark was unpaired. */
const BETWEEN_STRINGS = /^"\s*[:,}\]]|=\s*"$/;

/** A range of a text, with the text found there or its replacement. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** An object or a tag: one member may name another, as in `{"name":"password","value":"…"}`. */
interface Frame {
  readonly outer: Frame | undefined;
  /** Offset of a member that names a credential. */
  namedAt?: number;
  /** Offset of a value whose name may follow. */
  valueAt?: number;
}

interface Scan {
  readonly text: string;
  readonly edits: Span[];
  frame: Frame;
}

/** Masks the values of sensitive names. */
function maskNamed(text: string, depth: number): string {
  const scan: Scan = { text, edits: [], frame: { outer: undefined } };
  for (let at = 0, token = matchFrom(TOKEN, text, at); token !== undefined; token = matchFrom(TOKEN, text, at)) {
    at = afterToken(scan, token, depth);
  }
  return edited(scan);
}

function afterToken(scan: Scan, token: Span, depth: number): number {
  const { start, end, text } = token;
  switch (text[0]) {
    case '"':
      if (BETWEEN_STRINGS.test(text)) return start + 1;
      note(scan, token, maskString(text, depth));
      return end;
    case ":":
    case "=":
      return afterName(scan, token);
    case "{":
    case "<":
      scan.frame = { outer: scan.frame };
      return end;
    case "}":
    case ">":
      scan.frame = scan.frame.outer ?? { outer: undefined };
      return end;
    default:
      if (text.includes("%")) note(scan, token, maskEncoded(text, PERCENT, depth));
      return end;
  }
}

function note({ edits }: Scan, { start, end, text }: Span, masked: string): void {
  if (masked !== text) edits.push({ start, end, text: masked });
}

/** A string without any of these has nothing to mask. */
const TELLING = /[\\:=<&%@]|bearer|basic/i;

function maskString(string: string, depth: number): string {
  if (!TELLING.test(string)) return string;
  const end = string.length > 1 && string.endsWith('"') ? -1 : undefined;
  const inside = string.slice(1, end);
  const masked = inside.includes("\\") ? maskEncoded(inside, JSON_STRING, depth) : maskText(inside, depth);
  return `"${masked}${end === undefined ? "" : '"'}`;
}

/** Applies the edits. Of two that overlap, the one that starts first wins; from the same start, the longer one. */
function edited({ text, edits }: Scan): string {
  let masked = "";
  let at = 0;
  for (const edit of edits.sort((one, other) => one.start - other.start || other.end - one.end)) {
    if (edit.start < at) continue;
    masked += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return masked + text.slice(at);
}

function matchFrom(pattern: RegExp, text: string, from: number): Span | undefined {
  pattern.lastIndex = from;
  const match = pattern.exec(text);
  return match === null ? undefined : { text: match[0], start: match.index, end: match.index + match[0].length };
}

/** Longest distance between a name and its value in one object, in characters. */
const MAX_APART = 512;

/** Masks the value after a colon or an equals sign if the name before it is sensitive. Returns where to continue. */
function afterName(scan: Scan, token: Span): number {
  const { text, edits, frame } = scan;
  const name = nameBefore(text, token);
  const role = roleOf(lettersOf(name.text));
  const isNamed = role === "value" && token.start - (frame.namedAt ?? Number.NEGATIVE_INFINITY) < MAX_APART;
  if (isNamed || isSensitive(name, text, token)) {
    const value = valueAfter(text, token, name);
    edits.push(value);
    return value.end;
  }
  if (role === "value") frame.valueAt = token.end;
  return role === "naming" ? afterNaming(scan, token, name) : token.end;
}

/** A value short enough to be the name of another value. */
const SHORT_VALUE = /\s{0,16}(?:"([^"\\]{1,128})"|'([^'\\]{1,128})'|([^\s"'<>{},;&=]{1,128}))/y;

function afterNaming({ text, edits, frame }: Scan, token: Span, name: Name): number {
  SHORT_VALUE.lastIndex = token.end;
  const [, ...forms] = SHORT_VALUE.exec(text) ?? [];
  if (!isSensitiveField(decoded(forms.find((form) => form !== undefined) ?? ""))) return token.end;
  frame.namedAt = token.start;
  const { valueAt } = frame;
  if (valueAt !== undefined && name.start - valueAt < MAX_APART) edits.push(valueBefore(text, valueAt, name));
  const part = partAt(text, token.start);
  if (part === undefined) return token.end;
  edits.push({ ...part, text: MASKED });
  return part.end;
}

interface Name {
  readonly start: number;
  readonly text: string;
  readonly isQuoted: boolean;
  /** The word before it. */
  readonly before: string;
  /** Its column, when only spaces and dashes precede it on the line; undefined otherwise. */
  readonly indent: number | undefined;
}

const MAX_NAME = 128;
const LAST_WORD = /(?:([\w-]{1,32})[ \t])?([^\s"'`&?#;,{}()<>=:/|]*)$/;

function nameBefore(text: string, { start: separator }: Span): Name {
  const least = Math.max(0, separator - MAX_NAME);
  const line = text.slice(least, separator).trimEnd();
  const quote = line.at(-1) ?? "";
  if (/["'`]/.test(quote)) {
    const open = line.lastIndexOf(quote, line.length - 2);
    const name = line.slice(line.length > 1 ? open + 1 : 0, -1);
    return { start: least + Math.max(0, open), text: decoded(name), isQuoted: true, before: "", indent: undefined };
  }
  const [, before = "", word = ""] = LAST_WORD.exec(line) ?? [];
  const start = least + line.length - word.length;
  const head = text.slice(least, start);
  const lineStart = head.lastIndexOf("\n") + 1;
  const isFirst = (lineStart > 0 || least === 0) && /^[\s-]*$/.test(head.slice(lineStart));
  const indent = isFirst ? head.length - lineStart : undefined;
  return { start, text: decoded(word), isQuoted: false, before, indent };
}

/** Decodes a name, as far as it is encoded correctly. */
function decoded(name: string): string {
  return PERCENT.decode(JSON_STRING.decode(name));
}

/**
 * A name that ends in `key` is sensitive only as a parameter or setting: as an attribute or member it is too common.
 */
function isSensitive({ text: name, before, isQuoted }: Name, text: string, { text: sign, end }: Span): boolean {
  const isParameter = sign[0] === "=" && !isQuoted && !/["']/.test(text[end] ?? "");
  if (isParameter ? isSensitiveField(name) : isSensitiveName(name)) return true;
  // Such as "API key".
  return before !== "" && isSensitiveName(before + name) && !isSensitiveName(before);
}

const SPACE = /\s*/y;
const BLANK = /[ \t]*/y;
/** Python strings may have a prefix letter; YAML and CSV escape a quotation mark by doubling it. */
const QUOTED = /[bru]{0,2}(?:"(?:[^"\\]|\\[\s\S]|"")*(?:"|\\?$)|'(?:[^'\\]|\\[\s\S]|'')*'|`[^`]*`)/iy;
/** The rest of a parameter whose value only begins like a string or an object. */
const BEHIND_CLOSED = /[^\s&<>,;)}\]]*/y;
const JSON_SCALAR = /[^\s,}\]]*/y;
const REST_OF_LINE = /[^\r\n]*/y;
/** The value of a form parameter, or of a setting on its own line. */
const PARAMETER = /[^&\r\n]*/y;
const PARAMETER_IN_TEXT = /(?:[^&>\s][^&\r\n"<>]*)?/y;

function valueAfter(text: string, { end: from, text: sign }: Span, name: Name): Span {
  const start = matchFrom(name.isQuoted ? SPACE : BLANK, text, from)?.end ?? from;
  const masked = name.isQuoted ? `"${MASKED}"` : MASKED;
  const closed = quotedAt(text, start) ?? nestedAt(text, start, masked);
  if (closed !== undefined) {
    return name.isQuoted ? closed : { ...closed, end: matchFrom(BEHIND_CLOSED, text, closed.end)?.end ?? closed.end };
  }
  const value = matchFrom(bareForm(sign, name), text, start) ?? { text: "", start, end: start };
  const end = sign[0] === ":" ? blockEnd(text, value, name) : value.end;
  if (end === value.end && isHarmless(name, value.text)) return value;
  return { start, end, text: masked };
}

function quotedAt(text: string, at: number): Span | undefined {
  const quoted = matchFrom(QUOTED, text, at);
  if (quoted === undefined) return undefined;
  const quote = /["'`]/.exec(quoted.text)?.[0] ?? "";
  return { ...quoted, text: quote + MASKED + quote };
}

function bareForm(sign: string, { isQuoted, indent }: Name): RegExp {
  if (isQuoted) return JSON_SCALAR;
  if (sign[0] === ":") return REST_OF_LINE;
  return indent === undefined ? PARAMETER_IN_TEXT : PARAMETER;
}

/** True for true, false, null, an empty value, and a count such as a language model's tokens: they reveal nothing. */
function isHarmless({ text: name }: Name, value: string): boolean {
  const isCount = /tokens|count$/i.test(name) && /^\d{1,9}$/.test(value);
  return isCount || /^(?:true|false|null|)$/.test(value);
}

/** Lines indented deeper than a name at the start of a line belong to its value, in YAML and in header fields. */
function blockEnd(text: string, { text: value, end }: Span, { indent }: Name): number {
  if (indent === undefined) return end;
  let last = end;
  for (let line = matchFrom(LINE, text, end); line !== undefined; line = matchFrom(LINE, text, line.end)) {
    const content = line.text.trim();
    const depth = line.text.replace(/^\r?\n/, "").search(/\S/);
    const isItem = value.trim() === "" && content.startsWith("-") && depth >= indent;
    if (content !== "" && depth <= indent && !isItem) break;
    if (content !== "") last = line.end;
  }
  return last;
}

const LINE = /\r?\n[^\r\n]*/y;

/** The value in front of its name. */
function valueBefore(text: string, at: number, name: Name): Span {
  const start = matchFrom(SPACE, text, at)?.end ?? at;
  const quoted = quotedAt(text, start);
  if (quoted !== undefined) return quoted;
  const end = start + text.slice(start, name.start).replace(/[\s,;&]+$/, "").length;
  return { start, end, text: `"${MASKED}"` };
}

const BRACKET_OR_STRING = /"(?:[^"\\]|\\[\s\S])*"?|[[\]{}]/g;

function nestedAt(text: string, start: number, masked: string): Span | undefined {
  if (text[start] !== "[" && text[start] !== "{") return undefined;
  return { start, end: nestedEnd(text, start), text: masked };
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
