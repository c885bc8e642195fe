import { isIPv4, isIPv6 } from "node:net";
import { parseUrl } from "../lib/parse-url.js";

/**
 * Judges whom a request is addressed to: exactly one Host (HTTP/1), or :authority and at most a Host that says the
 * same (HTTP/2), and a value that `accepts` takes. Pure as far as `accepts` is.
 *
 * RFC 9112 section 3.2, RFC 9113 section 8.3.1.
 *
 * @param rawHeaders names and values in turn, as received.
 * @param accepts judges the value: {@link isHost}, or one that {@link createHostMemory} makes.
 * @returns what is wrong, as a sentence for the client, or undefined.
 */
export function decideHost(
  rawHeaders: readonly string[],
  accepts: (value: string) => boolean = isHost,
): string | undefined {
  let host: string | undefined;
  let authority: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name === ":authority") authority = rawHeaders[index + 1];
    else if (name.length === 4 && name.toLowerCase() === "host") {
      if (host !== undefined) return "The request has more than one Host; send one.";
      host = rawHeaders[index + 1];
    }
  }
  const addressee = authority ?? host;
  if (addressee === undefined) return "The request has no Host; send one.";
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase())
    return "Host and :authority differ; send one of them.";
  return accepts(addressee) ? undefined : "Host is not a name or address with an optional port.";
}

/** Letters, digits, `-`, `.` and `_`, which is what names in use consist of, or an address in brackets; then a port. */
const HOST = /^(?:([\w.-]{1,255})|\[([\da-f:.]{2,45})\])(?::(\d{0,5}))?$/i;
/** Names that the URL parser takes for an IPv4 address or for Punycode, and may then not understand. */
const SPECIAL_NAME = /(?:^|\.)(?:\d[^.]*\.?$|xn--)/i;

/**
 * Whether a value names a host in a form that `new URL()` takes after `http://`, whatever it then does with it.
 * Narrower than RFC 9110 section 7.2: no percent-encoding, no user information, no IPvFuture.
 */
export function isHost(value: string): boolean {
  const match = HOST.exec(value);
  if (match === null) return false;
  const [, name, address, port] = match;
  if (port !== undefined && Number(port) > 65_535) return false;
  if (name === undefined) return isIPv6(address as string);
  return !SPECIAL_NAME.test(name) || isIPv4(name) || parseUrl(`http://${name}`) !== undefined;
}

/**
 * {@link isHost} that remembers the last value it accepted. Nearly all requests of a listener name the same host, and
 * patterns are slow on the strings that node:http2 makes: it saves 5 % of an HTTP/2 request.
 */
export function createHostMemory(): (value: string) => boolean {
  let known: string | undefined;
  return (value) => {
    if (value === known) return true;
    if (!isHost(value)) return false;
    known = value;
    return true;
  };
}
