import type { CallInput } from "./case-inputs.js";
import { fieldValue, type WireRequest } from "./wire-request.js";

/** What must become of a call: sent to the provider, refused as malformed, or either where this file does not say. */
export type Expectation = "performed" | "refused" | "either";

/** Names that the relay sets itself or drops; besides these, what a caller names is what the provider gets. */
const NOT_FORWARDED =
  /^(?:authorization|host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|http2-settings|expect|max-forwards|cookie2?|set-cookie2?|forwarded|via|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|x-rewrite-url|x-http-method|x-method-override|x-http-method-override|origin|referer|accept-encoding|x-partner-key|(?:proxy|x-forwarded|x-original|x-envoy|cf|sec)-.*)$/;
const CONSUMED = /^x-payload-type$/;
/** Fields that stand on the wire without a caller asking. */
const OWN_FIELDS = new Set(
  "host connection authorization accept accept-encoding user-agent content-type content-length".split(" "),
);
const SENT_AS: ReadonlyMap<string, string> = new Map([
  ...["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].map((name) => [name, name] as const),
  ["FORM", "POST"],
  ["MULTIFORM-POST", "POST"],
  ["MULTIFORM-PUT", "PUT"],
  ["MULTIFORM-PATCH", "PATCH"],
  ["MULTIPART-FORM", "POST"],
  ["GETFILE", "GET"],
  ...["PROPFIND", "MKCALENDAR", "REPORT", "SEARCH", "QUERY", "VERSION-CONTROL", "PURGE"].map(
    (name) => [name, name] as const,
  ),
]);
/** Others of the IANA HTTP Method Registry, which inputs have by chance alone. */
const REGISTERED =
  /^(?:PROPPATCH|MKCOL|COPY|MOVE|LOCK|UNLOCK|ACL|BIND|UNBIND|REBIND|UPDATE|LABEL|MERGE|LINK|UNLINK|CHECKIN|CHECKOUT)$/i;

/** The HTTP method of a call; undefined when it has none. */
function methodOf({ method }: CallInput): string | undefined {
  return /^[A-Za-z-]+$/.test(method) ? SENT_AS.get(method.toUpperCase()) : undefined;
}

/** Judges a call by the rules of docs/calling.md, in other words than the relay's own. */
export function expectationOf(input: CallInput): Expectation {
  if (REGISTERED.test(input.method)) return "either";
  if (methodOf(input) === undefined || !areHeadersGood(input)) return "refused";
  if (!isObjectText(input.payload) || !isObjectText(input.queryString)) return "refused";
  const isPlainMethod =
    /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|GETFILE|FORM|PROPFIND|MKCALENDAR|REPORT|SEARCH|QUERY|VERSION-CONTROL|PURGE)$/i.test(
      input.method,
    );
  const mayBeFile = /files/.test(input.payload ?? "") || input.headers.some(([name]) => /^x-payload-type$/i.test(name));
  // What is no JSON and no form is refused where there is a body.
  const mayBeNoJson = input.headers.some(
    ([name, value]) => /^content-type$/i.test(name) && !/json|urlenc/i.test(value),
  );
  return isPlainMethod && !mayBeFile && !mayBeNoJson && isWithinLimits(input) ? "performed" : "either";
}

function areHeadersGood({ headers }: CallInput): boolean {
  const names = headers.map(([name]) => name);
  const kept = names.map(meant).filter((name) => !NOT_FORWARDED.test(name));
  const values = headers.map(([, value]) => textOf(value));
  const length = headers.reduce((sum, [name], at) => sum + name.length + (values[at]?.length ?? 0), 0);
  return (
    new Set(names).size === names.length &&
    new Set(kept).size === kept.length &&
    names.every((name) => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name)) &&
    values.every((value) => value !== undefined && /^[\t\x20-\x7e]*$/.test(value)) &&
    headers.length <= 64 &&
    length <= 8_192
  );
}

/** The field that a server may take a name for, CGI above all. */
function meant(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** What a header value in JSON stands for; undefined for what is none. */
function textOf(json: string): string | undefined {
  if (json.startsWith('"')) return JSON.parse(json) as string;
  return /^[-\dtf]/.test(json) ? json : undefined;
}

function isObjectText(text: string | undefined): boolean {
  return text === undefined || text === "null" || /^\s*\{/.test(text);
}

function isWithinLimits({ payload = "", queryString = "" }: CallInput): boolean {
  const text = payload + queryString;
  return text.length < 5_000 && depthOf(text) < 60;
}

/** At least as deep as the JSON is: brackets in strings count too. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if (character === "[" || character === "{") deepest = Math.max(deepest, ++depth);
    else if (character === "]" || character === "}") depth -= 1;
  }
  return deepest;
}

/** What is wrong with the request that a call has led to; undefined when nothing is. */
export function wireFaultOf(input: CallInput, request: WireRequest): string | undefined {
  if (request.method !== methodOf(input)) return `sent ${request.method}`;
  const asked = new Map(input.headers.map(([name, value]) => [name.toLowerCase(), textOf(value)?.trim() ?? ""]));
  for (const [name, value] of request.fields) {
    const key = name.toLowerCase();
    if (!OWN_FIELDS.has(key) && asked.get(key) !== value) return `sent a field that nobody asked for: ${name}`;
  }
  for (const [key, value] of asked) {
    if (NOT_FORWARDED.test(meant(key)) || CONSUMED.test(key) || key === "content-type") continue;
    if (fieldValue(request.fields, key) !== value) return `lost or changed the field ${key}`;
  }
  return isSentAsJson(input, request) && request.body.toString() !== input.payload
    ? "changed the JSON payload"
    : undefined;
}

/** Whether the payload is to go out as the caller wrote it. */
function isSentAsJson(input: CallInput, { method, fields }: WireRequest): boolean {
  const hasPayload = input.payload !== undefined && input.payload !== "null" && !/^\s*\{\s*\}$/.test(input.payload);
  const isBody = method !== "GET" && method !== "HEAD" && input.method.toUpperCase() === method;
  const type = fieldValue(fields, "content-type") ?? "";
  return hasPayload && isBody && !/urlencoded/i.test(type) && expectationOf(input) === "performed";
}

/**
 * Whether the typed service can hold all of a call as it was written: strings as header values, well-formed text, and
 * JSON that says the same when it is parsed and printed. protobuf-es loses a member named `__proto__`.
 */
export function isTypedAlike(input: CallInput): boolean {
  const { method, tail, headers, payload, queryString } = input;
  const names = headers.map(([name]) => name);
  return (
    isWithinLimits(input) &&
    [method, tail, ...names, ...headers.map(([, value]) => value)].every(isPlainText) &&
    new Set(names).size === names.length &&
    headers.every(([, value]) => value.startsWith('"')) &&
    isPlainJson(payload) &&
    isPlainJson(queryString)
  );
}

function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\\ud[89a-f]|__proto__/i.test(text);
}

function isPlainJson(text: string | undefined): boolean {
  if (text === undefined) return true;
  return text.startsWith("{") && isPlainText(text) && JSON.stringify(JSON.parse(text)) === text;
}
