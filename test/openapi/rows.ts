import type { DescMessage } from "@bufbuild/protobuf";
import { REASONS } from "../../src/model/errors.js";
import { descriptionOf } from "./comment.js";
import { type Schema, schemaFromField } from "./schema.js";

/** What the JSON route never writes: it is exact, so nothing is rounded. */
const NOT_ON_THE_ROUTE = new Set(["dataRounded"]);
/** Members of a row that no provider's answer stands behind. */
const WITHOUT_ANSWER = ["pincStatus", "statusCode", "errorType", "inernalError", "callId"];

/**
 * The envelope of the JSON route (src/api/rest/envelope.ts), which is narrower than the message's ProtoJSON: exactly one row,
 * members only where they mean something.
 */
export function envelopeSchemas(row: DescMessage): Readonly<Record<string, Schema>> {
  const fields = fieldSchemas(row);
  return {
    CallResponse: envelope("The envelope of a call: exactly one row.", {
      oneOf: [reference("SuccessRow"), reference("ErrorRow")],
      discriminator: {
        propertyName: "pincStatus",
        mapping: { success: "#/components/schemas/SuccessRow", error: "#/components/schemas/ErrorRow" },
      },
    }),
    ErrorResponse: envelope("The envelope of what failed: exactly one error row.", reference("ErrorRow")),
    SuccessRow: successRow(row, fields),
    ErrorRow: errorRow(fields),
    ErrorType: {
      type: "string",
      description: fields["errorType"]?.["description"],
      enum: [...Object.keys(REASONS), "API_ERROR"].sort(),
    },
  };
}

function fieldSchemas(row: DescMessage): Record<string, Schema> {
  const fields = row.fields.filter(({ jsonName }) => !NOT_ON_THE_ROUTE.has(jsonName));
  return Object.fromEntries(
    fields.map((field) => [field.jsonName, schemaFromField(field, ({ typeName }) => reference(typeName))]),
  );
}

function successRow(row: DescMessage, { errorType: _type, inernalError: _text, ...fields }: Record<string, Schema>) {
  const properties = {
    ...fields,
    pincStatus: { ...fields["pincStatus"], const: "success" },
    statusCode: { ...fields["statusCode"], minimum: 200, maximum: 399 },
  };
  const required = ["pincStatus", "statusCode", "contentType", "headers", "callId"];
  return { type: "object", description: descriptionOf(row), properties, required, additionalProperties: false };
}

function errorRow(fields: Record<string, Schema>): Schema {
  const properties = {
    ...fields,
    pincStatus: { ...fields["pincStatus"], const: "error" },
    statusCode: { ...fields["statusCode"], minimum: 400, maximum: 599 },
    errorType: reference("ErrorType"),
  };
  return {
    type: "object",
    description: "What failed, and what to do. `contentType`, `data` and `headers` are there when a provider answered.",
    properties,
    required: WITHOUT_ANSWER,
    additionalProperties: false,
  };
}

function envelope(description: string, items: Schema): Schema {
  const rows = { type: "array", minItems: 1, maxItems: 1, items };
  return { type: "object", description, properties: { rows }, required: ["rows"], additionalProperties: false };
}

function reference(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}
