import type { JsonValue } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { CallResponseSchema, ResultRowSchema } from "../../../gen/relay/v1/relay_pb.js";
import { type Answer, type Outcome, statusCodeOf } from "../../call/outcome.js";
import { type Bytes, base64InSteps, between, bytesOf, NOTHING, SLICE_BYTES } from "../../lib/chunks.js";
import { atOnce } from "../../lib/turns.js";
import type { RowData } from "../rpc/row.js";
import { double, lengthDelimited, tagOf, utf8, varint, type WireText } from "./wire-text.js";

const { field: ROW } = ResultRowSchema;
const ROWS = tagOf(CallResponseSchema.field.rows, "lengthDelimited");
const PINC_STATUS = tagOf(ROW.pincStatus, "lengthDelimited");
const STATUS_CODE = tagOf(ROW.statusCode, "varint");
const CONTENT_TYPE = tagOf(ROW.contentType, "lengthDelimited");
const DATA = tagOf(ROW.data, "lengthDelimited");
const ERROR_TYPE = tagOf(ROW.errorType, "lengthDelimited");
const INERNAL_ERROR = tagOf(ROW.inernalError, "lengthDelimited");
const HEADERS = tagOf(ROW.headers, "lengthDelimited");
const CALL_ID = tagOf(ROW.callId, "lengthDelimited");
const DATA_ENCODING = tagOf(ROW.dataEncoding, "lengthDelimited");
const BODY = tagOf(ROW.body, "lengthDelimited");
const DATA_ROUNDED = tagOf(ROW.dataRounded, "varint");
const POSSIBLY_TRUNCATED = tagOf(ROW.possiblyTruncated, "varint");
const STRING_VALUE = tagOf(ValueSchema.field.stringValue, "lengthDelimited");
/** An entry of a map is a message of two fields, whatever the map. */
const KEY = tagOf({ number: 1 }, "lengthDelimited");
const ENTRY_VALUE = tagOf({ number: 2 }, "lengthDelimited");

/** A row in three pieces; the one that may be large stays bytes. */
interface Pieces {
  readonly before: WireText;
  readonly bytes: Bytes;
  readonly after: WireText;
}

const NONE = bytesOf(NOTHING);

/** What is encoded besides an outcome. */
interface BinaryRow {
  /** Undefined when no provider answered. */
  readonly data: RowData | undefined;
  /** The data in base64, if it was encoded in steps. */
  readonly value: Bytes | undefined;
  /** The prefix of a message of so many bytes; none if left out. */
  readonly prefixFor?: (bytes: number) => WireText;
}

/**
 * Encodes the envelope of an outcome as a CallResponse in protobuf, byte for byte as protobuf-es encodes that of
 * api/rpc/row.ts. The result is one piece, except for a large row, whose body is not copied.
 */
export function encodeBinary(outcome: Outcome, { data, value, prefixFor }: BinaryRow): Bytes {
  const { before, bytes, after } = piecesOf(outcome, data, value);
  const row = ROWS + varint(before.length + bytes.length + after.length) + before;
  const head = (prefixFor?.(row.length + bytes.length + after.length) ?? "") + row;
  if (bytes.length > SLICE_BYTES) return between(Buffer.from(head, "latin1"), bytes, Buffer.from(after, "latin1"));
  const result = Buffer.allocUnsafe(head.length + bytes.length + after.length);
  result.write(head, "latin1");
  result.set(bytes.concat(), head.length);
  if (after !== "") result.write(after, head.length + bytes.length, "latin1");
  return bytesOf(result);
}

function piecesOf(outcome: Outcome, data: RowData | undefined, value: Bytes | undefined): Pieces {
  const { answer } = outcome;
  const head = PINC_STATUS + utf8(outcome.result) + STATUS_CODE + varint(statusCodeOf(outcome));
  const failure =
    outcome.result === "success" ? "" : string(ERROR_TYPE, outcome.errorType) + string(INERNAL_ERROR, outcome.message);
  const callId = string(CALL_ID, outcome.callId);
  if (answer === undefined || data === undefined) return { before: head + failure + callId, bytes: NONE, after: "" };
  const start = head + string(CONTENT_TYPE, answer.contentType);
  const pieces = withData(start, data, value, failure + headersOf(answer) + callId);
  return answer.isPossiblyTruncated === true
    ? { ...pieces, after: `${pieces.after}${POSSIBLY_TRUNCATED}\x01` }
    : pieces;
}

/** Puts the body where its field number belongs: `data` between `start` and `end`, the other fields last. */
function withData(start: WireText, data: RowData, value: Bytes | undefined, end: WireText): Pieces {
  switch (data.kind) {
    case "value": {
      const rounded = data.isRounded ? `${DATA_ROUNDED}\x01` : "";
      return { before: start + DATA + lengthDelimited(encodeValue(data.json)) + end + rounded, bytes: NONE, after: "" };
    }
    case "string":
      return withString(start, bytesOf(Buffer.from(data.text)), end + string(DATA_ENCODING, data.encoding));
    case "utf8":
      return withString(start, data.bytes, end + string(DATA_ENCODING, data.encoding));
    case "binary":
      return withString(start, value ?? atOnce(base64InSteps(data.bytes)), end + string(DATA_ENCODING, "base64"));
    case "body":
      return { before: start + end + BODY + varint(data.bytes.length), bytes: data.bytes, after: "" };
  }
}

function withString(start: WireText, bytes: Bytes, after: WireText): Pieces {
  const inner = STRING_VALUE + varint(bytes.length);
  return { before: start + DATA + varint(inner.length + bytes.length) + inner, bytes, after };
}

/** proto3 omits an empty string. */
function string(tag: WireText, text: string): WireText {
  return text === "" ? "" : tag + utf8(text);
}

function headersOf({ headers }: Answer): WireText {
  let entries = "";
  for (const [name, value] of headers)
    entries += HEADERS + lengthDelimited(KEY + utf8(name) + ENTRY_VALUE + utf8(value));
  return entries;
}

const { field: VALUE } = ValueSchema;
const NULL = `${tagOf(VALUE.nullValue, "varint")}\0`;
const FALSE = `${tagOf(VALUE.boolValue, "varint")}\0`;
const TRUE = `${tagOf(VALUE.boolValue, "varint")}\x01`;
const NUMBER = tagOf(VALUE.numberValue, "fixed64");
const STRING = tagOf(VALUE.stringValue, "lengthDelimited");
const STRUCT = tagOf(VALUE.structValue, "lengthDelimited");
const LIST = tagOf(VALUE.listValue, "lengthDelimited");
const FIELDS = tagOf(StructSchema.field.fields, "lengthDelimited");
const VALUES = tagOf(ListValueSchema.field.values, "lengthDelimited");

/**
 * Encodes JSON as a google.protobuf.Value. protobuf-es takes twenty times as long for the same bytes, since it creates
 * a message for each number. Recursive: only for JSON of bounded depth.
 */
function encodeValue(json: JsonValue): WireText {
  switch (typeof json) {
    case "string":
      return STRING + utf8(json);
    case "number":
      return NUMBER + double(json);
    case "boolean":
      return json ? TRUE : FALSE;
    default:
      if (json === null) return NULL;
      return Array.isArray(json) ? LIST + lengthDelimited(valuesOf(json)) : STRUCT + lengthDelimited(fieldsOf(json));
  }
}

function valuesOf(list: readonly JsonValue[]): WireText {
  let values = "";
  for (const item of list) values += VALUES + lengthDelimited(encodeValue(item));
  return values;
}

function fieldsOf(object: { readonly [name: string]: JsonValue }): WireText {
  let fields = "";
  for (const name of Object.keys(object)) {
    const value = encodeValue(object[name] as JsonValue);
    fields += FIELDS + lengthDelimited(KEY + utf8(name) + ENTRY_VALUE + lengthDelimited(value));
  }
  return fields;
}
