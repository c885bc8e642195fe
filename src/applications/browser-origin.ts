import { parseUrl } from "../lib/parse-url.js";
import type { Parsed } from "./parsed.js";

const OUTSIDE = /[?#@\\*,\s]/;

/**
 * Reads a browser origin that may call, such as `https://app.example.com`. The value is spelled as browsers send it in
 * `Origin` (RFC 6454 section 6.2), since calls are compared with it as text: host in lower case and punycode, without
 * the default port.
 */
export function parseOrigin(text: string): Parsed {
  if (text === "*") return { problem: "must name one origin; a wildcard would open the application to every website" };
  if (text === "null")
    return { problem: "must not be null: sandboxed frames and local files of anyone have that origin" };
  const url = /^https?:\/\//i.test(text) && !OUTSIDE.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) {
    return { problem: "must be https://host or https://host:port (http for development)" };
  }
  const { origin, pathname } = url;
  return pathname === "/" ? { value: origin } : { problem: `must have no path: write ${origin}` };
}
