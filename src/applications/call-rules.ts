import { decodePercent } from "../lib/parse-url.js";
/**
 * Allows requests that match each of its members. `*` in a path is one segment, `**` any number of segments, including
 * none; everything else is compared byte for byte with what would be sent.
 */
export interface CallRule {
  /** HTTP methods as sent: `POST`, not `FORM`. */
  readonly methods: readonly string[] | undefined;
  /** `api.example.com`, with the port if it is not the default one. */
  readonly hosts: readonly string[] | undefined;
  /** Each path as its segments. */
  readonly paths: ReadonlyArray<readonly string[]> | undefined;
}

/** The request to check against rules, as it would be sent. */
export interface RequestToJudge {
  readonly method: string;
  /** `https://host[:port]`. */
  readonly origin: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
}

/** Whether a set of rules allows a request. */
export interface RuleVerdict {
  readonly isAllowed: boolean;
  /** The rule that allowed it, such as `rule 2`, or why none did. */
  readonly rule: string;
}

/**
 * Checks a request against a set of rules. They must allow its own method and every method that a server might take it
 * for. Pure.
 */
export function judgeRequest(rules: readonly CallRule[], request: RequestToJudge): RuleVerdict {
  const { method, origin, target, headers } = request;
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  const host = origin.slice(origin.indexOf("://") + "://".length);
  const query = mark === -1 ? "" : target.slice(mark + 1);
  const read = decoded(query);
  const segments = namesOtherPlace(read, headers) ? undefined : segmentsFrom(path);
  const map = segments && mapOf(segments);
  const isOpen = rules.map((rule) => fitsPlace(rule, host, map));
  const findRule = (sent: string) =>
    rules.findIndex(({ methods }, at) => isOpen[at] && (methods === undefined || methods.includes(sent)));
  const at = findRule(method);
  if (at === -1) return { isAllowed: false, rule: map === undefined ? "ambiguous path" : "no rule" };
  for (const other of methodsMeant(NAME_OF_METHOD.test(read) ? query : "", headers)) {
    if (findRule(other) === -1) return { isAllowed: false, rule: "method override" };
  }
  return { isAllowed: true, rule: `rule ${at + 1}` };
}

function fitsPlace(rule: CallRule, host: string, map: PathMap | undefined): boolean {
  if (rule.hosts !== undefined && !rule.hosts.includes(host)) return false;
  return rule.paths === undefined || (map !== undefined && rule.paths.some((path) => matches(path, map)));
}

/** Bitmaps of the positions of each segment in a path, so that a pattern can step from all positions at once. */
interface PathMap {
  /** `*` has every position of a non-empty segment, `**` every position where a run of such segments may end. */
  readonly places: ReadonlyMap<string, bigint>;
  readonly end: bigint;
}

function mapOf(segments: readonly string[]): PathMap {
  const places = new Map<string, bigint>();
  let end = 1n;
  for (const segment of segments) {
    places.set(segment, (places.get(segment) ?? 0n) | end);
    end <<= 1n;
  }
  const filled = (end - 1n) & ~(places.get("") ?? 0n);
  places.set("*", filled).set("**", (filled << 1n) | 1n);
  return { places, end };
}

/**
 * Takes one step per segment of the pattern, however many ways there are to match the path (Shift-And, as in bitap).
 */
function matches(pattern: readonly string[], { places, end }: PathMap): boolean {
  let reached = 1n;
  for (const wanted of pattern) {
    const found = places.get(wanted) ?? 0n;
    // x | -x sets the lowest set bit and all bits above it.
    reached = wanted === "**" ? (reached | -reached) & found : (reached & found) << 1n;
    if (reached === 0n) return false;
  }
  return (reached & end) !== 0n;
}

/** Segments that every server reads the same: no percent sign, no parameter, no dot segments. */
const PLAIN_PATH = /^(?:\/[\w~!$&'()*,=:@-][\w.~!$&'()*+,=:@-]*)*\/?$/;
const MAX_PATH_SEGMENTS = 256;

/**
 * The segments of a path; undefined if servers may disagree about them. Only the last one may be empty: a path with a
 * trailing slash matches only a rule with one.
 */
function segmentsFrom(path: string): readonly string[] | undefined {
  if (!path.startsWith("/")) return undefined;
  const segments = split(path);
  if (segments.length > MAX_PATH_SEGMENTS) return undefined;
  if (PLAIN_PATH.test(path)) return segments;
  const isSure = segments.every((segment, at) => (segment === "" ? at === segments.length - 1 : !isAmbiguous(segment)));
  return isSure ? segments : undefined;
}

/** Splits a path into segments; `/` has none. */
function split(path: string): readonly string[] {
  return path === "/" ? [] : path.slice(1).split("/");
}

/**
 * Characters that some server takes for the end of the segment, the path or the text. Separators, and look-alikes that
 * normalise to them (NFKC) or map to them in a legacy charset. `;` begins parameters (RFC 3986 section 3.3; up to the
 * end of the path in RFC 1808 section 2.4.5). `{{` may be a placeholder for a token.
 */
const SEPARATOR =
  /[/\\;?#\p{Default_Ignorable_Code_Point}\u2044\u2215\u2216\u29f5\u29f8\u29f9\u00a5\u20a9\p{Cc}\p{Cf}]|\u20e5|\{\{/u;
/** Dot segments; Windows also strips dots and spaces at the end of a name. */
const DOTS = /^(?:[.+\s]*$|\.\.[^\w.])/;
/** Escapes left for a server that decodes twice; IIS also decodes `%u`. */
const STILL_ENCODED = /%(?:[\da-f]{2}|u[\da-f]{4})/i;

function isAmbiguous(segment: string): boolean {
  if (/[^\x21-\x7e]/.test(segment)) return true;
  // Undefined for an invalid escape or invalid UTF-8, such as an overlong slash.
  const read = decodePercent(segment)?.normalize("NFKC");
  return read === undefined || STILL_ENCODED.test(read) || SEPARATOR.test(read) || DOTS.test(read);
}

/**
 * Fields that name another resource, which no rule has checked: Destination (RFC 4918 section 10.3), copies, links and
 * manifests in object stores (S3, Azure, OpenStack Swift), and fields that web servers and frameworks use instead of
 * the path.
 */
const OTHER_PLACE =
  /(?:^destination|[-_](?:(?:copy|rename|move|fetch)[-_](?:source|from)|symlink[-_]target|object[-_]manifest|(?:versions|history)[-_]location))(?:[-_]account)?$|^(?:x[-_])?(?:http[-_])?(?:override|rewrite|request|base)[-_](?:ur[il]|path)$|^x[-_](?:http[-_])?(?:path|ur[il])(?:[-_]override)?$|^x[-_]host$/i;
/** WordPress uses this parameter as the path of its REST API, whatever the real path is. */
const OTHER_ROUTE = /(?:^|[&;])rest_route(?:\[|=|&|$)/i;

/** @param query decoded. */
function namesOtherPlace(query: string, headers: RequestToJudge["headers"]): boolean {
  return headers.some(([name]) => OTHER_PLACE.test(name)) || OTHER_ROUTE.test(query);
}

/**
 * Methods that a call may have in addition to the usual ones: the rest of the IANA HTTP Method Registry, except CONNECT
 * (a tunnel), TRACE (echoes the token) and PRI (not a request); QUERY, which is about to be registered; and PURGE for
 * caches. A list rather than any token: a misspelled method is refused before a token is sent, and log lines and
 * records contain only a few known words. WebDAV (RFC 4918, 3253, 3648, 3744, 4437, 4791, 5323, 5842), RFC 2068.
 */
export const FURTHER_METHODS: readonly string[] =
  "PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK REPORT SEARCH QUERY MKCALENDAR ACL BIND UNBIND REBIND ORDERPATCH VERSION-CONTROL CHECKOUT CHECKIN UNCHECKOUT UPDATE LABEL MERGE BASELINE-CONTROL MKWORKSPACE MKACTIVITY MKREDIRECTREF UPDATEREDIRECTREF LINK UNLINK PURGE".split(
    " ",
  );

/** Methods that a provider may know and that change or reveal something; letters only. */
const METHODS_MEANT: ReadonlySet<string> = new Set(
  [
    ..."GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT BAN NOTIFY SUBSCRIBE UNSUBSCRIBE".split(" "),
    ...FURTHER_METHODS,
  ].map((method) => method.replaceAll("-", "")),
);
/** Name of a parameter or field that may hold a method. */
const NAME_OF_METHOD = /method|verb/i;
/** Separators of list values, into which repeated fields are joined; `a.search` is one value. */
const BETWEEN_METHODS = /[^a-z._-]+/i;

/**
 * Methods that a server may use instead of the request's own: values of parameters and fields whose name suggests a
 * method (`_method`, `X-HTTP-Method-Override`, `%5fmethod[]`, `.method` in PHP), both whole and split as a list.
 * Servers split queries at `&`, some also at `;`.
 */
function methodsMeant(query: string, headers: RequestToJudge["headers"]): ReadonlySet<string> {
  const pairs = query === "" ? headers : [...headers, ...query.split(/[&;]/).map(pairFrom)];
  const methods = new Set<string>();
  for (const [name, value] of pairs) {
    if (!NAME_OF_METHOD.test(name)) continue;
    for (const text of [value, ...value.split(BETWEEN_METHODS)]) {
      // Upper-case before removing other characters: a long s becomes S, as in many servers' languages.
      const method = text
        .normalize("NFKC")
        .toUpperCase()
        .replace(/[^A-Z]/g, "");
      if (METHODS_MEANT.has(method)) methods.add(method);
    }
  }
  return methods;
}

function pairFrom(text: string): readonly [string, string] {
  const equals = text.indexOf("=");
  return equals === -1 ? ["", ""] : [decoded(text.slice(0, equals)), decoded(text.slice(equals + 1))];
}

/**
 * Percent-decodes repeatedly, up to {@link MAX_DECODINGS} times, since some servers decode twice; then decodes UTF-8.
 */
function decoded(text: string): string {
  let read = text;
  for (let rest = MAX_DECODINGS; rest > 0 && ESCAPE.test(read); rest--) {
    read = read.replace(ESCAPES, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return BEYOND_ASCII.test(read) ? Buffer.from(read, "latin1").toString() : read;
}

/** IIS accepts `%u006d` as well as `%6d`. */
const ESCAPE = /%(?:u00)?([\da-f]{2})/i;
const ESCAPES = new RegExp(ESCAPE, "gi");
const MAX_DECODINGS = 8;
const BEYOND_ASCII = /[\x80-\xff]/;

/** Rules, or the problem with them. */
export type ParsedRules = { readonly rules: readonly CallRule[] } | { readonly problem: string };

/** Most rules in a set, and most entries in a member: each call may be compared with all of them. */
const MAX_ENTRIES = 100;
const MAX_PATTERN_LENGTH = 1024;

/**
 * Parses rules from JSON. Strict: a rule that is not fully understood must not allow anything. Pure.
 */
export function parseCallRules(value: unknown): ParsedRules {
  if (!isList(value)) return { problem: `must be a list of 1 to ${MAX_ENTRIES} rules` };
  const rules: CallRule[] = [];
  for (const [at, written] of value.entries()) {
    const problem = ruleProblem(written);
    if (problem) return { problem: `has a rule ${at + 1} ${problem}` };
    rules.push(ruleFrom(written as WrittenRule));
  }
  return { rules };
}

/** Rules by provider name. */
export type CallRulesByProvider = Readonly<Record<string, readonly CallRule[]>>;

/** The rules as JSON. Pure. */
export function jsonFromCallRules(byProvider: CallRulesByProvider): Readonly<Record<string, readonly WrittenRule[]>> {
  return Object.fromEntries(Object.entries(byProvider).map(([name, rules]) => [name, rules.map(writtenFromRule)]));
}

/** Parses stored rules; those that this version does not understand allow nothing. Pure. */
export function storedCallRules(json: string): CallRulesByProvider {
  const written = Object.entries(JSON.parse(json) as Record<string, unknown>);
  return Object.fromEntries(
    written.map(([name, rules]) => {
      const parsed = parseCallRules(rules);
      return [name, "rules" in parsed ? parsed.rules : []];
    }),
  );
}

/** A rule as JSON. */
export interface WrittenRule {
  readonly methods?: readonly string[];
  readonly hosts?: readonly string[];
  readonly paths?: readonly string[];
}

/** Converts a rule to JSON. */
export function writtenFromRule({ methods, hosts, paths }: CallRule): WrittenRule {
  return {
    ...(methods && { methods }),
    ...(hosts && { hosts }),
    ...(paths && { paths: paths.map((segments) => `/${segments.join("/")}`) }),
  };
}

function ruleFrom({ methods, hosts, paths }: WrittenRule): CallRule {
  return { methods, hosts, paths: paths?.map(split) };
}

const MEMBERS: ReadonlyArray<readonly [name: keyof WrittenRule, is: (text: string) => boolean, what: string]> = [
  ["methods", (text) => METHOD_TEXT.test(text), "HTTP methods as they are sent, such as GET"],
  ["hosts", isHost, "host names in lower case, such as api.example.com, with a port where it is not the default one"],
  ["paths", isPattern, "paths as they are sent, such as /user or /repos/acme/**, where * and ** are whole segments"],
];

function ruleProblem(rule: unknown): string | undefined {
  if (typeof rule !== "object" || rule === null || Array.isArray(rule)) return "that is not an object";
  const names = Object.keys(rule);
  if (names.some((name) => !MEMBERS.some(([known]) => known === name))) {
    return "with a member other than methods, hosts and paths";
  }
  for (const [name, is, what] of MEMBERS) {
    if (!names.includes(name)) continue;
    const entries: unknown = Reflect.get(rule, name);
    if (!isList(entries) || !entries.every((entry) => typeof entry === "string" && is(entry))) {
      return `whose ${name} are not a list of 1 to ${MAX_ENTRIES} ${what}`;
    }
  }
  return undefined;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_ENTRIES;
}

/** Excludes the pseudo-methods of calls, which are sent as other methods. */
const METHOD_TEXT = /^(?!(?:FORM|GETFILE|MULTIFORM-.*|MULTIPART-FORM)$)[A-Z]+(?:-[A-Z]+)*$/;
const HOST = /^(?=.{1,259}$)[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::[1-9]\d{0,4})?$/;

function isHost(text: string): boolean {
  return HOST.test(text) && !text.endsWith(":443");
}

/** Whether a pattern can match anything; an ambiguous one never does, which nobody intends. */
function isPattern(text: string): boolean {
  if (text.length > MAX_PATTERN_LENGTH) return false;
  const segments = segmentsFrom(text);
  return segments?.every((segment) => !segment.includes("*") || segment === "*" || segment === "**") ?? false;
}
