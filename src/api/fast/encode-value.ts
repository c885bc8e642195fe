import type { JsonValue } from "@bufbuild/protobuf";
import { ListValueSchema, StructSchema, ValueSchema } from "@bufbuild/protobuf/wkt";
import { double, lengthDelimited, tagOf, utf8, type WireText } from "./wire-text.js";

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
/** An entry of a map is a message of two fields, whatever the map. */
const KEY = tagOf({ number: 1 }, "lengthDelimited");
const ENTRY_VALUE = tagOf({ number: 2 }, "lengthDelimited");

/**
 * JSON as a google.protobuf.Value on the wire; protobuf-es makes the same bytes of it in twenty times as long, by way of
 * a message for each number. Calls itself once a level: not for JSON whose depth nobody has bounded.
 */
export function encodeValue(json: JsonValue): WireText {
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
