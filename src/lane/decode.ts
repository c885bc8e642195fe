import { fromBinary, fromJsonString } from "@bufbuild/protobuf";
import { type CallRequest, CallRequestSchema } from "../../gen/relay/v1/relay_pb.js";
import { createBinaryParts } from "../rpc/binary-parts.js";
import { JSON_OPTIONS } from "../rpc/json-options.js";
import { requireFewParts } from "../rpc/message-parts.js";
import { decodePlain } from "./decode-plain.js";
import { PREFIX_BYTES } from "./grpc-prefix.js";
import type { LaneForm } from "./head.js";

const PARTS = createBinaryParts(CallRequestSchema);

/** The message of a body; undefined for one that cannot be decoded: connect-node has the words for it. */
export function decodeRequest(form: LaneForm, body: Buffer): CallRequest | undefined {
  try {
    switch (form) {
      case "grpc":
      case "grpc-web":
        return decodeBinary(body.subarray(PREFIX_BYTES));
      case "proto":
        return decodeBinary(body);
      case "json":
        return fromJsonString(CallRequestSchema, JSON_OPTIONS.textDecoder.decode(body), JSON_OPTIONS);
    }
  } catch {
    // connect-node decodes it once more, and says what is wrong.
    return undefined;
  }
}

function decodeBinary(bytes: Buffer): CallRequest {
  requireFewParts(PARTS, bytes);
  return decodePlain(bytes) ?? fromBinary(CallRequestSchema, bytes);
}
