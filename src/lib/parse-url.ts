import { domainToUnicode } from "node:url";

/**
 * The URL that a text is by the URL standard, relative to `base`; undefined when it is none, or when a label of its host only looks like
 * Punycode (RFC 5890 section 2.3.2.1): Node.js 24 and later take such a name as it stands, earlier ones refuse it.
 *
 * `URL.canParse()` of Node.js 20 answers wrongly for letters of Latin-1 once it has been called some thousand times.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    const url = new URL(text, base);
    return url.hostname.includes("xn--") && !url.hostname.split(".").every(isLabel) ? undefined : url;
  } catch {
    // The error holds the text, and goes no further.
    return undefined;
  }
}

/** The text that a percent-encoded one stands for (RFC 3986 section 2.1); undefined where it is encoded wrongly, or not as UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // The error holds the text, and goes no further.
    return undefined;
  }
}

/** A parameter's value; empty when it is missing or stands more than once. */
export function onlyValue(parameters: URLSearchParams, name: string): string {
  const values = parameters.getAll(name);
  return values.length === 1 ? (values[0] ?? "") : "";
}

/** What cannot be decoded comes back empty, or as it was. */
function isLabel(label: string): boolean {
  return !label.startsWith("xn--") || /[^\0-\x7f]/.test(domainToUnicode(label));
}
