import type { Steps } from "../lib/turns.js";
import { formatError } from "../model/errors.js";
import { decideHeaders } from "../providers/headers.js";
import { type BodyInput, bodyFromCall } from "./body.js";
import type { CallDescription } from "./call.js";
import { queryFromJson } from "./query.js";

/** JSON text that goes to the query. */
const MAX_QUERY_BYTES = 32 * 1024;

/** What is sent, as far as the caller decides it. */
export interface CheckedCall {
  /** Real HTTP method, upper-case. */
  readonly method: string;
  /** Headers to forward, content-type of the body included. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: Uint8Array | undefined;
  /** To append to the url's query, in order. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>;
  /** GETFILE wants base64 whatever the type. */
  readonly answerAs: "auto" | "base64";
}

/**
 * Decides method, headers, body and query of the request, before anything secret is touched; in steps, since a body may
 * have to be written anew.
 *
 * Fails with CALL_FORMAT_ERROR that names the field.
 */
export function* checkCall(
  description: CallDescription,
  { newBoundary, memory }: Pick<BodyInput, "newBoundary" | "memory">,
): Steps<CheckedCall> {
  const decided = decideHeaders(description.headers);
  const contentType = decided.forwarded.find(([name]) => name.toLowerCase() === "content-type");
  const body = yield* bodyFromCall({
    method: description.method,
    payload: payloadOf(description),
    explodeArrays: description.explodeArrays,
    body: description.body,
    contentType: contentType?.[1],
    payloadTypeFile: decided.payloadType === "file",
    newBoundary,
    memory,
  });
  const query =
    description.queryString === undefined
      ? []
      : queryFromJson(short(description.queryString, "queryString"), description.explodeArrays);
  return {
    method: body.method,
    headers: withContentType(decided.forwarded, body.contentType),
    body: body.body,
    query: body.query.length === 0 ? query : [...query, ...body.query],
    answerAs: body.answerAs,
  };
}

/** The payload of a request without a body becomes part of its query. */
function payloadOf({ method, payload }: CallDescription): Uint8Array | undefined {
  return payload !== undefined && /^(?:get|head|getfile)$/i.test(method) ? short(payload, "payload") : payload;
}

/** No server takes a longer request line, and encoding one would hold up other calls. */
function short(json: Uint8Array, field: string): Uint8Array {
  if (json.length <= MAX_QUERY_BYTES) return json;
  throw formatError(`${field} is too long for a query: more than ${MAX_QUERY_BYTES} bytes.`);
}

/** One content-type: that of the body as it is sent. */
function withContentType(headers: CheckedCall["headers"], contentType: string | undefined): CheckedCall["headers"] {
  const others = headers.filter(([name]) => name.toLowerCase() !== "content-type");
  return contentType === undefined ? others : [...others, ["content-type", contentType]];
}
