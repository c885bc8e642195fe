import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type CallResponse,
  CallResponseSchema,
  type ResultRow,
  ResultRowSchema,
} from "../../../gen/relay/v1/relay_pb.js";
import { type AnswerData, type Outcome, statusCodeOf } from "../../call/outcome.js";
import { surveyJson } from "../../json/json-survey.js";
import { validateJson } from "../../json/json-validator.js";
import { type Bytes, SLICE_BYTES } from "../../lib/chunks.js";
import { requireFewPartsOfJson } from "./message-parts.js";

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
    statusCode: statusCodeOf(outcome),
    callId: outcome.callId,
  });
  if (outcome.result === "error") {
    row.errorType = outcome.errorType;
    row.inernalError = outcome.message;
  }
  if (answer !== undefined) {
    row.contentType = answer.contentType;
    row.headers = Object.fromEntries(answer.headers);
    row.possiblyTruncated = answer.isPossiblyTruncated === true;
    Object.assign(row, membersFrom(decideRowData(answer.data)));
  }
  return row;
}

function membersFrom(data: RowData): DataMembers {
  switch (data.kind) {
    case "value":
      return { data: fromJson(ValueSchema, data.json), dataEncoding: "", dataRounded: data.isRounded };
    case "string":
      return { data: stringValue(data.text), dataEncoding: data.encoding, dataRounded: false };
    case "utf8":
      return { data: stringValue(data.bytes.concat().toString()), dataEncoding: data.encoding, dataRounded: false };
    case "binary":
      return {
        data: stringValue(data.bytes.concat().toString("base64")),
        dataEncoding: "base64",
        dataRounded: false,
      };
    case "body":
      return { body: data.bytes.concat(), dataEncoding: "", dataRounded: false };
  }
}

function stringValue(text: string): Value {
  return create(ValueSchema, { kind: { case: "stringValue", value: text } });
}

/** A provider's body as it appears in a row of the typed protocols. */
export type RowData =
  /** In `data`, as a Value. */
  | { readonly kind: "value"; readonly json: JsonValue; readonly isRounded: boolean }
  /** In `data`, as a string; `encoding` is `dataEncoding`. */
  | { readonly kind: "string"; readonly text: string; readonly encoding: StringEncoding }
  /** The same, in UTF-8: too long to be one string. */
  | { readonly kind: "utf8"; readonly bytes: Bytes; readonly encoding: StringEncoding }
  /** In `data`, as a base64 string; not encoded yet, since it is too large to be encoded in one go. */
  | { readonly kind: "binary"; readonly bytes: Bytes }
  /** In `body`. */
  | { readonly kind: "body"; readonly bytes: Bytes };

type StringEncoding = "" | "base64" | "json";

/** Converting larger JSON to messages, and encoding those, would block the event loop for too long. */
const MAX_VALUE_BYTES = 256 * 1024;
/** A JSON level is up to three messages of a Value, and many protobuf decoders stop at 100. */
const MAX_VALUE_DEPTH = 30;

/** A member named `__proto__`, also with escaped underscores: objects made by assignment lose it. */
const PROTO_KEY = /__proto__|\\u005f/i;

/** Decides which members of a row an answer's body goes to. Pure. */
export function decideRowData(data: AnswerData): RowData {
  switch (data.kind) {
    case "json":
      return data.text.length > MAX_VALUE_BYTES
        ? { kind: "utf8", bytes: data.text, encoding: "json" }
        : decideJson(data.text.concat());
    case "text":
      return { kind: "string", text: data.text, encoding: "" };
    case "utf8":
      return { kind: "utf8", bytes: data.bytes, encoding: "" };
    case "binary":
      return data.bytes.length > SLICE_BYTES
        ? data
        : { kind: "string", text: data.bytes.concat().toString("base64"), encoding: "base64" };
    case "body":
      return data;
    case "empty":
      return { kind: "value", json: {}, isRounded: false };
  }
}

/** JSON as a Value; as text when not every client could read the Value, or when it would lose something. */
function decideJson(bytes: Buffer): RowData {
  const text = bytes.toString("utf8");
  if (!fitsValue(bytes, text)) return { kind: "string", text, encoding: "json" };
  const json: JsonValue = JSON.parse(text);
  const { hasInexactNumber: isRounded, memberCount } = surveyJson(bytes);
  const isWhole = memberCount === 0 || memberCountOf(json) === memberCount;
  if (!isWhole || (isRounded && !fitsDouble(json)) || (SURROGATE.test(text) && !isWellFormed(json))) {
    return { kind: "string", text, encoding: "json" };
  }
  return { kind: "value", json, isRounded };
}

/** Counts the members of parsed JSON, where members of the same name are one. */
function memberCountOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null) return 0;
  const values = Array.isArray(json) ? json : Object.values(json);
  let count = Array.isArray(json) ? 0 : values.length;
  for (const value of values) if (typeof value === "object") count += memberCountOf(value);
  return count;
}

/** An escaped surrogate; protobuf strings cannot hold a lone one. */
const SURROGATE = /\\ud[89a-f]/i;

function isWellFormed(json: JsonValue): boolean {
  if (typeof json === "string") return json.isWellFormed();
  if (typeof json !== "object" || json === null) return true;
  return Object.entries(json).every(([name, value]) => name.isWellFormed() && isWellFormed(value));
}

function fitsValue(bytes: Uint8Array, text: string): boolean {
  return validateJson(bytes, { maxDepth: MAX_VALUE_DEPTH }) === "valid" && !PROTO_KEY.test(text);
}

/** JSON.parse turns a number that is too large for a double into Infinity, which clients refuse in a Value. */
function fitsDouble(json: JsonValue): boolean {
  if (typeof json === "number") return Number.isFinite(json);
  return typeof json !== "object" || json === null || Object.values(json).every(fitsDouble);
}

/** Length of the prefix of each message in gRPC and Connect streams: one byte of flags, four bytes of length. */
export const PREFIX_BYTES = 5;
/** Flag of a compressed message. */
export const COMPRESSED_FLAG = 0b1;

/** The prefix of a message. */
export function prefixOf(flags: number, length: number): Buffer {
  const prefix = Buffer.from([flags, 0, 0, 0, 0]);
  prefix.writeUInt32BE(length, 1);
  return prefix;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/**
 * As strict as the JSON route: no unknown fields, no bytes that are not UTF-8 (threats I23). Refuses messages that
 * protobuf-es would take long to decode.
 */
export const JSON_OPTIONS = {
  ignoreUnknownFields: false,
  textDecoder: {
    decode(message: Uint8Array): string {
      requireFewPartsOfJson(message);
      return UTF8.decode(message);
    },
  },
} as const;
