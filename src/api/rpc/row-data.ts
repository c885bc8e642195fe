import type { JsonValue } from "@bufbuild/protobuf";
import type { AnswerData } from "../../call/outcome.js";
import { surveyJson } from "../../json/json-survey.js";
import { validateJson } from "../../json/json-validator.js";
import type { Bytes } from "../../lib/chunks.js";
import { SLICE_BYTES } from "../../lib/slices.js";

/** A provider's body as a row of the typed protocols holds it. */
export type RowData =
  /** In `data`, as a Value. */
  | { readonly kind: "value"; readonly json: JsonValue; readonly isRounded: boolean }
  /** In `data`, as a string; `encoding` is `dataEncoding`. */
  | { readonly kind: "string"; readonly text: string; readonly encoding: StringEncoding }
  /** The same, too long to be one string: in UTF-8. */
  | { readonly kind: "utf8"; readonly bytes: Bytes; readonly encoding: StringEncoding }
  /** In `data`, as a string in base64: too many bytes to be encoded in one go. */
  | { readonly kind: "binary"; readonly bytes: Bytes }
  /** In `body`. */
  | { readonly kind: "body"; readonly bytes: Bytes };

type StringEncoding = "" | "base64" | "json";

/** Making messages of a larger JSON, and bytes of them, would hold the event loop for more than a moment. */
const MAX_VALUE_BYTES = 256 * 1024;
/** A JSON level is up to three messages of a Value, and many protobuf decoders stop at 100. */
const MAX_VALUE_DEPTH = 30;

/** A member of this name, also with its underscores escaped: objects made by assignment lose it. */
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

/** JSON as a Value; as its own text where a Value cannot hold it for every client, or would lose some of it. */
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

/** Members of the same name are one in an object. */
function memberCountOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null) return 0;
  const values = Array.isArray(json) ? json : Object.values(json);
  let count = Array.isArray(json) ? 0 : values.length;
  for (const value of values) if (typeof value === "object") count += memberCountOf(value);
  return count;
}

/** An escaped half of a pair of surrogates; protobuf holds no half without the other one. */
const SURROGATE = /\\ud[89a-f]/i;

function isWellFormed(json: JsonValue): boolean {
  if (typeof json === "string") return json.isWellFormed();
  if (typeof json !== "object" || json === null) return true;
  return Object.entries(json).every(([name, value]) => name.isWellFormed() && isWellFormed(value));
}

function fitsValue(bytes: Uint8Array, text: string): boolean {
  return validateJson(bytes, { maxDepth: MAX_VALUE_DEPTH }) === "valid" && !PROTO_KEY.test(text);
}

/** JSON.parse makes Infinity of a number beyond a double, which clients refuse in a Value. */
function fitsDouble(json: JsonValue): boolean {
  if (typeof json === "number") return Number.isFinite(json);
  return typeof json !== "object" || json === null || Object.values(json).every(fitsDouble);
}
