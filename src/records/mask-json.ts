import { isSensitiveName, MASKED } from "./sensitive-name.js";

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
export function maskJson(text: string, depth = 0): string {
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
