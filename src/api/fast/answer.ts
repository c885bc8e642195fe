import type { Outcome } from "../../call/outcome.js";
import { endWith, type HttpResponse } from "../../http/exchange.js";
import { type Bytes, LARGE_BYTES } from "../../lib/chunks.js";
import { base64InSteps, base64StringInSteps, stringInSteps } from "../../lib/encode-in-steps.js";
import type { Steps } from "../../lib/turns.js";
import type { RowData } from "../rpc/row.js";
import { encodeBinary } from "./encode-binary.js";
import { encodeJson } from "./encode-json.js";
import type { LaneForm } from "./head.js";
import { grpcPrefix } from "./read-message.js";

/** Every outcome of a call is a row; status OK says so much. */
const STATUS_OK = { "grpc-status": "0" } as const;

/**
 * The same in the body, since scripts of browsers see no trailers: behind a prefix whose first byte says what it is
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md#protocol-differences-vs-grpc-over-http2).
 */
const WEB_TRAILERS = Buffer.from("\x80\0\0\0\x10grpc-status: 0\r\n", "latin1");

/** A row that is ready to be written. */
interface LaneRow {
  readonly outcome: Outcome;
  /** Undefined where no provider answered. */
  readonly data: RowData | undefined;
  /** What is long of it, see `largeValueOf()`. */
  readonly value: Bytes | undefined;
}

/** Writes a row as connect-node writes it, but never compressed: nobody has to understand a compression. */
export function answerRow(response: HttpResponse, form: LaneForm, { outcome, data, value }: LaneRow): void {
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

/** What of a row has to be written anew before it can be sent, where it is large; undefined for all others. */
export function largeValueOf(form: LaneForm, data: RowData | undefined): Steps<Bytes> | undefined {
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
