import { decodePercent } from "../lib/parse-url.js";
/**
 * Lets requests through that fit each member that it has. `*` in a path is one segment, `**` any number of them, none
 * included; everything else is compared byte for byte with what would be sent.
 */
export interface CallRule {
  /** HTTP methods as they are sent: `POST`, not `FORM`. */
  readonly methods: readonly string[] | undefined;
  /** `api.example.com`, or with a port that is not the default one. */
  readonly hosts: readonly string[] | undefined;
  /** Each by its segments. */
  readonly paths: ReadonlyArray<readonly string[]> | undefined;
}

/** What rules judge: the request as it would be sent. */
export interface RequestToJudge {
  readonly method: string;
  /** `https://host[:port]`. */
  readonly origin: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
}

/** Whether a set of rules lets a request through. */
export interface RuleVerdict {
  readonly isAllowed: boolean;
  /** Which rule did, such as `rule 2`, or what none of them has. */
  readonly rule: string;
}

/** Judges a request by a set of rules: one of them must let it through, as it is and as every method it might be read as. Pure. */
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

/** Where each segment stands in a path, as a set of bits, so that one step of a pattern is taken from all places at once. */
interface PathMap {
  /** Of `*`: wherever a segment is not empty. Of `**`: wherever a number of such segments may end. */
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

/** One step for each segment of the pattern, however many ways there are to part the path (Shift-And, as in bitap). */
function matches(pattern: readonly string[], { places, end }: PathMap): boolean {
  let reached = 1n;
  for (const wanted of pattern) {
    const found = places.get(wanted) ?? 0n;
    // A number or its negative: the lowest bit and all above it.
    reached = wanted === "**" ? (reached | -reached) & found : (reached & found) << 1n;
    if (reached === 0n) return false;
  }
  return (reached & end) !== 0n;
}

/** Segments that every reader takes for the same text: no percent sign, no parameter, none of dots alone. */
const PLAIN_PATH = /^(?:\/[\w~!$&'()*,=:@-][\w.~!$&'()*+,=:@-]*)*\/?$/;
const MAX_PATH_SEGMENTS = 256;

/**
 * The segments of a path; undefined where readers may disagree about them. Only the last one may be empty: a path that
 * ends with a slash fits a rule that does, too.
 */
function segmentsFrom(path: string): readonly string[] | undefined {
  if (!path.startsWith("/")) return undefined;
  const segments = split(path);
  if (segments.length > MAX_PATH_SEGMENTS) return undefined;
  if (PLAIN_PATH.test(path)) return segments;
  const isSure = segments.every((segment, at) => (segment === "" ? at === segments.length - 1 : !isAmbiguous(segment)));
  return isSure ? segments : undefined;
}

/** `/` has no segment. */
function split(path: string): readonly string[] {
  return path === "/" ? [] : path.slice(1).split("/");
}

/**
 * What some server takes for an end of the segment, the path or the text: separators and their look-alikes, that
 * normalise (NFKC) or map to them in a legacy charset; `;` begins parameters (RFC 3986 section 3.3, and to the end of
 * the path in RFC 1808 section 2.4.5); `{{` may be a placeholder for a token.
 */
const SEPARATOR =
  /[/\\;?#\p{Default_Ignorable_Code_Point}\u2044\u2215\u2216\u29f5\u29f8\u29f9\u00a5\u20a9\p{Cc}\p{Cf}]|\u20e5|\{\{/u;
/** Dots are this directory and the one above; Windows drops those, and spaces, at the end of a name. */
const DOTS = /^(?:[.+\s]*$|\.\.[^\w.])/;
/** To be decoded once more by a server that does so, and `%u` by IIS. */
const STILL_ENCODED = /%(?:[\da-f]{2}|u[\da-f]{4})/i;

function isAmbiguous(segment: string): boolean {
  if (/[^\x21-\x7e]/.test(segment)) return true;
  // A percent sign that begins no escape, or bytes that are no UTF-8, such as an overlong slash.
  const read = decodePercent(segment)?.normalize("NFKC");
  return read === undefined || STILL_ENCODED.test(read) || SEPARATOR.test(read) || DOTS.test(read);
}

/**
 * Fields that name a second place, which no rule has judged: RFC 4918 section 10.3, copies, links and manifests in object
 * stores (S3, Azure, OpenStack Swift), and what web servers and frameworks take for the path in its stead.
 */
const OTHER_PLACE =
  /(?:^destination|[-_](?:(?:copy|rename|move|fetch)[-_](?:source|from)|symlink[-_]target|object[-_]manifest|(?:versions|history)[-_]location))(?:[-_]account)?$|^(?:x[-_])?(?:http[-_])?(?:override|rewrite|request|base)[-_](?:ur[il]|path)$|^x[-_](?:http[-_])?(?:path|ur[il])(?:[-_]override)?$|^x[-_]host$/i;
/** WordPress takes it for the path of its REST API, whatever the path is. */
const OTHER_ROUTE = /(?:^|[&;])rest_route(?:\[|=|&|$)/i;

/** @param query decoded. */
function namesOtherPlace(query: string, headers: RequestToJudge["headers"]): boolean {
  return headers.some(([name]) => OTHER_PLACE.test(name)) || OTHER_ROUTE.test(query);
}

/**
 * Methods that a call may have besides the usual ones: what else the IANA HTTP Method Registry has, but CONNECT (a tunnel), TRACE (echoes the token) and PRI (no request);
 * QUERY, which is on its way there, and PURGE of caches. A list, and not every token: a misspelled method is found
 * before a token leaves, and what stands in log lines and records is one of few words. WebDAV (RFC 4918, 3253, 3648,
 * 3744, 4437, 4791, 5323, 5842), RFC 2068.
 */
export const FURTHER_METHODS: readonly string[] =
  "PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK REPORT SEARCH QUERY MKCALENDAR ACL BIND UNBIND REBIND ORDERPATCH VERSION-CONTROL CHECKOUT CHECKIN UNCHECKOUT UPDATE LABEL MERGE BASELINE-CONTROL MKWORKSPACE MKACTIVITY MKREDIRECTREF UPDATEREDIRECTREF LINK UNLINK PURGE".split(
    " ",
  );

/** Methods that a provider may know, and that change or tell something; letters alone. */
const METHODS_MEANT: ReadonlySet<string> = new Set(
  [
    ..."GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT BAN NOTIFY SUBSCRIBE UNSUBSCRIBE".split(" "),
    ...FURTHER_METHODS,
  ].map((method) => method.replaceAll("-", "")),
);
/** Of a parameter or a field that says that it holds a method. */
const NAME_OF_METHOD = /method|verb/i;
/** What stands between the values of a list, which is what repeated fields are joined to; `a.search` is one value. */
const BETWEEN_METHODS = /[^a-z._-]+/i;

/**
 * Methods that a server may take instead of the request's own: the value of a parameter or a field whose name says that
 * it holds one (`_method`, `X-HTTP-Method-Override`, `%5fmethod[]`, `.method` in PHP), as a whole and each of a list.
 * Servers split queries at `&` and, some, at `;`.
 */
function methodsMeant(query: string, headers: RequestToJudge["headers"]): ReadonlySet<string> {
  const pairs = query === "" ? headers : [...headers, ...query.split(/[&;]/).map(pairFrom)];
  const methods = new Set<string>();
  for (const [name, value] of pairs) {
    if (!NAME_OF_METHOD.test(name)) continue;
    for (const text of [value, ...value.split(BETWEEN_METHODS)]) {
      // Upper case first: that of a long s is S, as servers in many languages would have it.
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

/** As often as there is something to decode: who decodes twice reads what is left after that. In UTF-8 in the end. */
function decoded(text: string): string {
  let read = text;
  for (let rest = MAX_DECODINGS; rest > 0 && ESCAPE.test(read); rest--) {
    read = read.replace(ESCAPES, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return BEYOND_ASCII.test(read) ? Buffer.from(read, "latin1").toString() : read;
}

/** `%u006d` is what IIS takes beside `%6d`. */
const ESCAPE = /%(?:u00)?([\da-f]{2})/i;
const ESCAPES = new RegExp(ESCAPE, "gi");
const MAX_DECODINGS = 8;
const BEYOND_ASCII = /[\x80-\xff]/;

/** Rules, or what is wrong with them. */
export type ParsedRules = { readonly rules: readonly CallRule[] } | { readonly problem: string };

/** Most rules of one set, and most entries of a member: each call may be compared with all of them. */
const MAX_ENTRIES = 100;
const MAX_PATTERN_LENGTH = 1024;

/**
 * Reads rules as they stand in JSON. Strict: a rule that is not understood as a whole must not let anything through. Pure.
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

/** Rules by the provider's name. */
export type CallRulesByProvider = Readonly<Record<string, readonly CallRule[]>>;

/** The same as JSON. Pure. */
export function jsonFromCallRules(byProvider: CallRulesByProvider): Readonly<Record<string, readonly WrittenRule[]>> {
  return Object.fromEntries(Object.entries(byProvider).map(([name, rules]) => [name, rules.map(writtenFromRule)]));
}

/** What was stored as JSON; rules that this version does not understand let nothing through. Pure. */
export function storedCallRules(json: string): CallRulesByProvider {
  const written = Object.entries(JSON.parse(json) as Record<string, unknown>);
  return Object.fromEntries(
    written.map(([name, rules]) => {
      const parsed = parseCallRules(rules);
      return [name, "rules" in parsed ? parsed.rules : []];
    }),
  );
}

/** A rule as it stands in JSON. */
export interface WrittenRule {
  readonly methods?: readonly string[];
  readonly hosts?: readonly string[];
  readonly paths?: readonly string[];
}

/** The rule as it stands in JSON. */
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
  if (typeof rule !== "object" || rule === null || Array.isArray(rule)) return "that is no object";
  const names = Object.keys(rule);
  if (names.some((name) => !MEMBERS.some(([known]) => known === name))) {
    return "with a member that is not methods, hosts or paths";
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

/** The pseudo-methods of calls are sent as others. */
const METHOD_TEXT = /^(?!(?:FORM|GETFILE|MULTIFORM-.*|MULTIPART-FORM)$)[A-Z]+(?:-[A-Z]+)*$/;
const HOST = /^(?=.{1,259}$)[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*(?::[1-9]\d{0,4})?$/;

function isHost(text: string): boolean {
  return HOST.test(text) && !text.endsWith(":443");
}

/** What can match at all: a pattern that is ambiguous itself fits nothing, which nobody means. */
function isPattern(text: string): boolean {
  if (text.length > MAX_PATTERN_LENGTH) return false;
  const segments = segmentsFrom(text);
  return segments?.every((segment) => !segment.includes("*") || segment === "*" || segment === "**") ?? false;
}
