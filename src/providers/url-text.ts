/** Why a url is refused; a label for logs. */
export type UrlFault =
  | "too_long"
  | "control"
  | "surrogate"
  | "space"
  | "not_absolute"
  | "scheme"
  | "backslash"
  | "userinfo"
  | "non_ascii_host"
  | "host"
  | "port";

/** A url taken apart as text, before any parser has seen it. */
export interface UrlText {
  /** `https://host[:port]`, ASCII lower-case, default port left out. */
  readonly origin: string;
  /** Query as written, without `?`; undefined when there is none. */
  readonly query: string | undefined;
}

/** Longest url that is accepted, in characters: what common servers take, and threats U37. */
export const MAX_URL_LENGTH = 8192;

const PLAIN = /^[\x21-\x7e]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** Scheme, host and port as they must be written; then the end, a path, a query or a fragment. */
const HEAD = /^([Hh][Tt][Tt][Pp][Ss]?):\/\/([A-Za-z0-9.-]+)(?::([1-9][0-9]{0,4}))?(?=[/?#]|$)/;
const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):/;

/**
 * Reads a caller's url strictly from its text: every spelling that parsers repair, or read differently from one
 * another, is a fault (threats 2A). Linear in the length of the url.
 */
export function parseUrlText(url: string): UrlText | UrlFault {
  if (url.length > MAX_URL_LENGTH) return "too_long";
  const fault = PLAIN.test(url) ? undefined : characterFault(url);
  if (fault !== undefined) return fault;
  const head = HEAD.exec(url);
  if (head === null || Number(head[3] ?? 0) > 65_535) return headFault(url);
  const [matched, scheme = "", host = "", port] = head;
  const origin = originFrom(scheme.toLowerCase(), host.toLowerCase(), port);
  return tailFrom(origin, url.slice(matched.length));
}

function originFrom(scheme: string, host: string, port: string | undefined): string {
  const isDefault = port === undefined || port === (scheme === "https" ? "443" : "80");
  return isDefault ? `${scheme}://${host}` : `${scheme}://${host}:${port}`;
}

/** Splits off the query; the fragment is dropped (RFC 9110 section 7.1). */
function tailFrom(origin: string, tail: string): UrlText | UrlFault {
  const hash = tail.indexOf("#");
  const sent = hash === -1 ? tail : tail.slice(0, hash);
  const mark = sent.indexOf("?");
  const path = mark === -1 ? sent : sent.slice(0, mark);
  if (path.includes("\\")) return "backslash";
  return { origin, query: mark === -1 ? undefined : sent.slice(mark + 1) };
}

function characterFault(url: string): UrlFault | undefined {
  if (CONTROL.test(url)) return "control";
  if (/\p{Surrogate}/u.test(url)) return "surrogate";
  return url.startsWith(" ") || url.endsWith(" ") ? "space" : undefined;
}

/** Says what is wrong with a url whose head is not written as it must be. */
function headFault(url: string): UrlFault {
  const scheme = SCHEME.exec(url);
  if (scheme === null) return "not_absolute";
  if (!/^https?$/i.test(scheme[1] ?? "")) return "scheme";
  const [head = ""] = url.slice(scheme[0].length).split(/[?#]/, 1);
  if (head.includes("\\")) return "backslash";
  const authority = /^\/\/([^/]+)/.exec(head)?.[1];
  if (authority === undefined) return "not_absolute";
  if (authority.includes("@")) return "userinfo";
  if (/[^\u0020-\u007e]/.test(authority)) return "non_ascii_host";
  return /^[A-Za-z0-9.-]+(?::|$)/.test(authority) ? "port" : "host";
}
