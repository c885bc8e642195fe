import type { Call } from "../../call/call.js";
import { type AnswerHead, type ErrorOutcome, isGone } from "../../call/outcome.js";
import type { Relay, StreamPart, StreamParts } from "../../call/relay.js";
import type { PathHandler } from "../../http/dispatch.js";
import { cut, type HttpResponse, hasContent, jsonFields, writeChunk, writeHeadOf } from "../../http/exchange.js";
import { bodyFromOutcome, bytesFromBody, MAX_TEXT_BYTES } from "./envelope.js";
import { type CallRouteOptions, createCallRoute } from "./handler.js";
import { corsFieldsFor } from "./preflight.js";
import { type Exchange, readCall } from "./read-call.js";

/** What the raw route needs from the rest of the service. */
interface StreamHandlerOptions extends CallRouteOptions {
  readonly relay: Relay;
}

/**
 * The raw route: streams the provider's own status, fields and body. A failure before the head is an error row with the
 * HTTP status of its reason. A later failure cuts the answer short: every client can tell it from a complete one.
 */
export function createStreamHandler(options: StreamHandlerOptions): PathHandler {
  return createCallRoute(options, (exchange) => answerStream(options, exchange));
}

async function answerStream(options: StreamHandlerOptions, exchange: Exchange): Promise<void> {
  const { request, response, origin, queryText } = exchange;
  const corsFields = () => corsFieldsFor(options.allowedOrigins, options.route, request, queryText);
  const answerRow = async (outcome: ErrorOutcome) => {
    const cors = await corsFields();
    writeRow(response, outcome, "x-error-type", cors);
  };
  let call: Call;
  try {
    call = await readCall(options, exchange);
  } catch (error) {
    return answerRow(options.relay.refuse(origin, error));
  }
  const fieldsOf = async (head: AnswerHead) => fieldsFromHead(head, origin.callId, await corsFields());
  await writeStream(await options.relay.stream(call), call.signal, { response, fieldsOf, answerRow });
}

/** How a surface answers with a stream. */
interface StreamWriter {
  readonly response: HttpResponse;
  readonly fieldsOf: (head: AnswerHead) => Record<string, string> | Promise<Record<string, string>>;
  /** Answers a call that failed before the provider's head. */
  readonly answerRow: (outcome: ErrorOutcome) => void | Promise<void>;
}

/** Writes the parts of an answer as they arrive, until it ends or the caller disconnects. */
export async function writeStream(parts: StreamParts, signal: Call["signal"], writer: StreamWriter): Promise<void> {
  const write = async (part: StreamPart) => !isGone(signal) && writePart(part, writer);
  if (Symbol.asyncIterator in parts) {
    // Leaving the loop releases the provider's socket.
    for await (const part of parts) if (!(await write(part))) break;
  } else {
    await write(parts[0]);
  }
  if (!writer.response.writableEnded) writer.response.end();
}

/** False when nothing more is to be sent. */
async function writePart(part: StreamPart, { response, fieldsOf, answerRow }: StreamWriter): Promise<boolean> {
  switch (part.kind) {
    case "head": {
      const given = fieldsOf(part.head);
      const fields = given instanceof Promise ? await given : given;
      if (response.destroyed) return false;
      if (part.whole === undefined) writeHeadOf(response, part.head.statusCode, fields);
      else writeWhole(response, part.head.statusCode, fields, part.whole);
      return true;
    }
    case "chunk":
      return hasContent(response.statusCode) && writeChunk(response, part.bytes);
    case "failure":
      if (response.headersSent) cut(response);
      else await answerRow(part.outcome);
      return false;
  }
}

/** Answers in one write, with a content-length if there is a body; an answer to HEAD keeps the one it has. */
function writeWhole(response: HttpResponse, statusCode: number, fields: Record<string, string>, body: Buffer): void {
  const hasBody = body.length > 0 && hasContent(statusCode);
  if (hasBody) fields["content-length"] = String(body.length);
  response.writeHead(statusCode, fields);
  if (!hasBody) response.end();
  else if (body.length > MAX_TEXT_BYTES) response.end(body);
  // As text node:http joins it to the head; bytes would be a second piece to write.
  else response.end(body.toString("latin1"), "latin1");
}

/**
 * Provider fields that keep their names: they describe the answer and its body, and no browser, proxy, cache or web
 * server in front of the relay acts on them. Any other name might be one that something acts on, such as
 * X-Accel-Redirect, X-LiteSpeed-Location, CDN-Cache-Control or Location.
 */
const KEPT = new Set(
  `accept-patch accept-post accept-ranges allow content-digest content-disposition content-language content-md5
   content-range content-type deprecation digest etag last-modified link repr-digest retry-after sunset warning`.split(
    /\s+/,
  ),
);

/**
 * Patterns of such fields: rate limits, paging and counts, ids, scopes, versions, checksums, prefixes of large APIs.
 */
const KEPT_FAMILIES = [
  /^(?:[a-z0-9]+-)*rate-?limit(?:-|$)/,
  /^x-(?:total|count|page|per-page|next|prev|first|last|offset|cursor|pagination|wp-total)/,
  /^(?!x-request-id$)(?:[a-z0-9]+-)*(?:request|req|correlation|trace|activity)-?id$/,
  /^x-(?:accepted-)?oauth-/,
  /-(?:version|checksum|md5|sha256|crc32c?|hash|usage|quota|remaining)$/,
  /^(?:x-)?(?:amz|amzn|anthropic|discord|dropbox|facebook|fb|github|gitlab|goog|guploader|hubspot|ms|odata|openai|sforce|shopify|slack|stripe|zendesk)-/,
];

/**
 * Relations of links that a browser loads, or a server in front pushes, by itself. Other links lead to further pages.
 */
const LOADED_LINK = /pre(?:load|fetch|connect|render)|stylesheet|icon|manifest/i;

const NONE: ReadonlySet<string> = new Set();

/** Characters that node:http refuses to write: its parser accepts DEL. */
const UNWRITABLE = /[^\t\x20-\x7e\x80-\xff]/;
/** RFC 9110 section 5.6.2. After redaction a name that held the token is not valid any more. */
const FIELD_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * Fields of an answer on the raw route: the provider's, byte for byte. Those that something might act on are renamed to
 * `x-provider-…`, also content-length, since the body may be shorter after redaction, and the provider's request id.
 * Pure.
 *
 * @param cors fields for a browser; undefined when the client is not a browser.
 * @param alsoKept further names to keep, spelled as in the head.
 */
export function fieldsFromHead(
  head: AnswerHead,
  callId: string,
  cors: Readonly<Record<string, string>> | undefined,
  alsoKept: ReadonlySet<string> = NONE,
): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [written, value] of head.headers) {
    const usual = nameFor(written);
    if (usual === "" || UNWRITABLE.test(value)) continue;
    const name = alsoKept.has(written) ? written : usual;
    fields[name === "link" && mayBeLoaded(value) ? "x-provider-link" : name] = value;
  }
  fields["x-call-id"] = callId;
  if (head.isPossiblyTruncated === true) fields["x-possibly-truncated"] = "true";
  const exposed = cors && [...Object.keys(fields), "x-request-id"].join(", ");
  if (!hasContent(head.statusCode)) delete fields["content-type"];
  Object.assign(fields, OWN_FIELDS, cors, exposed && { "access-control-expose-headers": exposed });
  return fields;
}

const OWN_FIELDS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  // A provider's page must not run as a page of the relay, whatever its type.
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
};

/** Cache: name as the provider wrote it → {@link nameFor}. It saves 14 µs of an answer with twelve usual fields. */
const names = new Map<string, string>();
const MAX_NAMES = 1000;
const MAX_NAME_LENGTH = 64;

/** The name of a provider's field in our answer; empty when it is not a valid name. */
function nameFor(written: string): string {
  const known = names.get(written);
  if (known !== undefined) return known;
  const lower = written.toLowerCase();
  const kept = isKept(lower) ? lower : `x-provider-${lower}`;
  const name = FIELD_NAME.test(written) ? kept : "";
  if (names.size >= MAX_NAMES) names.clear();
  if (written.length <= MAX_NAME_LENGTH) names.set(written, name);
  return name;
}

function isKept(name: string): boolean {
  return KEPT.has(name) || KEPT_FAMILIES.some((family) => family.test(name));
}

/** Judges the relation of a link, not its target. */
function mayBeLoaded(link: string): boolean {
  return LOADED_LINK.test(link.replace(/<[^<>]*>/g, ""));
}

/**
 * Answers a call that failed before the provider's head with its row: JSON, with the status of its reason.
 *
 * @param typeField name of the field for the row's errorType; no answer of a provider has it, whatever its status.
 */
export function writeRow(
  response: HttpResponse,
  outcome: ErrorOutcome,
  typeField: string,
  cors: Readonly<Record<string, string>> | undefined,
): void {
  if (response.destroyed) return;
  const body = bytesFromBody(bodyFromOutcome(outcome, undefined));
  response.writeHead(outcome.statusCode, {
    ...jsonFields(body.length, outcome.waitSeconds),
    "x-call-id": outcome.callId,
    [typeField]: outcome.errorType,
    ...cors,
    ...(cors && { "access-control-expose-headers": `retry-after, x-call-id, ${typeField}, x-request-id` }),
  });
  response.end(body);
}
