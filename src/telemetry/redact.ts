import { createAnchorFilter } from "./anchor-filter.js";
import { createStreamRedactor, type Needles, REDACTED, redactBytes, type StreamRedactor } from "./redact-stream.js";

/** Shorter secrets are not searched for: they would match ordinary text. No provider issues such tokens. */
const MIN_SECRET_LENGTH = 8;

/** Takes secrets out of what a provider sent back. */
export interface Redactor {
  /** Whether any secret may be in there; false is certain. */
  mayOccurIn(input: Buffer): boolean;
  /** How many bytes of the end of one piece must be searched again with the next one. */
  overlap(): number;
  /** Returns the same bytes when nothing was found. */
  bytes(input: Buffer): Buffer;
  text(input: string): string;
  /** Does with the pieces of a body what `bytes()` does with the whole. */
  stream(): StreamRedactor;
}

/**
 * Searches for the given secrets as they are, URL-encoded, JSON-escaped and in base64 at any alignment (threats L01,
 * L02). A provider that transforms a token in another way cannot be found out; the caller's own provider already has
 * the token, so what this stops is an ordinary echo.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const groups = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH).flatMap(groupsOf);
  const filter = createAnchorFilter(groups.map(({ anchor }) => anchor));
  const foundIn = (input: Buffer) =>
    filter?.mayBeInBytes(input) === false ? NONE : groups.filter(({ anchor }) => input.includes(anchor, 0, "latin1"));
  return {
    mayOccurIn: (input) => foundIn(input).length > 0,
    overlap: () => Math.max(0, ...groups.map(({ anchor }) => anchor.length - 1)),
    bytes(input) {
      const found = foundIn(input);
      return found.length === 0 ? input : redactBytes(input, found.map(needlesOf));
    },
    text(input) {
      if (filter?.mayBeInText(input) === false) return input;
      const found = groups.filter(({ anchor }) => input.includes(anchor));
      return found.length === 0 ? input : found.flatMap(({ forms }) => forms()).reduce(replaceText, input);
    },
    stream: () => createStreamRedactor(groups.map(needlesOf)),
  };
}

const NONE: readonly Group[] = [];

/** Spellings that all hold the same anchor: where it is not, none of them is, and one search is enough. */
interface Group {
  readonly anchor: string;
  /** Longest first, so that no part of one is left when a shorter one is replaced. Asked for only after a hit. */
  readonly forms: () => readonly string[];
}

function needlesOf({ anchor, forms }: Group): Needles {
  return { anchor: latin1(anchor), forms: forms().map(latin1) };
}

/** So much of a secret is taken out even where the rest of it is spelled in no way we know. */
const MIN_ANCHOR_LENGTH = 16;

function groupsOf(secret: string): Group[] {
  const [anchor = ""] = (secret.match(/\w+/g) ?? []).sort((a, b) => b.length - a.length);
  const remains = anchor.length >= MIN_ANCHOR_LENGTH ? [anchor] : [];
  const base64 = base64Forms(secret).map((form) => ({ anchor: form, forms: () => [form] }));
  return [{ anchor, forms: () => [...spelledForms(secret), ...remains] }, ...base64];
}

/** Letters, digits and `_` are the same in each of them. */
function spelledForms(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const url = encodeURIComponent(secret);
  const forms = new Set([
    secret,
    json,
    json.replaceAll("/", "\\/"),
    ...escapedForms(secret),
    url,
    url.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase()),
    url.replaceAll("%20", "+"),
    // As Python's quote() leaves it.
    url.replaceAll("%2F", "/"),
  ]);
  return [...forms].sort((a, b) => b.length - a.length);
}

/** What writers of JSON escape though RFC 8259 section 7 lets it stand: .NET, Gson, and those that escape all they can. */
const ESCAPED = [/[+<>&'`]/g, /[=<>&']/g, /\W/g] as const;

function escapedForms(secret: string): string[] {
  const forms = ESCAPED.map((characters) => secret.replace(characters, (one) => `\\u00${hexOf(one)}`));
  return [
    ...forms,
    ...forms.map((form) => form.replace(/\\u00../g, (written) => written.toUpperCase().replace("U", "u"))),
  ];
}

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, "0");
}

/**
 * The part of the secret's base64 that is the same whatever stands before and behind it, for each of the three
 * alignments, in the standard and the URL-safe alphabet (RFC 4648 sections 4 and 5).
 */
function base64Forms(secret: string): string[] {
  const forms: string[] = [];
  const bytes = latin1(`${LEADS}${secret}`);
  for (let lead = 0; lead <= LEADS.length; lead++) {
    const first = Math.ceil((lead * 8) / 6);
    const last = Math.floor(((lead + secret.length) * 8) / 6);
    const core = bytes.toString("base64", LEADS.length - lead).slice(first, last);
    if (core.length < MIN_SECRET_LENGTH) continue;
    forms.push(core);
    if (core.includes("+") || core.includes("/")) forms.push(core.replaceAll("+", "-").replaceAll("/", "_"));
  }
  return forms;
}

/** What may stand before a secret in the three bytes that it begins in. */
const LEADS = "\0\0";

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function replaceText(text: string, form: string): string {
  return text.replaceAll(form, REDACTED);
}
