import type { HttpResponse } from "../listener/exchange.js";
import type { Outcome } from "../relay/outcome.js";
import { encodeBinary } from "./encode-binary.js";
import { encodeJson } from "./encode-json.js";
import { grpcPrefix } from "./grpc-prefix.js";
import type { LaneForm } from "./head.js";

/** Every outcome of a call is a row; status OK says so much. */
const STATUS_OK = { "grpc-status": "0" } as const;

/** Writes the row of an outcome as connect-node writes it, but never compressed: nobody has to understand a compression. */
export function answerOutcome(response: HttpResponse, form: LaneForm, outcome: Outcome): void {
  switch (form) {
    case "grpc":
      response.writeHead(200, { "content-type": "application/grpc+proto" });
      response.addTrailers(STATUS_OK);
      response.end(encodeBinary(outcome, grpcPrefix));
      return;
    case "proto":
      answerConnect(response, "application/proto", encodeBinary(outcome));
      return;
    case "json":
      answerConnect(response, "application/json", encodeJson(outcome));
  }
}

function answerConnect(response: HttpResponse, contentType: string, body: Buffer): void {
  response.writeHead(200, { "content-type": contentType, "content-length": body.length });
  response.end(body);
}
