import { isSensitiveField, isSensitiveName, MASKED, roleOf } from "./sensitive-name.js";

// Names are bounded, so that no text takes time with the square of its length.
const OPENING = /<([\w:.-]{1,64})((?:\s[^<>]*)?)>/g;
const NAMING_ATTRIBUTE = /\s(?:name|key|field|property)\s{0,8}=\s{0,8}["']?([^"'\s>]{1,64})/i;
const TEXT_AND_NEXT = /\s{0,64}([^<>]{1,64})<\/[\w:.-]{1,64}\s{0,8}>\s{0,64}<([\w:.-]{1,64})(?:\s[^<>]*)?>/y;

/**
 * Masks what stands in elements of XML or HTML up to their end tags, where the element's name, an attribute, or the
 * element before it says that it is a credential. Pure; made for beginnings of a text, too.
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
  /** Elements whose end was looked for in vain. */
  endless: number;
}

/** Elements without an end, as HTML has some, that are looked at; one after that goes to the end of the text. */
const MAX_ENDLESS = 16;

/** Undefined for what may be seen. A sensitive element that does not end goes to the end of the text. */
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

/** As in `<name>password</name><value>…</value>`. */
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

/** Where the end tag begins that belongs to an element; undefined when there is none. */
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

/** RFC 7578 section 4.2: the field that describes a part. */
const DISPOSITION = /^content-disposition[ \t]*:/i;
/** Most characters of the fields in front of a part's content, of which there are few. */
const MAX_HEAD = 1024;

/** The content of the part of a multipart body whose Content-Disposition stands at `at`; undefined where none does. */
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
