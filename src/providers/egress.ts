import { parseUrl } from "../lib/parse-url.js";
import { type DenyRule, decideDenial, type EgressDenied } from "./egress-denial.js";
import { parsePlainUrl } from "./plain-url.js";
import type { Provider } from "./provider.js";
import { MAX_URL_LENGTH, parseUrlText, type UrlText } from "./url-text.js";

/** A place the provider's token may go. */
export interface EgressAllowed {
  readonly result: "allow";
  /** The entry of `apiOrigins` that matched. */
  readonly rule: string;
  /** `https://host[:port]`, lower-case. */
  readonly origin: string;
  /** Path and query to send, exactly what was judged; printable ASCII. */
  readonly path: string;
  /** What a templated origin captured; undefined for an exact one. Bound to the connection by decideBoundOrigin(). */
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

/** Whether a url selects a place on the provider's list. */
export type EgressDecision = EgressAllowed | EgressDenied;

/**
 * Decides whether the provider's token may go to `url`. The text of the url and what the parser makes of it must both
 * lead to the same listed origin; any doubt is a refusal.
 *
 * Path and query go out as written, except for what the URL standard normalises: dot segments, spaces, characters
 * outside ASCII and the few it percent-encodes. `'` in a query stays, and the fragment is dropped.
 */
export function decideEgress(url: string, provider: Provider): EgressDecision {
  const plain = parsePlainUrl(url, provider.plainOrigins);
  if (plain !== undefined) return { result: "allow", rule: plain.origin, ...plain, parameters: undefined };
  const text = parseUrlText(url);
  if (typeof text === "string") return decideDenial(text, provider);
  const match = matchOrigin(text.origin, provider);
  if (match === undefined) return decideDenial(unlistedRule(text.origin, provider), provider);
  const parsed = parseUrl(url);
  const path = parsed?.origin === text.origin ? pathFrom(text, parsed) : undefined;
  if (path === undefined) return decideDenial("parser_disagreement", provider);
  if (path.length > MAX_URL_LENGTH) return decideDenial("too_long", provider);
  return { result: "allow", rule: match.rule, origin: text.origin, path, parameters: match.parameters };
}

/**
 * Binds a templated origin to the connection: each captured parameter must be the one stored with it (threats.md
 * U40). An exact origin needs no binding.
 */
export function decideBoundOrigin(
  decision: EgressAllowed,
  originParameters: Readonly<Record<string, string>>,
): EgressDecision {
  for (const [name, value] of Object.entries(decision.parameters ?? {})) {
    const stored = Object.hasOwn(originParameters, name) ? originParameters[name] : undefined;
    if (stored === undefined || asciiLowerCase(stored) !== value) return decideDenial("origin_not_bound", undefined);
  }
  return decision;
}

interface OriginMatch {
  readonly rule: string;
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

function matchOrigin(origin: string, provider: Provider): OriginMatch | undefined {
  if (provider.exactOrigins.has(origin)) return { rule: origin, parameters: undefined };
  for (const rule of provider.origins) {
    const captured = rule.kind === "template" ? rule.pattern.exec(origin) : null;
    if (rule.kind === "template" && captured !== null) {
      const entries = rule.parameters.map((name, at) => [name, captured[at + 1] ?? ""] as const);
      return { rule: rule.template, parameters: Object.fromEntries(entries) };
    }
  }
  return undefined;
}

/** http is for listed loopback origins only: elsewhere the scheme is what is wrong. */
function unlistedRule(origin: string, provider: Provider): DenyRule {
  const isHttp = (listed: string) => listed.startsWith("http:");
  return isHttp(origin) && ![...provider.exactOrigins].some(isHttp) ? "scheme" : "origin_not_listed";
}

const NORMALISED_IN_QUERY = /[ "<>\u0080-\u{10ffff}]/u;

/** Path and query to send; undefined when our reading of the query is not the parser's. */
function pathFrom({ query }: UrlText, parsed: URL): string | undefined {
  // The path percent-encode set has `^` since 2023, and Node.js since 24, https://url.spec.whatwg.org/#path-percent-encode-set
  const path = parsed.pathname.replaceAll("^", "%5E");
  if (query === undefined) return parsed.search === "" ? path : undefined;
  const sent = NORMALISED_IN_QUERY.test(query) ? encodeQuery(query) : query;
  // The query percent-encode set of special URLs has `'`, https://url.spec.whatwg.org/#special-query-percent-encode-set
  const asParsed = sent.includes("'") ? sent.replaceAll("'", "%27") : sent;
  return parsed.search === (asParsed === "" ? "" : `?${asParsed}`) ? `${path}?${sent}` : undefined;
}

function encodeQuery(query: string): string {
  return query.replace(new RegExp(NORMALISED_IN_QUERY, "gu"), encodeURIComponent);
}

/** Unicode folding would take U+212A for `k`. */
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
