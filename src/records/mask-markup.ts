import { isSensitiveField, isSensitiveName, MASKED, roleOf } from "./sensitive-name.js";

// Names are bounded, so that no text takes quadratic time.
const OPENING = /<([\w:.-]{1,64})((?:\s[^<>]*)?)>/g;
const NAMING_ATTRIBUTE = /\s(?:name|key|field|property)\s{0,8}=\s{0,8}["']?([^"'\s>]{1,64})/i;
const TEXT_AND_NEXT = /\s{0,64}([^<>]{1,64})<\/[\w:.-]{1,64}\s{0,8}>\s{0,64}<([\w:.-]{1,64})(?:\s[^<>]*)?>/y;

/**
 * Masks the content of XML and HTML elements that the element's name, an attribute, or the element before it marks as a
 * credential. Pure; the text may be truncated.
 */
export function maskElements(text: string): string {
  let masked = "";
  let at = 0;
  const search = { text, endless: 0 };
  OPENING.lastIndex = 0;
  for (let tag = OPENING.exec(text); tag !== null; tag = OPENING.exec(text)) {
    const content = contentOf(search, tag, OPENING.lastIndex);
    if (content === undefined) continue;
    masked += text.slice(at, content.start) + MASKED;
    at = content.end;
    OPENING.lastIndex = at;
  }
  return masked + text.slice(at);
}

interface Range {
  readonly start: number;
  readonly end: number;
}

interface Search {
  readonly text: string;
  /** Elements so far whose end tag was searched for and not found. */
  endless: number;
}

/**
 * Most elements without an end tag (HTML has some) that are ignored; a further one is masked to the end of the text.
 */
const MAX_ENDLESS = 16;

/**
 * The range to mask; undefined if there is none. A sensitive element without an end tag runs to the end of the text.
 */
function contentOf(
  search: Search,
  [, name = "", attributes = ""]: readonly string[],
  start: number,
): Range | undefined {
  const { text } = search;
  if (attributes.endsWith("/")) return undefined;
  const local = localName(name);
  if (isSensitiveName(local)) return { start, end: endOf(text, name, start) ?? text.length };
  const named = NAMING_ATTRIBUTE.exec(attributes)?.[1];
  if (named !== undefined && isSensitiveField(named)) {
    const end = endOf(text, name, start) ?? (++search.endless > MAX_ENDLESS ? text.length : undefined);
    if (end !== undefined) return { start, end };
  }
  return roleOf(local.toLowerCase()) === "naming" ? contentOfNext(text, start) : undefined;
}

/** The range to mask in a pair such as `<name>password</name><value>…</value>`. */
function contentOfNext(text: string, from: number): Range | undefined {
  TEXT_AND_NEXT.lastIndex = from;
  const [all, named = "", next = ""] = TEXT_AND_NEXT.exec(text) ?? [];
  if (all === undefined || !isSensitiveField(named)) return undefined;
  const start = from + all.length;
  return all.endsWith("/>") ? undefined : { start, end: endOf(text, next, start) ?? text.length };
}

function localName(name: string): string {
  return name.slice(name.lastIndexOf(":") + 1);
}

/** Offset of an element's end tag; undefined when there is none. */
function endOf(text: string, name: string, from: number): number | undefined {
  const tags = new RegExp(`<(/?)${name.replaceAll(".", "\\.")}(?:\\s[^<>]*)?>`, "gi");
  tags.lastIndex = from;
  let depth = 1;
  for (let tag = tags.exec(text); tag !== null; tag = tags.exec(text)) {
    if (tag[1] === "/") depth -= 1;
    else if (!tag[0].endsWith("/>")) depth += 1;
    if (depth === 0) return tag.index;
  }
  return undefined;
}

/** The header field that names a part (RFC 7578 section 4.2). */
const DISPOSITION = /^content-disposition[ \t]*:/i;
/** Most characters of a part's header fields, which are few. */
const MAX_HEAD = 1024;

/** The content of the multipart part whose Content-Disposition field contains `at`; undefined if there is none. */
export function partAt(text: string, at: number): Range | undefined {
  const before = text.slice(Math.max(0, at - MAX_HEAD), at);
  const lineStart = before.lastIndexOf("\n") + 1;
  if (!DISPOSITION.test(before.slice(lineStart))) return undefined;
  const delimiter = before
    .slice(0, lineStart)
    .split("\n")
    .findLast((line) => line.startsWith("--"))
    ?.trimEnd();
  const emptyLine = /\n\r?\n/.exec(text.slice(at, at + MAX_HEAD));
  if (delimiter === undefined || emptyLine === null) return undefined;
  const start = at + emptyLine.index + emptyLine[0].length;
  const next = text.indexOf(`\n${delimiter}`, start - 1);
  if (next === -1) return { start, end: text.length };
  return { start, end: Math.max(start, text[next - 1] === "\r" ? next - 1 : next) };
}
