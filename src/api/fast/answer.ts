import type { Outcome } from "../../call/outcome.js";
import { endWith } from "../../http/end-with.js";
import type { HttpResponse } from "../../http/exchange.js";
import type { Bytes } from "../../lib/chunks.js";
import type { RowData } from "../rpc/row-data.js";
import { encodeBinary } from "./encode-binary.js";
import { encodeJson } from "./encode-json.js";
import { grpcPrefix } from "./grpc-prefix.js";
import type { LaneForm } from "./head.js";

/** Every outcome of a call is a row; status OK says so much. */
const STATUS_OK = { "grpc-status": "0" } as const;

/**
 * The same in the body, since scripts of browsers see no trailers: behind a prefix whose first byte says what it is
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md#protocol-differences-vs-grpc-over-http2).
 */
const WEB_TRAILERS = Buffer.from("\x80\0\0\0\x10grpc-status: 0\r\n", "latin1");

/** A row that is ready to be written. */
export interface LaneRow {
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
