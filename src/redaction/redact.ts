import { bufferOf } from "../lib/chunks.js";
import { type Automaton, createAutomaton } from "./automaton.js";
import { createPieceFilter } from "./piece-filter.js";
import { createStreamRedactor, type StreamRedactor } from "./redact-stream.js";
import { canonical, isLead, Unescape } from "./unescape.js";

/** Takes secrets out of what a provider sent back. */
export interface Redactor {
  /** Returns the same bytes when nothing was found. */
  bytes(input: Buffer): Buffer;
  text(input: string): string;
  /** Does with the pieces of a body what `bytes()` does with the whole. */
  stream(): StreamRedactor;
  /** How many steps its searches have taken so far, but for the filter: linear in what was searched, whatever it was. */
  looks(): number;
}

/**
 * Searches for the given secrets in every spelling that a JSON parser, a form decoder or a base64 decoder undoes, mixed or
 * one around the other (threats L01, L02; `spellingsOf()`). A provider that transforms a token in another way cannot be
 * found out; the caller's own provider already has the token, so what this stops is an ordinary echo.
 *
 * Only a secret as a whole is found: to mask parts would tell a caller, who may have text of his own echoed, whether a
 * guess is a part of it.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const spellings = secrets.map(spellingsOf);
  const texts = spellings.flatMap(({ whole }) => whole);
  if (texts.length === 0) return NOTHING_TO_FIND;
  const filter = createPieceFilter(texts);
  let made: Automaton | undefined;
  // Most answers are told to have no secret without it.
  const automaton = () => {
    made ??= createAutomaton([...texts, ...spellings.flatMap(({ rests }) => rests)]);
    return made;
  };
  const redactor: Redactor = {
    bytes(input) {
      const first = filter.firstIn(input);
      if (first === -1) return input;
      const stream = redactor.stream();
      const parts = [input.subarray(0, first), ...stream.push(input.subarray(first)), ...stream.end()];
      return stream.hasFound() ? Buffer.concat(parts) : input;
    },
    text(input) {
      if (!filter.mayBeInText(input)) return input;
      const bytes = Buffer.from(input);
      const clean = redactor.bytes(bytes);
      return clean === bytes ? input : clean.toString();
    },
    stream: () => createStreamRedactor(automaton(), filter),
    looks: () => made?.looks() ?? 0,
  };
  return redactor;
}

const NOTHING_TO_FIND: Redactor = {
  bytes: (input) => input,
  text: (input) => input,
  stream: () => ({
    push: (piece) => (piece.length === 0 ? [] : [bufferOf(piece)]),
    end: () => [],
    hasFound: () => false,
  }),
  looks: () => 0,
};

/** Shorter secrets are not searched for: they would match ordinary text. No provider issues such tokens. */
export const MIN_SECRET_LENGTH = 8;

/** Longer ones are searched for in base64 only as they are: each further way makes three texts more. */
const MAX_WRITTEN_LENGTH = 1024;

/**
 * The texts that `Reading` finds a secret by, in whichever way it is escaped: itself, and the part of its base64 that is
 * the same whatever stands before and behind it, for each of the three alignments. Within base64 escapes are not undone,
 * so the secret is written there in the ways that software writes it; a short one is looked for in base64 of base64, too.
 */
function spellingsOf(secret: string): Spellings {
  if (secret.length < MIN_SECRET_LENGTH) return { whole: [], rests: [] };
  const plain = unencodedForms(secret)
    .flatMap(bytesOf)
    .map((text) => undone(text).map(canonical));
  const base64 = writtenForms(secret).flatMap(bytesOf).flatMap(base64Of);
  const twice = secret.length > MAX_WRITTEN_LENGTH ? [] : base64.slice(0, 3).flatMap(base64Of);
  const encoded = [...base64, ...twice].filter(({ length }) => length > MIN_SECRET_LENGTH);
  return {
    whole: [...plain.filter(({ length }) => length >= MIN_SECRET_LENGTH), utf16Of(secret), ...encoded],
    rests: encoded.map((text) => text.subarray(1)),
  };
}

/** Texts that a secret is found by. */
interface Spellings {
  readonly whole: readonly Uint8Array[];
  /** What is in the next line where one ends behind the first letter of base64. */
  readonly rests: readonly Uint8Array[];
}

/**
 * As it is, with the sign that a form has for a space, and as HTML has it: Go escapes `+` there, Handlebars `=`, others `/`
 * or both.
 */
function unencodedForms(secret: string): string[] {
  const html = secret.replace(/[&<>"]/g, (sign) => HTML_NAMES[sign] as string);
  const equals = html.replaceAll("=", "&#x3D;");
  const escaped = [html, html.replaceAll("+", "&#43;"), equals];
  const slashes = [html, equals].map((text) => text.replaceAll("/", "&#x2F;"));
  return [...new Set([secret, secret.replaceAll(" ", "+"), ...escaped, ...slashes])];
}

const HTML_NAMES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** From its first letter to its last, which is the same in either order of the bytes. */
function utf16Of(secret: string): Uint8Array {
  return Buffer.from(secret, "utf16le").subarray(0, -1).map(canonical);
}

/** As software writes it that puts it into base64 then. */
function writtenForms(secret: string): string[] {
  if (/^[\w.~-]*$/.test(secret) || secret.length > MAX_WRITTEN_LENGTH) return [secret];
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret.toWellFormed());
  const lower = url.replace(/%../g, (triplet) => triplet.toLowerCase());
  return [...new Set([secret, json, json.replaceAll("/", "\\/"), url, lower])];
}

/** As UTF-8, and as it stands in a field. */
function bytesOf(text: string): Buffer[] {
  const latin1 = Buffer.from(text, "latin1");
  const utf8 = Buffer.from(text);
  return utf8.equals(latin1) ? [utf8] : [utf8, latin1];
}

/** What looks like an escape in the secret itself is undone where it is read. */
function undone(text: Uint8Array): Uint8Array {
  if (!text.some(isLead)) return text;
  const all = new Undone();
  for (const [at, byte] of text.entries()) all.push(byte, at);
  all.flush(text.length);
  return Uint8Array.from(all.bytes);
}

class Undone extends Unescape {
  readonly bytes: number[] = [];

  protected take(byte: number): void {
    this.bytes.push(byte);
  }

  protected unless(): void {}
}

/** For each of the three alignments. */
function base64Of(text: Buffer): Buffer[] {
  return [0, 1, 2].map((lead) => {
    const first = Math.ceil((lead * 8) / 6);
    const last = Math.floor(((lead + text.length) * 8) / 6);
    return Buffer.from(
      Buffer.concat([Buffer.alloc(lead), text])
        .toString("base64")
        .slice(first, last),
    );
  });
}
