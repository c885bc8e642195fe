import { canonical, isLead, Unescape } from "./unescape.js";

/** Shorter secrets are not searched for: they would match ordinary text. No provider issues such tokens. */
const MIN_SECRET_LENGTH = 8;

/** Longer ones are searched for in base64 only as they are: each further way makes three texts more. */
const MAX_WRITTEN_LENGTH = 1024;

/**
 * The texts that `Reading` finds a secret by, in whichever way it is escaped: itself, and the part of its base64 that is
 * the same whatever stands before and behind it, for each of the three alignments. Within base64 escapes are not undone,
 * so the secret is written there in the ways that software writes it; a short one is looked for in base64 of base64, too.
 */
export function spellingsOf(secret: string): Spellings {
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
export interface Spellings {
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
