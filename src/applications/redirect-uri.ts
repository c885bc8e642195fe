import { parseUrl } from "../lib/parse-url.js";
import type { Parsed } from "./parsed.js";

/** Of private-use schemes (RFC 8252 section 7.1): a domain name in reverse, so that nobody else's scheme is taken. */
const PRIVATE_USE = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/{1,3}[\x21-\x7e]*$/;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);
const MAX_LENGTH = 2048;

/**
 * Reads an address that browsers may be sent back to: https, http to this machine for development, or an app's own
 * scheme. Calls are compared with it as text (RFC 9700 section 4.1.3), so it must be spelled as a URL parser spells it.
 */
export function parseRedirectUri(text: string): Parsed {
  if (text.length > MAX_LENGTH) return { problem: `must have at most ${MAX_LENGTH} characters` };
  if (PRIVATE_USE.test(text) && !text.includes("#")) return { value: text };
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) {
    return { problem: "must be an https address, or one of an app's own scheme such as com.example.app:/connected" };
  }
  if (url.protocol === "http:" && !LOOPBACK.has(url.hostname)) {
    return { problem: "must use https; http is only for this machine, for development" };
  }
  if (text.includes("#") || url.username !== "" || url.password !== "") {
    return { problem: "must have neither a fragment nor a name and password" };
  }
  return url.href === text ? { value: text } : { problem: `must be written as ${url.href}` };
}
