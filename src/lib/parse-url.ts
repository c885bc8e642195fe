import { domainToUnicode } from "node:url";

/**
 * Parses a URL by the URL standard, relative to `base`. Undefined for anything else, and when a label of its host only
 * looks like Punycode (RFC 5890 section 2.3.2.1): Node.js 24 and later accept such a name, earlier versions refuse it.
 *
 * Not `URL.canParse()`: in Node.js 20 it returns wrong results for Latin-1 letters after some thousand calls.
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

/** Decodes percent-encoding (RFC 3986 section 2.1); undefined when it is malformed, or not UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // The error holds the text, and goes no further.
    return undefined;
  }
}

/** A parameter's value; empty when it is missing or repeated. */
export function onlyValue(parameters: URLSearchParams, name: string): string {
  const values = parameters.getAll(name);
  return values.length === 1 ? (values[0] ?? "") : "";
}

/** Whether a label that looks like Punycode is: one that cannot be decoded comes back empty or unchanged. */
function isLabel(label: string): boolean {
  return !label.startsWith("xn--") || /[^\0-\x7f]/.test(domainToUnicode(label));
}
