import { fromBinary, fromJsonString } from "@bufbuild/protobuf";
import { type CallRequest, CallRequestSchema } from "../../../gen/relay/v1/relay_pb.js";
import { SLICE_BYTES } from "../../lib/chunks.js";
import { createBinaryParts, requireFewParts } from "../rpc/message-parts.js";
import { JSON_OPTIONS, PREFIX_BYTES } from "../rpc/row.js";
import { decodePlain } from "./decode-plain.js";
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
  // Plain lengths are short, so a long message is not plain; and a short one that is has few parts.
  const plain = bytes.length <= SLICE_BYTES ? decodePlain(bytes) : undefined;
  if (plain !== undefined) return plain;
  requireFewParts(PARTS, bytes);
  return fromBinary(CallRequestSchema, bytes);
}
