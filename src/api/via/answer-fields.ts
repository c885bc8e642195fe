import type { AnswerHead } from "../../call/outcome.js";
import { parseUrl } from "../../lib/parse-url.js";
import { matchOrigin } from "../../providers/egress.js";
import type { Provider } from "../../providers/provider.js";
import { fieldsFromHead } from "../rest/stream-handler.js";

/** Where an answer comes from and goes to. */
export interface Rewriting {
  readonly provider: Provider;
  /** What the caller called it: its name or an alias, so that a client keeps to one prefix. */
  readonly providerName: string;
  /** The URL that was asked for. */
  readonly url: string;
  /** Origin of the relay as the caller reaches it. */
  readonly relayOrigin: string;
  /** Whether a client would show the caller's proof to the place that a redirect leads to, see `isProofCarried`. */
  readonly isProofCarried: boolean;
}

/** Fields with one URL (RFC 9110 sections 8.7 and 10.2.2). */
const PLACES: ReadonlySet<string> = new Set(["location", "content-location"]);
/** What is more than copied; no other field of most answers is. */
const SPECIAL = /^(?:(?:content-)?location$|link$|x-provider-)/i;
/** Enough for any page of a list; every target may become as long as the URL that was asked for. */
const MAX_LINKS = 50;
/** Node.js refuses longer heads by default, and so do others, in characters. */
const MAX_LINK_LENGTH = 16_384;

/**
 * Fields of an answer that is passed through: those of the raw route, and where the provider names a place of its own, the
 * way there through the relay. What a client could not follow safely comes as `x-provider-…`. Pure.
 *
 * @param rewriting asked for only where a field names places.
 */
export function passedFieldsFrom(
  head: AnswerHead,
  callId: string,
  cors: Readonly<Record<string, string>> | undefined,
  method: string,
  rewriting: () => Rewriting,
): Record<string, string> {
  if (method !== "HEAD" && !head.headers.some(([name]) => SPECIAL.test(name)))
    return fieldsFromHead(head, callId, cors);
  const alsoKept = new Set<string>();
  const headers = head.headers.map(([written, value]) => {
    const name = written.toLowerCase();
    if (PLACES.has(name)) {
      const way = rewriting();
      const place = placeFrom(value, way);
      if (place.isOwn || !(place.isRelay || way.isProofCarried)) alsoKept.add(name);
      return [name, place.url] as const;
    }
    if (name !== "link") return [name, value] as const;
    const links = linksFrom(value, rewriting());
    return links === undefined ? (["x-provider-link", value] as const) : ([name, links] as const);
  });
  // Of HEAD there is no body that redaction could make shorter.
  if (method === "HEAD" && !headers.some(([name]) => name === "content-encoding")) alsoKept.add("content-length");
  for (const [name] of headers) if (name.startsWith("x-provider-")) alsoKept.add(name);
  return fieldsFromHead({ ...head, headers }, callId, cors, alsoKept);
}

/** RFC 8288 section 3: a target stands between angle brackets, which no URL has. Undefined for what is too much, or leads astray. */
function linksFrom(value: string, rewriting: Rewriting): string | undefined {
  if (value.split("<", MAX_LINKS + 2).length > MAX_LINKS + 1) return undefined;
  let isAstray = false;
  const links = value.replace(/<([^<>]*)>/g, (_, target: string) => {
    const { url, isRelay } = placeFrom(target, rewriting);
    isAstray ||= isRelay;
    return `<${url}>`;
  });
  return isAstray || links.length > MAX_LINK_LENGTH ? undefined : links;
}

/** Where a URL of an answer leads. */
interface Place {
  readonly url: string;
  /** The provider's own, through the relay now. */
  readonly isOwn: boolean;
  /** At the relay itself: who follows it would show the proof of one provider's request at another's, or anywhere here. */
  readonly isRelay: boolean;
}

/**
 * A URL of the provider as one of the relay, everything behind the origin as it was written where it can stay so; a URL of
 * anybody else as it is. Pure.
 */
function placeFrom(written: string, { provider, providerName, url, relayOrigin }: Rewriting): Place {
  const parsed = parseUrl(written, url);
  const isOwn = parsed !== undefined && matchOrigin(parsed.origin, provider) !== undefined;
  if (!isOwn || parsed.username !== "" || parsed.password !== "") {
    return { url: written, isOwn: false, isRelay: parsed !== undefined && parsed.host === parseUrl(relayOrigin)?.host };
  }
  const through = `${relayOrigin}/via/${providerName}/${parsed.host}${tailOf(written, parsed)}`;
  return { url: through, isOwn: true, isRelay: false };
}

/** An absolute URL, or one that begins at the root, keeps its bytes, unless a client would resolve them to another path. */
function tailOf(written: string, { origin, pathname, search, hash }: URL): string {
  const isOfOrigin = written.slice(0, origin.length).toLowerCase() === origin;
  const tail = isOfOrigin ? written.slice(origin.length) : written;
  const isKept = (isOfOrigin ? /^\/[\x21-\x7e]*$/ : /^\/(?!\/)[\x21-\x7e]*$/).test(tail) && !tail.includes("\\");
  return isKept && !DOT_SEGMENT.test(tail) ? tail : `${pathname}${search}${hash}`;
}

/** In a path, also encoded (URL standard, single-dot and double-dot segment). */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;
