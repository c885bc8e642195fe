import { bufferOf, NOTHING } from "../lib/chunks.js";
import { canonical, createAutomaton } from "./automaton.js";
import { createPieceFilter } from "./piece-filter.js";
import { utf8Of } from "./reading.js";
import { createStreamRedactor, type StreamRedactor } from "./redact-stream.js";

/** Masks secrets in what a provider sent back. */
export interface Redactor {
  /** Returns `input` itself when nothing was found. */
  bytes(input: Buffer): Buffer;
  text(input: string): string;
  /** Creates a redactor for one body that arrives in pieces; same result as `bytes()` for the whole. */
  stream(): StreamRedactor;
  /** Number of automaton steps so far; the filter is not counted. Linear in the bytes searched, whatever they are. */
  looks(): number;
}

/**
 * Searches for the given secrets in every spelling that a JSON parser, a form decoder or a base64 decoder decodes, also
 * mixed or nested (threats L01, L02; `spellingsOf()`). Other transformations of a token are not detected. The caller's
 * own provider has the token anyway, so this protects against an ordinary echo only.
 *
 * Only whole secrets are masked. Masking parts would tell a caller, who may have chosen text echoed, whether a guess is
 * part of a secret.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const searched = secrets.filter(({ length }) => length >= MIN_SECRET_LENGTH);
  if (searched.length === 0) return NOTHING_TO_FIND;
  const small = lazily(() =>
    createPieceFilter(
      searched.map(beginningOf).flatMap((secret) => spellingsOf(secret).texts),
      SMALL,
    ),
  );
  const spellings = () => searched.map(spellingsOf);
  const large = lazily(() => createPieceFilter(spellings().flatMap(({ texts }) => texts)));
  // Held weakly: the filter clears most answers without it, and it takes four times the memory of everything else.
  const automaton = weakly(() => {
    const all = spellings();
    return createAutomaton([...all.flatMap(({ texts }) => texts), ...all.flatMap(rests)]);
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

/** Answers up to this size are searched with small steps, longer ones with large steps. */
const SMALL_BYTES = 4096;
const SMALL_STEP = 4;
/** How many bytes of each spelling a filter with small steps uses. */
const BEGINNING_LENGTH = 16;
/** Secrets that no encoder has to escape, like most tokens. */
const PLAIN = /^[\w.~-]*$/;
/** Every byte in the spellings of a plain secret; NUL is there for UTF-16. */
const PLAIN_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/.~\0";
const SMALL = { maxStep: SMALL_STEP, letters: PLAIN_LETTERS } as const;

/**
 * The part of a secret that small steps need. Its spellings and their filter take 5 µs to make, the whole secret's 20.
 */
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

/** Calls `make` again once the garbage collector has freed the value. */
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

/** Longer secrets are searched for in base64 in their plain form only: each further form adds three texts. */
const MAX_WRITTEN_LENGTH = 1024;

/**
 * The texts that `Reading` searches for to find a secret, however it is escaped: the secret itself, and for each of the
 * three base64 alignments the letters that do not depend on the bytes before and after it. `Reading` does not undo
 * escapes within base64, so the usual escaped forms are encoded as well (`writtenForms()`). Secrets up to {@link
 * MAX_WRITTEN_LENGTH} are also searched for in base64 of base64.
 */
function spellingsOf(secret: string): Spellings {
  const plain = unencodedForms(secret).flatMap(bytesOf).flatMap(withUndone).map(canonicalText);
  const base64 = writtenForms(secret).flatMap(bytesOf).flatMap(base64Of);
  const twice = secret.length > MAX_WRITTEN_LENGTH ? [] : base64.slice(0, 3).flatMap(base64Of);
  const encoded = [...base64, ...twice].filter(({ length }) => length > MIN_SECRET_LENGTH);
  return { texts: [...plain, utf16Of(secret), ...encoded], encoded };
}

/** The texts to search for to find one secret. */
interface Spellings {
  readonly texts: readonly Uint8Array[];
  /** The base64 texts among them. */
  readonly encoded: readonly Uint8Array[];
}

/** The base64 texts without their first letter, for a line break right after it. */
function rests({ encoded }: Spellings): Uint8Array[] {
  return encoded.map((text) => text.subarray(1));
}

/** The secret itself, with `+` for each space as in a form, in JSON, and escaped for HTML. */
function unencodedForms(secret: string): string[] {
  if (PLAIN.test(secret)) return [secret];
  // No token is so long and has quotes; ten texts of six times its length would take a tenth of a second.
  const isOdd = secret.length > MAX_WRITTEN_LENGTH && /["'`]/.test(secret);
  const pages = isOdd ? [] : HTML_ESCAPES.map((names) => htmlOf(secret, names));
  return [...new Set([secret, secret.replaceAll(" ", "+"), ...jsonForms(secret), ...pages])];
}

/** Split and joined: replacing each by itself takes four times as long where there are many. */
function htmlOf(secret: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce((text, [sign, name]) => text.split(sign).join(name), secret);
}

const NAMES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** How software escapes text for HTML, named after one of those that do. The ampersand comes first. */
const HTML_ESCAPES: ReadonlyArray<Readonly<Record<string, string>>> = [
  /* Java */ NAMES,
  /* Go */ { ...NAMES, '"': "&#34;", "'": "&#39;" },
  /* Go's templates */ { ...NAMES, '"': "&#34;", "'": "&#39;", "+": "&#43;" },
  /* Ruby */ { ...NAMES, "'": "&#39;" },
  /* PHP */ { ...NAMES, "'": "&#039;" },
  /* Python */ { ...NAMES, "'": "&#x27;" },
  /* Underscore */ { ...NAMES, "'": "&#x27;", "`": "&#x60;" },
  /* OWASP */ { ...NAMES, "'": "&#x27;", "/": "&#x2F;" },
  /* Handlebars */ { ...NAMES, "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;" },
  /* Mustache */ { ...NAMES, "'": "&#39;", "`": "&#x60;", "=": "&#x3D;", "/": "&#x2F;" },
];

/**
 * In JSON, also with its slashes escaped, and in ASCII. Not a slash at the beginning: the backslash before it may belong
 * to an escaped backslash, which must stay whole.
 */
function jsonForms(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const hexOf = (unit: string) => unit.charCodeAt(0).toString(16).padStart(4, "0");
  return [json, json.replace(/(?!^)\//g, "\\/"), json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${hexOf(unit)}`)];
}

/** UTF-16 without the last zero byte, so that it occurs in either byte order. */
function utf16Of(secret: string): Uint8Array {
  return canonicalText(Buffer.from(secret, "utf16le").subarray(0, -1));
}

/** A loop: `map()` of a Buffer takes ten times as long. */
function canonicalText(text: ArrayLike<number>): Uint8Array {
  const bytes = Buffer.allocUnsafe(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = canonical(text[at] as number);
  return bytes;
}

/** The forms that software encodes in base64: plain, escaped for JSON, also in ASCII, percent-encoded. */
function writtenForms(secret: string): string[] {
  if (PLAIN.test(secret) || secret.length > MAX_WRITTEN_LENGTH) return [secret];
  const url = encodeURIComponent(secret.toWellFormed());
  const lower = url.replace(/%../g, (triplet) => triplet.toLowerCase());
  return [...new Set([secret, ...jsonForms(secret), url, lower])];
}

/**
 * As UTF-8 and, unless it is ASCII, as Latin-1, the encoding of header fields, and with each half of a surrogate pair
 * by itself, as `Reading` undoes them in JSON.
 */
function bytesOf(text: string): Buffer[] {
  const utf8 = Buffer.from(text);
  if (utf8.length === text.length) return [utf8];
  const halves = text.split("").flatMap((unit) => utf8Of(unit.charCodeAt(0)));
  return [utf8, Buffer.from(text, "latin1"), ...(HALVES.test(text) ? [Buffer.from(halves)] : [])];
}

/**
 * A secret such as `ab%41"cdef` keeps its triplet in JSON, but `Reading` undoes it together with the escapes of JSON. A
 * result that is too short may be ordinary text.
 */
function withUndone(text: Buffer): Buffer[] {
  if (!text.includes("%")) return [text];
  const undone = text
    .toString("latin1")
    .replace(/%([\dA-Fa-f]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return undone.length < MIN_SECRET_LENGTH ? [text] : [text, Buffer.from(undone, "latin1")];
}

const HALVES = /[\ud800-\udfff]/;

/**
 * The base64 of a text at each of the three alignments, without the letters that depend on its neighbours. By hand:
 * Buffer encodes to a string, and takes five times as long.
 */
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

/** The standard alphabet (RFC 4648 section 4). */
const BASE64_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
