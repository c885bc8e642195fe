import { isIP } from "node:net";
import { parseCidrList } from "../lib/address-list.js";
import { parseUrl } from "../lib/parse-url.js";
import type { Parsed } from "./application.js";

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

/**
 * Reads a network of client addresses that may call: `192.0.2.0/24`, `2001:db8::/32`, or one address. An address
 * inside a network, such as `192.0.2.7/8`, is refused: it is a slip that would let in more than was meant.
 */
export function parseCidr(text: string): Parsed {
  if (/[,\s%]/.test(text) || parseCidrList(text)?.length !== 1) {
    return { problem: "must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32" };
  }
  const [address = "", prefix] = text.split("/");
  if (prefix === undefined || isNetwork(address, Number(prefix))) return { value: text };
  return { problem: `has address bits behind its /${prefix}: write the network's first address, or the address alone` };
}

function isNetwork(address: string, prefix: number): boolean {
  const bits = isIP(address) === 4 ? bitsOfIPv4(address) : bitsOfIPv6(address);
  return !bits.slice(prefix).includes("1");
}

function bitsOfIPv4(address: string): string {
  return address
    .split(".")
    .map((byte) => bitsOf(Number(byte), 8))
    .join("");
}

/** The URL parser spells every IPv6 address as hexadecimal groups with at most one `::`. */
function bitsOfIPv6(address: string): string {
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (part: string | undefined) => (part ? part.split(":") : []);
  const missing = new Array<string>(8 - groups(head).length - groups(tail).length).fill("0");
  return [...groups(head), ...missing, ...groups(tail)].map((group) => bitsOf(Number.parseInt(group, 16), 16)).join("");
}

function bitsOf(value: number, width: number): string {
  return value.toString(2).padStart(width, "0");
}
