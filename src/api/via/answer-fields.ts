import type { AnswerHead } from "../../call/outcome.js";
import { parseUrl } from "../../lib/parse-url.js";
import { matchOrigin } from "../../providers/egress.js";
import type { Provider } from "../../providers/provider.js";
import { fieldsFromHead } from "../rest/stream-handler.js";

/** Where an answer comes from and goes to. */
export interface Rewriting {
  readonly provider: Provider;
  /** The name of the provider in the request's path, as it was written. */
  readonly providerName: string;
  /** The URL that was asked for. */
  readonly url: string;
  /** Origin of the relay as the caller reaches it. */
  readonly relayOrigin: string;
}

/** Fields with one URL (RFC 9110 sections 8.7 and 10.2.2). */
const PLACES: ReadonlySet<string> = new Set(["location", "content-location"]);
/** Of HEAD there is no body that redaction could make shorter. */
const PLACES_AND_LENGTH: ReadonlySet<string> = new Set([...PLACES, "content-length"]);

/**
 * Fields of an answer that is passed through: those of the raw route, and where the provider names a place of its own, the
 * way there through the relay. Pure.
 */
export function passedFieldsFrom(
  head: AnswerHead,
  callId: string,
  cors: Readonly<Record<string, string>> | undefined,
  method: string,
  rewriting: Rewriting,
): Record<string, string> {
  const headers = head.headers.map(([name, value]) => [name, rewritten(name.toLowerCase(), value, rewriting)] as const);
  const isEncoded = headers.some(([name]) => name.toLowerCase() === "content-encoding");
  const alsoKept = method === "HEAD" && !isEncoded ? PLACES_AND_LENGTH : PLACES;
  return fieldsFromHead({ ...head, headers }, callId, cors, alsoKept);
}

function rewritten(name: string, value: string, rewriting: Rewriting): string {
  if (PLACES.has(name)) return urlThroughRelay(value, rewriting);
  if (name !== "link") return value;
  // RFC 8288 section 3: a target stands between angle brackets, which no URL has.
  return value.replace(/<([^<>]*)>/g, (_, target: string) => `<${urlThroughRelay(target, rewriting)}>`);
}

/**
 * A URL of the provider as one of the relay, everything behind the origin as it was written where it can stay so; a URL of
 * anybody else as it is. Pure.
 */
function urlThroughRelay(written: string, { provider, providerName, url, relayOrigin }: Rewriting): string {
  const parsed = parseUrl(written, url);
  if (parsed === undefined || matchOrigin(parsed.origin, provider) === undefined) return written;
  if (parsed.username !== "" || parsed.password !== "") return written;
  return `${relayOrigin}/via/${providerName}/${parsed.host}${tailOf(written, parsed)}`;
}

/** An absolute URL, or one that begins at the root, keeps its bytes. */
function tailOf(written: string, { origin, pathname, search, hash }: URL): string {
  if (/^\/(?!\/)[\x21-\x7e]*$/.test(written) && !written.includes("\\")) return written;
  const start = written.slice(0, origin.length).toLowerCase() === origin ? written.slice(origin.length) : "";
  return /^\/[\x21-\x7e]*$/.test(start) && !start.includes("\\") ? start : `${pathname}${search}${hash}`;
}
