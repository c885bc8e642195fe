import { bufferOf, NOTHING } from "../lib/chunks.js";
import { createAutomaton } from "./automaton.js";
import { createPieceFilter } from "./piece-filter.js";
import { createStreamRedactor, type StreamRedactor } from "./redact-stream.js";
import { canonical, hasLead, Unescape } from "./unescape.js";

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
  const searched = secrets.filter(({ length }) => length >= MIN_SECRET_LENGTH);
  if (searched.length === 0) return NOTHING_TO_FIND;
  const small = lazily(() => createPieceFilter(searched.map(beginningOf).flatMap(spellingsOf).flatMap(whole), SMALL));
  const spellings = () => searched.map(spellingsOf);
  const large = lazily(() => createPieceFilter(spellings().flatMap(whole)));
  // Most answers are told to have no secret without it, and it takes four times the memory of all the rest.
  const automaton = weakly(() => {
    const all = spellings();
    return createAutomaton([...all.flatMap(whole), ...all.flatMap(rests)]);
  });
  const filterFor = (length: number) => (length <= SMALL_BYTES ? small : large)();
  const redactor: Redactor = {
    bytes(input) {
      const first = filterFor(input.length).firstIn(input);
      if (first === -1) return input;
      const stream = redactor.stream();
      const parts = [input.subarray(0, first), ...stream.push(input.subarray(first), NOTHING), ...stream.end()];
      return stream.hasFound() ? Buffer.concat(parts) : input;
    },
    text(input) {
      if (!filterFor(input.length).mayBeInText(input)) return input;
      const bytes = Buffer.from(input);
      const clean = redactor.bytes(bytes);
      return clean === bytes ? input : clean.toString();
    },
    stream: () => createStreamRedactor(automaton, large()),
    looks: () => automaton().looks(),
  };
  return redactor;
}

/** Longer answers are searched in larger steps. */
const SMALL_BYTES = 4096;
const SMALL_STEP = 4;
/** As many as small steps look at of each spelling. */
const BEGINNING_LENGTH = 16;
/** What nobody has to escape, as most tokens. */
const PLAIN = /^[\w.~-]*$/;
/** What a plain secret is spelled with, in UTF-16, too. */
const PLAIN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/.~\0";
const SMALL = { maxStep: SMALL_STEP, letters: PLAIN_LETTERS } as const;

/** Enough of a secret for a search in small steps. All its spellings and a filter for them take 20 µs, these 5. */
function beginningOf(secret: string): string {
  return PLAIN.test(secret) ? secret.slice(0, BEGINNING_LENGTH) : secret;
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Made again once the garbage collector has taken it. */
function weakly<T extends object>(make: () => T): () => T {
  let made: WeakRef<T> | undefined;
  return () => {
    const kept = made?.deref();
    if (kept !== undefined) return kept;
    const anew = make();
    made = new WeakRef(anew);
    return anew;
  };
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
  const plain = unencodedForms(secret)
    .flatMap(bytesOf)
    .map((text) => canonicalText(undone(text)));
  const base64 = writtenForms(secret).flatMap(bytesOf).flatMap(base64Of);
  const twice = secret.length > MAX_WRITTEN_LENGTH ? [] : base64.slice(0, 3).flatMap(base64Of);
  const encoded = [...base64, ...twice].filter(({ length }) => length > MIN_SECRET_LENGTH);
  return {
    whole: [...plain.filter(({ length }) => length >= MIN_SECRET_LENGTH), utf16Of(secret), ...encoded],
    encoded,
  };
}

/** Texts that a secret is found by. */
interface Spellings {
  readonly whole: readonly Uint8Array[];
  /** Those in base64. */
  readonly encoded: readonly Uint8Array[];
}

function whole({ whole }: Spellings): readonly Uint8Array[] {
  return whole;
}

/** What is in the next line where one ends behind the first letter of base64. */
function rests({ encoded }: Spellings): Uint8Array[] {
  return encoded.map((text) => text.subarray(1));
}

/**
 * As it is, with the sign that a form has for a space, and as HTML has it: Go escapes `+` there, Handlebars `=`, others `/`
 * or both.
 */
function unencodedForms(secret: string): string[] {
  if (PLAIN.test(secret)) return [secret];
  const html = secret.replace(/[&<>"]/g, (sign) => HTML_NAMES[sign] as string);
  const equals = html.replaceAll("=", "&#x3D;");
  const escaped = [html, html.replaceAll("+", "&#43;"), equals];
  const slashes = [html, equals].map((text) => text.replaceAll("/", "&#x2F;"));
  return [...new Set([secret, secret.replaceAll(" ", "+"), ...escaped, ...slashes])];
}

const HTML_NAMES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** From its first letter to its last, which is the same in either order of the bytes. */
function utf16Of(secret: string): Uint8Array {
  return canonicalText(Buffer.from(secret, "utf16le").subarray(0, -1));
}

/** A loop: `map()` of a Buffer takes ten times as long. */
function canonicalText(text: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = canonical(text[at] as number);
  return bytes;
}

/** As software writes it that puts it into base64 then. */
function writtenForms(secret: string): string[] {
  if (PLAIN.test(secret) || secret.length > MAX_WRITTEN_LENGTH) return [secret];
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret.toWellFormed());
  const lower = url.replace(/%../g, (triplet) => triplet.toLowerCase());
  return [...new Set([secret, json, json.replaceAll("/", "\\/"), url, lower])];
}

/** As UTF-8, and as it stands in a field. */
function bytesOf(text: string): Buffer[] {
  const utf8 = Buffer.from(text);
  const isAscii = utf8.length === text.length;
  return isAscii ? [utf8] : [utf8, Buffer.from(text, "latin1")];
}

/** What looks like an escape in the secret itself is undone where it is read. */
function undone(text: Uint8Array): Uint8Array {
  if (!hasLead(text)) return text;
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

/** For each of the three alignments. By hand, since a Buffer's own way through strings takes five times as long. */
function base64Of(text: Uint8Array): Uint8Array[] {
  return [0, 1, 2].map((lead) => {
    const first = Math.ceil((lead * 8) / 6);
    const last = Math.floor(((lead + text.length) * 8) / 6);
    const letters = Buffer.allocUnsafe(last - first);
    for (let at = 0; at < letters.length; at++) {
      const bit = 6 * (first + at) - 8 * lead;
      const pair = ((text[bit >> 3] as number) << 8) | (text[(bit >> 3) + 1] ?? 0);
      letters[at] = BASE64_LETTERS.charCodeAt((pair >> (10 - (bit & 7))) & 0x3f);
    }
    return letters;
  });
}

/** RFC 4648 section 4. */
const BASE64_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
