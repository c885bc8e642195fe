import type { IncomingHttpHeaders } from "node:http";
import type { HttpRequest } from "../../http/exchange.js";
import { MAX_TIMEOUT_MS } from "../rpc/timeout.js";

/** How a call of the lane is written: gRPC or gRPC-Web in protobuf, or Connect with a message in protobuf or in JSON. */
export type LaneForm = "grpc" | "grpc-web" | "proto" | "json";

/** Whether a message stands behind a prefix. */
export function isPrefixed(form: LaneForm): form is "grpc" | "grpc-web" {
  return form === "grpc" || form === "grpc-web";
}

/** What the head of a request says of its call. */
export interface LaneHead {
  readonly form: LaneForm;
  /** The caller's own timeout in milliseconds, at least 1; undefined without one. */
  readonly timeoutMs: number | undefined;
}

/** As clients write them; connect-node knows further spellings. */
const FORMS: ReadonlyMap<string | undefined, LaneForm> = new Map([
  ["application/grpc", "grpc"],
  ["application/grpc+proto", "grpc"],
  ["application/grpc-web", "grpc-web"],
  ["application/grpc-web+proto", "grpc-web"],
  ["application/proto", "proto"],
  ["application/json", "json"],
  // As the HTTP clients of Java and .NET write it.
  ["application/json; charset=utf-8", "json"],
]);

/**
 * Decides from the head alone whether a request at the path of Call is one for the lane: a plain call, as nearly all
 * are. Undefined for whatever is compressed, too large or malformed: connect-node's. What it leaves unsaid matters to
 * nobody: connect-node takes any connect-protocol-version and asks for no `te: trailers`.
 *
 * @param maxBytes largest message.
 */
export function decideHead(request: HttpRequest, maxBytes: number): LaneHead | undefined {
  const { headers, method } = request;
  const form = FORMS.get(headers["content-type"]);
  if (form === undefined || method !== "POST") return undefined;
  if (isPrefixed(form)) return isPlain(headers["grpc-encoding"]) ? grpcHead(headers, form) : undefined;
  const isFitting = Number(headers["content-length"] ?? 0) <= maxBytes;
  return isFitting && isPlain(headers["content-encoding"]) ? connectHead(headers, form) : undefined;
}

function grpcHead({ "grpc-timeout": timeout }: IncomingHttpHeaders, form: LaneForm): LaneHead | undefined {
  if (timeout === undefined) return { form, timeoutMs: undefined };
  const timeoutMs = timeoutFromGrpc(String(timeout));
  return timeoutMs === undefined ? undefined : { form, timeoutMs };
}

function connectHead({ "connect-timeout-ms": timeout }: IncomingHttpHeaders, form: LaneForm): LaneHead | undefined {
  if (timeout === undefined) return { form, timeoutMs: undefined };
  const timeoutMs = timeoutFromConnect(String(timeout));
  return timeoutMs === undefined ? undefined : { form, timeoutMs };
}

function isPlain(encoding: string | string[] | undefined): boolean {
  return encoding === undefined || encoding === "identity";
}

const UNITS_MS: ReadonlyMap<string | undefined, number> = new Map([
  ["H", 3_600_000],
  ["M", 60_000],
  ["S", 1_000],
  ["m", 1],
  ["u", 1e-3],
  ["n", 1e-6],
]);

/**
 * Milliseconds of a grpc-timeout; undefined for one that is malformed, over already, or over the limit. Pure.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 */
function timeoutFromGrpc(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return usable(Number(digits) * (UNITS_MS.get(unit) ?? Number.NaN));
}

/**
 * Milliseconds of a connect-timeout-ms; undefined for one that is malformed, over already, or over the limit. Pure.
 *
 * https://connectrpc.com/docs/protocol/#unary-request
 */
function timeoutFromConnect(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? usable(Number(text)) : undefined;
}

/** Lets connect-node find that the time of a request is over, which it cannot know when it sees the request only now. */
export function endTimeout({ headers }: HttpRequest, form: LaneForm): void {
  if (isPrefixed(form)) headers["grpc-timeout"] = "0m";
  else headers["connect-timeout-ms"] = "0";
}

/** Less than a millisecond is no time for a call. */
function usable(timeoutMs: number): number | undefined {
  return timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : undefined;
}
