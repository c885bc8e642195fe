import { maskJson } from "./mask-json.js";
import { isSensitiveField, isSensitiveName, MASKED } from "./sensitive-name.js";

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
