import { FURTHER_METHODS } from "../applications/call-rules.js";
import type { JsonRange } from "../json/json-scan.js";
import { elementsInSteps, isEmptyAt, kindAt, membersInSteps } from "../json/json-slice.js";
import { joinedInSteps, NOTHING } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { formatError, type RelayError } from "../model/errors.js";
import { type Room, requireRoom } from "./budget.js";
import { fileFromMembers, formDataFromJson, membersByName, relatedFromJson } from "./multipart.js";
import { isJsonType, parseMediaType } from "./text.js";
import { formFromJson, isUrlencoded, type QueryPair, queryFromJson, URLENCODED } from "./urlencoded.js";

/** The parts of a call that decide its method and body. */
export interface BodyInput {
  /** Untrusted text: a method or a pseudo-method, case-insensitive. */
  readonly method: string;
  /** Valid JSON text of an object; undefined without a payload. */
  readonly payload: Uint8Array | undefined;
  /** Whether each array element becomes a pair or part of its own, in the formats that have pairs or parts. */
  readonly explodeArrays: boolean;
  /** Exact bytes instead of a payload; empty means the same as undefined. */
  readonly body: Uint8Array | undefined;
  /** The caller's content-type header. */
  readonly contentType: string | undefined;
  /** Whether the caller sent `x-payload-type: file`. */
  readonly payloadTypeFile: boolean;
  /** Creates a multipart boundary: 1 to 70 unguessable letters and digits. Called at most once. */
  readonly newBoundary: () => string;
  /** Charged for the bytes that are rewritten. */
  readonly memory: Room;
}

/** The part of the request that method and payload decide. */
export interface DecidedBody extends Content {
  /** Upper-case; one of {@link METHODS}. */
  readonly method: string;
  /** `base64`: return the answer as base64, whatever its type. */
  readonly answerAs: "auto" | "base64";
}

interface Content {
  /** Undefined: the request has no body. */
  readonly body: Uint8Array | undefined;
  /** The content-type to send; without a body, the caller's own. */
  readonly contentType: string | undefined;
  /** To append to the url's query, in order. */
  readonly query: readonly QueryPair[];
}

type Format = "query" | "json" | "urlencoded" | "form-data" | "related";
type Method = Pick<DecidedBody, "method" | "answerAs"> & { readonly format: Format };

/** By the caller's name for it, in upper case. */
const METHODS: ReadonlyMap<string, Method> = new Map([
  ["GET", { method: "GET", format: "query", answerAs: "auto" }],
  ["HEAD", { method: "HEAD", format: "query", answerAs: "auto" }],
  ["GETFILE", { method: "GET", format: "query", answerAs: "base64" }],
  ["POST", { method: "POST", format: "json", answerAs: "auto" }],
  ["PUT", { method: "PUT", format: "json", answerAs: "auto" }],
  ["PATCH", { method: "PATCH", format: "json", answerAs: "auto" }],
  ["DELETE", { method: "DELETE", format: "json", answerAs: "auto" }],
  ["OPTIONS", { method: "OPTIONS", format: "json", answerAs: "auto" }],
  ["FORM", { method: "POST", format: "urlencoded", answerAs: "auto" }],
  ["MULTIFORM-POST", { method: "POST", format: "form-data", answerAs: "auto" }],
  ["MULTIFORM-PUT", { method: "PUT", format: "form-data", answerAs: "auto" }],
  ["MULTIFORM-PATCH", { method: "PATCH", format: "form-data", answerAs: "auto" }],
  ["MULTIPART-FORM", { method: "POST", format: "related", answerAs: "auto" }],
  ...FURTHER_METHODS.map((method): [string, Method] => [method, { method, format: "json", answerAs: "auto" }]),
] satisfies ReadonlyArray<[string, Method]>);

/** The common methods, listed in the refusal. */
const NAMED = [...METHODS.keys()].slice(0, METHODS.size - FURTHER_METHODS.length).join(", ");

/** Methods whose payload may be a single file, sent as raw bytes. */
const UPLOADS: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);
const FILE_MEMBERS: ReadonlySet<string> = new Set(["content", "type", "name"]);
/** How an upload begins, within its first 256 bytes; other payloads are not searched for files. */
const UPLOAD_START = /^\s*\{\s*"files"\s*:\s*\[/;
/** Advice for an API whose JSON looks like an upload. */
const AS_JSON = "To send the payload as JSON, leave out x-payload-type and set content-type: application/json.";

/**
 * Decides the HTTP method, the body and its content-type, and what is added to the query.
 *
 * Fails with CALL_FORMAT_ERROR, which names the field.
 */
export function* bodyFromCall(input: BodyInput): Steps<DecidedBody> {
  const method = parseMethod(input.method);
  const given = isNoInformation(input, method) ? { ...input, payload: undefined } : input;
  const { payload = NOTHING } = given;
  const content = contentWithoutPayload(given, method) ?? (yield* payloadContent(given, payload, method));
  return { method: method.method, answerAs: method.answerAs, ...content };
}

function parseMethod(text: string): Method {
  // ASCII only: toUpperCase() turns `ſ` (U+017F) into `S`.
  const method = METHODS.get(text) ?? (/^[A-Za-z-]{1,20}$/.test(text) ? METHODS.get(text.toUpperCase()) : undefined);
  if (method !== undefined) return method;
  throw formatError(`method is not supported. Use ${NAMED}, or a method of WebDAV or the IANA registry.`);
}

/** An empty object counts as no payload, unless the caller says that the body is JSON (compat C10). */
function isNoInformation({ payload, body, contentType }: BodyInput, { format }: Method): boolean {
  if (payload === undefined || !isEmptyAt(payload, 0)) return false;
  return format !== "json" || (body?.length ?? 0) > 0 || !isJson(contentType);
}

function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && isJsonType(parseMediaType(contentType).essence);
}

/** Undefined when the payload has to be read. */
function contentWithoutPayload(input: BodyInput, method: Method): Content | undefined {
  const { payload, contentType } = input;
  if (input.body !== undefined && input.body.length > 0) return exactContent(input, input.body, method);
  if (method.format === "query") {
    const query = payload === undefined ? [] : queryFromJson(payload, input.explodeArrays);
    return { body: undefined, contentType, query };
  }
  if (input.payloadTypeFile) requireUpload(method);
  return payload === undefined ? withoutPayload(input, method) : undefined;
}

function* payloadContent(input: BodyInput, payload: Uint8Array, method: Method): Steps<Content> {
  const { contentType, memory, explodeArrays } = input;
  switch (method.format) {
    case "urlencoded":
      return {
        body: yield* formFromJson(payload, memory, explodeArrays),
        contentType: isUrlencoded(contentType) ? contentType : URLENCODED,
        query: [],
      };
    case "form-data":
      return yield* formDataContent(input, payload);
    case "related":
      return { ...(yield* relatedFromJson(payload, input.newBoundary(), memory)), query: [] };
    default:
      return yield* jsonContent(input, payload, method);
  }
}

function* formDataContent({ newBoundary, memory, explodeArrays }: BodyInput, payload: Uint8Array): Steps<Content> {
  return { ...(yield* formDataFromJson(payload, newBoundary(), memory, explodeArrays)), query: [] };
}

function exactContent({ payload, contentType }: BodyInput, body: Uint8Array, method: Method): Content {
  if (payload !== undefined) throw formatError("body and payload are both given. Send one of them.");
  // After a GET with a body undici closes the connection. A server that mistakes the body for the next request (RFC
  // 9110 section 9.3.1) has nobody left to answer.
  if (method.format !== "json" && method.method !== "GET")
    throw formatError("body needs a method other than HEAD, FORM, MULTIFORM-… and MULTIPART-FORM.");
  return { body, contentType: contentType ?? "application/octet-stream", query: [] };
}

/** An empty body is a valid form without fields, but multipart/related needs at least one part. */
function withoutPayload({ contentType, payloadTypeFile }: BodyInput, { format }: Method): Content {
  if (payloadTypeFile) throw formatError("payload.files is missing; the header x-payload-type: file needs one file.");
  if (format === "related") throw formatError("payload is missing: MULTIPART-FORM needs the member contentPart0.");
  return { body: undefined, contentType, query: [] };
}

function requireUpload({ method, format }: Method): void {
  if (format === "form-data" || (format === "json" && UPLOADS.has(method))) return;
  throw formatError("method must be POST, PUT, PATCH or MULTIFORM-… with the header x-payload-type: file.");
}

function* jsonContent(input: BodyInput, payload: Uint8Array, { method }: Method): Steps<Content> {
  const { contentType, memory, explodeArrays } = input;
  const mayBeUpload = UPLOADS.has(method) && startsAsUpload(payload, contentType);
  if (input.payloadTypeFile || (mayBeUpload && (yield* isUpload(payload)))) {
    return yield* fileContent(payload, contentType, memory);
  }
  if (isUrlencoded(contentType)) {
    return { body: yield* formFromJson(payload, memory, explodeArrays), contentType, query: [] };
  }
  const { essence } = parseMediaType(contentType ?? "application/json");
  if (essence === "multipart/form-data") {
    return yield* formDataContent(input, payload);
  }
  if (NO_JSON.test(essence)) throw noJson(essence);
  return { body: payload, contentType: contentType ?? "application/json", query: [] };
}

/** Types that cannot hold JSON. Other types may be JSON under a vendor's name, and are sent unchanged. */
const NO_JSON =
  /^(?:multipart\/|text\/(?!(?:x-)?(?:json|javascript)$|.*\+json$)|(?:image|audio|video|font)\/|application\/xml$)|\+xml$/;

function noJson(essence: string): RelayError {
  const isMultipart = essence.startsWith("multipart/");
  return formatError(
    `payload is a JSON object, but content-type is ${isMultipart ? "multipart/…" : "not JSON"}. ` +
      (isMultipart
        ? "Use the method MULTIPART-FORM (multipart/related), multipart/form-data, or body with the exact bytes."
        : "Send the exact bytes as body, or leave out content-type."),
  );
}

/** Whether a payload begins like an upload. A content-type of JSON or urlencoded rules an upload out. */
function startsAsUpload(payload: Uint8Array, contentType: string | undefined): boolean {
  if (!UPLOAD_START.test(Buffer.from(payload.subarray(0, 256)).toString("latin1"))) return false;
  return !(isUrlencoded(contentType) || isJson(contentType));
}

/**
 * Whether a payload is an implicit upload: its only member is `files`, an array of objects with a `content` and no
 * members other than the strings `content`, `type` and `name`.
 */
function* isUpload(payload: Uint8Array): Steps<boolean> {
  const [files, ...others] = yield* membersInSteps(payload);
  if (files?.key !== "files" || others.length > 0) return false;
  let isShaped = false;
  for (const element of elementsInSteps(payload, files)) {
    if (element === undefined) {
      yield;
      continue;
    }
    isShaped = yield* isFileShaped(payload, element);
    if (!isShaped) return false;
  }
  return isShaped;
}

function* isFileShaped(payload: Uint8Array, value: JsonRange): Steps<boolean> {
  const members = yield* membersInSteps(payload, value.start, value.end);
  return (
    members.some(({ key }) => key === "content") &&
    members.every(({ key, start }) => FILE_MEMBERS.has(key) && kindAt(payload, start) === "string")
  );
}

/** A single file as the whole body (compat C6). */
function* fileContent(payload: Uint8Array, contentType: string | undefined, memory: Room): Steps<Content> {
  const members = yield* membersByName(payload, { start: 0, end: payload.length });
  const files = members.get("files");
  if (files === undefined || members.size > 1) throw formatError(`payload.files must be the only member. ${AS_JSON}`);
  const element = yield* onlyElement(payload, files);
  if (element === undefined) {
    throw formatError(`payload.files must be an array of one file; send several with MULTIFORM-POST. ${AS_JSON}`);
  }
  const file = yield* membersByName(payload, element);
  if ([...file.keys()].some((key) => !FILE_MEMBERS.has(key))) {
    throw formatError("payload.files[0] may have only the members content, type and name.");
  }
  const { bytes, type } = yield* fileFromMembers(payload, file, "payload.files[0]");
  requireRoom(memory, bytes.length);
  const body = yield* joinedInSteps(bytes);
  return { body, contentType: type ?? contentType ?? "application/octet-stream", query: [] };
}

/** The element of an array of one; undefined for any other length, and for a value that is not an array. */
function* onlyElement(payload: Uint8Array, array: JsonRange): Steps<JsonRange | undefined> {
  if (kindAt(payload, array.start) !== "array") return undefined;
  let only: JsonRange | undefined;
  for (const element of elementsInSteps(payload, array)) {
    if (element === undefined) yield;
    else if (only !== undefined) return undefined;
    else only = { ...element };
  }
  return only;
}
