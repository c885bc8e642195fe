import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type CallResponse, CallResponseSchema, type ResultRow, ResultRowSchema } from "../../gen/relay/v1/relay_pb.js";
import { bufferOf } from "../buffer-of.js";
import { hasInexactNumber } from "../json/inexact-number.js";
import { validateJson } from "../json/json-validator.js";
import type { AnswerData, Outcome } from "../relay/outcome.js";

/** Making messages of a larger JSON, and bytes of them, would hold the event loop for more than a moment. */
const MAX_VALUE_BYTES = 256 * 1024;
/** A JSON level is up to three messages of a Value, and many protobuf decoders stop at 100. */
const MAX_VALUE_DEPTH = 30;

/** A member of this name, also with its underscores escaped: objects made by assignment lose it. */
const PROTO_KEY = /__proto__|\\u005f/i;

type DataMembers = Pick<ResultRow, "dataEncoding" | "dataRounded"> & { data?: Value; body?: Uint8Array };

/** The envelope of an outcome as a message. */
export function responseFromOutcome(outcome: Outcome): CallResponse {
  return create(CallResponseSchema, { rows: [rowFromOutcome(outcome)] });
}

/** The row of an outcome as a message. */
export function rowFromOutcome(outcome: Outcome): ResultRow {
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
  return row;
}

function membersFrom(data: AnswerData): DataMembers {
  switch (data.kind) {
    case "json":
      return jsonMembers(data.text.concat());
    case "text":
      return { data: stringValue(data.text), dataEncoding: "", dataRounded: false };
    case "binary":
      return { data: stringValue(bufferOf(data.bytes).toString("base64")), dataEncoding: "base64", dataRounded: false };
    case "body":
      return { body: data.bytes, dataEncoding: "", dataRounded: false };
    case "empty":
      return { data: fromJson(ValueSchema, {}), dataEncoding: "", dataRounded: false };
  }
}

/** JSON as a Value; as its own text where a Value cannot hold it for every client. */
function jsonMembers(bytes: Uint8Array): DataMembers {
  const text = bufferOf(bytes).toString("utf8");
  if (!fitsValue(bytes, text)) return textMembers(text);
  const json: JsonValue = JSON.parse(text);
  const isRounded = hasInexactNumber(bytes);
  if (isRounded && !fitsDouble(json)) return textMembers(text);
  return { data: fromJson(ValueSchema, json), dataEncoding: "", dataRounded: isRounded };
}

function textMembers(text: string): DataMembers {
  return { data: stringValue(text), dataEncoding: "json", dataRounded: false };
}

function fitsValue(bytes: Uint8Array, text: string): boolean {
  if (bytes.length > MAX_VALUE_BYTES) return false;
  return validateJson(bytes, { maxDepth: MAX_VALUE_DEPTH }) === "valid" && !PROTO_KEY.test(text);
}

/** JSON.parse makes Infinity of a number beyond a double, which clients refuse in a Value. */
function fitsDouble(json: JsonValue): boolean {
  if (typeof json === "number") return Number.isFinite(json);
  return typeof json !== "object" || json === null || Object.values(json).every(fitsDouble);
}

function stringValue(text: string): Value {
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}
