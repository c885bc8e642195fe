import type { Outcome } from "../../call/outcome.js";
import { endWith, type HttpRequest, type HttpResponse } from "../../http/exchange.js";
import { type Bytes, base64InSteps, base64StringInSteps, LARGE_BYTES, stringInSteps } from "../../lib/chunks.js";
import type { Steps } from "../../lib/turns.js";
import { MAX_TIMEOUT_MS, UNITS_MS } from "../rpc/one-message.js";
import type { RowData } from "../rpc/row.js";
import { encodeBinary } from "./encode-binary.js";
import { encodeJson } from "./encode-json.js";
import { grpcPrefix } from "./read-message.js";

/** Every outcome of a call is a row, so the status is always OK. */
const STATUS_OK = { "grpc-status": "0" } as const;

/**
 * The trailers as part of the body, since scripts in browsers cannot read HTTP trailers. The first byte of the prefix
 * marks them (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md#protocol-differences-vs-grpc-over-http2).
 */
const WEB_TRAILERS = Buffer.from("\x80\0\0\0\x10grpc-status: 0\r\n", "latin1");

/** A row, ready to write. */
interface FastRow {
  readonly outcome: Outcome;
  /** Undefined when no provider answered. */
  readonly data: RowData | undefined;
  /** The large part of it, encoded; see `largeValueOf()`. */
  readonly value: Bytes | undefined;
}

/** Writes a row as connect-node does, but never compressed: no client can require compression. */
export function answerRow(response: HttpResponse, form: FastForm, { outcome, data, value }: FastRow): void {
  switch (form) {
    case "grpc":
      response.writeHead(200, { "content-type": "application/grpc+proto" });
      response.addTrailers(STATUS_OK);
      endWith(response, encodeBinary(outcome, { data, value, prefixFor: grpcPrefix }).pieces);
      return;
    case "grpc-web":
      response.writeHead(200, { "content-type": "application/grpc-web+proto" });
      endWith(response, [...encodeBinary(outcome, { data, value, prefixFor: grpcPrefix }).pieces, WEB_TRAILERS]);
      return;
    case "proto":
      answerConnect(response, "application/proto", encodeBinary(outcome, { data, value }));
      return;
    case "json":
      answerConnect(response, "application/json", encodeJson(outcome, data, value));
  }
}

function answerConnect(response: HttpResponse, contentType: string, body: Bytes): void {
  response.writeHead(200, { "content-type": contentType, "content-length": body.length });
  endWith(response, body.pieces);
}

/** Encodes the large part of a row in steps; undefined when it is small or needs no encoding. */
export function largeValueOf(form: FastForm, data: RowData | undefined): Steps<Bytes> | undefined {
  if (data === undefined || !("bytes" in data) || data.bytes.length <= LARGE_BYTES) return undefined;
  switch (data.kind) {
    case "binary":
      return form === "json" ? base64StringInSteps(data.bytes) : base64InSteps(data.bytes);
    case "utf8":
      return form === "json" ? stringInSteps(data.bytes) : undefined;
    case "body":
      return form === "json" ? base64StringInSteps(data.bytes) : undefined;
  }
}

/** Wire format of a call on the fast path: gRPC or gRPC-Web with protobuf, or Connect with protobuf or JSON. */
export type FastForm = "grpc" | "grpc-web" | "proto" | "json";

/** Whether each message has a prefix. */
export function isPrefixed(form: FastForm): form is "grpc" | "grpc-web" {
  return form === "grpc" || form === "grpc-web";
}

/** What the head of a request says about its call. */
export interface FastHead {
  readonly form: FastForm;
  /** The caller's own timeout in milliseconds, at least 1; undefined without one. */
  readonly timeoutMs: number | undefined;
}

/** Content types as clients write them; connect-node accepts further spellings. */
const FORMS: ReadonlyMap<string | undefined, FastForm> = new Map([
  ["application/grpc", "grpc"],
  ["application/grpc+proto", "grpc"],
  ["application/grpc-web", "grpc-web"],
  ["application/grpc-web+proto", "grpc-web"],
  ["application/proto", "proto"],
  ["application/json", "json"],
  // Sent by the HTTP clients of Java and .NET.
  ["application/json; charset=utf-8", "json"],
]);

/**
 * Decides from the head whether a request at the path of Call can take the fast path: a plain call, as nearly all are.
 * Undefined for what is compressed, too large or malformed, which is left to connect-node. It need not check
 * connect-protocol-version or `te: trailers`: connect-node accepts any version, and does not require trailers.
 *
 * @param maxBytes largest message.
 */
export function decideHead(request: HttpRequest, maxBytes: number): FastHead | undefined {
  const { headers, method } = request;
  const form = FORMS.get(headers["content-type"]);
  if (form === undefined || method !== "POST") return undefined;
  if (isPrefixed(form)) {
    return isPlain(headers["grpc-encoding"]) ? headOf(form, headers["grpc-timeout"], timeoutFromGrpc) : undefined;
  }
  const isFitting = Number(headers["content-length"] ?? 0) <= maxBytes;
  if (!isFitting || !isPlain(headers["content-encoding"])) return undefined;
  return headOf(form, headers["connect-timeout-ms"], timeoutFromConnect);
}

function headOf(form: FastForm, timeout: Field, parse: (text: string) => number | undefined): FastHead | undefined {
  if (timeout === undefined) return { form, timeoutMs: undefined };
  const timeoutMs = parse(String(timeout));
  return timeoutMs === undefined ? undefined : { form, timeoutMs };
}

type Field = string | string[] | undefined;

function isPlain(encoding: Field): boolean {
  return encoding === undefined || encoding === "identity";
}

/**
 * Milliseconds of a grpc-timeout; undefined when it is malformed, under 1 ms, or over the limit. Pure.
 *
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests
 */
function timeoutFromGrpc(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return usable(Number(digits) * (UNITS_MS.get(unit) ?? Number.NaN));
}

/**
 * Milliseconds of a connect-timeout-ms; undefined when it is malformed, under 1 ms, or over the limit. Pure.
 *
 * https://connectrpc.com/docs/protocol/#unary-request
 */
function timeoutFromConnect(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) ? usable(Number(text)) : undefined;
}

/** Sets the timeout of a request to zero, so that connect-node, which sees it only now, answers that it has expired. */
export function endTimeout({ headers }: HttpRequest, form: FastForm): void {
  if (isPrefixed(form)) headers["grpc-timeout"] = "0m";
  else headers["connect-timeout-ms"] = "0";
}

/** The timeout, if it is at least 1 ms and at most {@link MAX_TIMEOUT_MS}. */
function usable(timeoutMs: number): number | undefined {
  return timeoutMs >= 1 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : undefined;
}
