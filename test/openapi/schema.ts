import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { descriptionOf } from "./comment.js";

/** A JSON Schema (dialect 2020-12, as OpenAPI 3.1 has it). */
export type Schema = Readonly<Record<string, unknown>>;

const INTEGERS: ReadonlySet<ScalarType> = new Set([ScalarType.INT32, ScalarType.UINT32, ScalarType.SINT32]);

/** Schemas of google.protobuf's own messages in ProtoJSON. */
const WELL_KNOWN: ReadonlyMap<string, Schema> = new Map([
  ["google.protobuf.Struct", { type: "object" }],
  ["google.protobuf.Value", {}],
  ["google.protobuf.Timestamp", { type: "string", format: "date-time" }],
  ["google.protobuf.Duration", { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" }],
  [
    "google.protobuf.FieldMask",
    { type: "string", description: "Names of fields in lowerCamelCase, separated by `,`." },
  ],
  ["google.protobuf.Empty", { type: "object", maxProperties: 0 }],
]);

/** Answers with a reference to the schema of a message or an enum. */
export type Refer = (desc: DescMessage | DescEnum) => Schema;

/** How a document has the messages and enums that it refers to. */
export interface Naming {
  nameOf(desc: DescMessage | DescEnum): string;
  messageSchema(message: DescMessage, refer: Refer): Schema;
}

/** References to components; each is added to `schemas` when it is first referred to. */
export function referrerInto(schemas: Map<string, Schema>, { nameOf, messageSchema }: Naming): Refer {
  const refer: Refer = (desc) => {
    const known = WELL_KNOWN.get(desc.typeName);
    if (known !== undefined) return known;
    const name = nameOf(desc);
    if (!schemas.has(name)) {
      // Before its own schema is made, which may refer to itself.
      schemas.set(name, {});
      schemas.set(name, desc.kind === "enum" ? schemaFromEnum(desc) : messageSchema(desc, refer));
    }
    return { $ref: `#/components/schemas/${name}` };
  };
  return refer;
}

/**
 * The schema of a message in ProtoJSON, as the routes write it: fields without presence are always there. Messages that
 * it refers to are given to `refer`, which answers with a reference.
 */
export function schemaFromMessage(message: DescMessage, refer: Refer): Schema {
  const properties = message.fields.map((field) => [field.jsonName, schemaFromField(field, refer)] as const);
  const required = message.fields.filter(isAlwaysWritten).map((field) => field.jsonName);
  return {
    type: "object",
    description: descriptionOf(message),
    properties: Object.fromEntries(properties),
    ...(required.length === 0 ? {} : { required }),
  };
}

/** The schema of one field with its comment. */
export function schemaFromField(field: DescField, refer: Refer): Schema {
  return { description: descriptionOf(field), ...typeOf(field, refer) };
}

/** The names of an enum's values. */
function schemaFromEnum(desc: DescEnum): Schema {
  const values = desc.values.map((value) => `- \`${value.name}\`: ${descriptionOf(value)}`);
  const description = `${descriptionOf(desc)}\n\n${values.join("\n")}`;
  return { type: "string", description, enum: desc.values.map(({ name }) => name) };
}

function typeOf(field: DescField, refer: Refer): Schema {
  switch (field.fieldKind) {
    case "scalar":
      return scalarSchema(field.scalar);
    case "enum":
      return refer(field.enum);
    case "message":
      return messageReference(field.message, refer);
    case "list":
      return { type: "array", items: elementSchema(field, refer) };
    case "map":
      return { type: "object", additionalProperties: elementSchema(field, refer) };
  }
}

function elementSchema(field: DescField & { fieldKind: "list" | "map" }, refer: Refer): Schema {
  if (field.message !== undefined) return messageReference(field.message, refer);
  return field.enum !== undefined ? refer(field.enum) : scalarSchema(field.scalar ?? ScalarType.STRING);
}

function messageReference(message: DescMessage, refer: Refer): Schema {
  return WELL_KNOWN.get(message.typeName) ?? refer(message);
}

function scalarSchema(scalar: ScalarType): Schema {
  if (scalar === ScalarType.STRING) return { type: "string" };
  if (scalar === ScalarType.BOOL) return { type: "boolean" };
  if (scalar === ScalarType.BYTES) return { type: "string", contentEncoding: "base64" };
  if (scalar === ScalarType.INT64) return { type: "string", format: "int64" };
  if (INTEGERS.has(scalar)) return { type: "integer", format: "int32" };
  throw new Error(`no schema for the scalar ${ScalarType[scalar]} yet`);
}

function isAlwaysWritten(field: DescField): boolean {
  if (field.fieldKind === "list" || field.fieldKind === "map") return true;
  return field.presence === FeatureSet_FieldPresence.IMPLICIT;
}
