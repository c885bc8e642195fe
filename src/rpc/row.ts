import { create, fromJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type CallResponse, CallResponseSchema, type ResultRow, ResultRowSchema } from "../../gen/relay/v1/relay_pb.js";
import { hasInexactNumber } from "../json/inexact-number.js";
import { validateJson } from "../json/json-validator.js";
import type { AnswerData, Outcome } from "../relay/outcome.js";

/** A JSON level is up to three messages of a Value, and many protobuf decoders stop at 100. */
const MAX_VALUE_DEPTH = 30;

/** A member of this name, also with its underscores escaped: objects made by assignment lose it. */
const PROTO_KEY = /__proto__|\\u005f/i;

type DataMembers = Pick<ResultRow, "dataEncoding" | "dataRounded"> & { data?: Value; body?: Uint8Array };

/** The envelope of an outcome as a message. */
export function responseFromOutcome(outcome: Outcome): CallResponse {
  const { answer } = outcome;
  const row = create(ResultRowSchema, {
    pincStatus: outcome.result,
    statusCode: outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode,
    callId: outcome.callId,
  });
  if (outcome.result === "error") {
    row.errorType = outcome.errorType;
    row.inernalError = outcome.message;
  }
  if (answer !== undefined) {
    row.contentType = answer.contentType;
    row.headers = Object.fromEntries(answer.headers);
    Object.assign(row, membersFrom(answer.data));
  }
  return create(CallResponseSchema, { rows: [row] });
}

function membersFrom(data: AnswerData): DataMembers {
  switch (data.kind) {
    case "json":
      return jsonMembers(data.text);
    case "text":
      return { data: stringValue(data.text), dataEncoding: "", dataRounded: false };
    case "binary":
      return { data: stringValue(base64(data.bytes)), dataEncoding: "base64", dataRounded: false };
    case "body":
      return { body: data.bytes, dataEncoding: "", dataRounded: false };
    case "empty":
      return { data: fromJson(ValueSchema, {}), dataEncoding: "", dataRounded: false };
  }
}

/** JSON as a Value; as its own text where a Value cannot hold it for every client. */
function jsonMembers(bytes: Uint8Array): DataMembers {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const parsed = fitsValue(bytes, text) ? valueFrom(text) : undefined;
  if (parsed === undefined) return { data: stringValue(text), dataEncoding: "json", dataRounded: false };
  return { data: parsed, dataEncoding: "", dataRounded: hasInexactNumber(bytes) };
}

function fitsValue(bytes: Uint8Array, text: string): boolean {
  return validateJson(bytes, { maxDepth: MAX_VALUE_DEPTH }) === "valid" && !PROTO_KEY.test(text);
}

function valueFrom(text: string): Value | undefined {
  try {
    return fromJson(ValueSchema, JSON.parse(text));
  } catch {
    // A number beyond a double: protobuf refuses Infinity. The caller gets the text instead.
    return undefined;
  }
}

function stringValue(text: string): Value {
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
