import { type DescField, type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.js";
import { descriptionOf, summaryOf } from "./comment.js";
import type { Schema } from "./schema.js";

/** Where a method stands in the document. */
export interface PlacedOperation {
  readonly path: string;
  readonly verb: "get" | "post" | "delete";
  readonly operation: Readonly<Record<string, unknown>>;
}

/** What the annotation alone does not say of a method. */
export interface OperationDetails {
  readonly tag: string;
  readonly responses: Readonly<Record<string, unknown>>;
  /** Without it the method's proof stands in the query alone. */
  readonly security: readonly object[];
  /** Of the body, where it is not the plain message or field that the annotation names. */
  readonly bodySchema?: Schema;
  readonly bodyExample?: unknown;
  /** In front of the method's own comment: what is special about it over plain HTTP. */
  readonly note?: string;
}

/** Nothing can be done without them; the public key may also stand in x-partner-key. */
const CALLER = new Set(["user_id", "public_key"]);

/** Whether a request must have the field: it names the caller, or its comment says so. */
export function isRequired(field: DescField): boolean {
  return CALLER.has(field.name) || /\bRequired\.$/.test(descriptionOf(field));
}

/** One method as its google.api.http annotation places it: path, query and body as src/api/rest/read-call.ts reads them. */
export function operationFromMethod(
  method: DescMethod,
  details: OperationDetails,
  schemaOf: (field: DescField) => Schema,
): PlacedOperation {
  const { pattern, body } = getOption(method, http);
  if (pattern.case !== "get" && pattern.case !== "post" && pattern.case !== "delete") {
    throw new Error(`${method.name}: ${pattern.case} is no route`);
  }
  const path = pattern.value;
  const inPath = method.input.fields.filter(({ name }) => path.includes(`{${name}}`));
  const inQuery = method.input.fields.filter((field) => body !== "*" && field.name !== body && !inPath.includes(field));
  const description = descriptionOf(method);
  return {
    path,
    verb: pattern.case,
    operation: {
      operationId: method.localName,
      tags: [details.tag],
      summary: summaryOf(description),
      description: [details.note, description].filter(Boolean).join("\n\n"),
      security: details.security,
      parameters: [
        ...inPath.map((field) => parameter(field, "path", schemaOf)),
        ...inQuery.map((field) => parameter(field, "query", schemaOf)),
      ],
      ...(body === "" ? {} : { requestBody: requestBody(method, body, details, schemaOf) }),
      responses: details.responses,
    },
  };
}

function parameter(field: DescField, place: "path" | "query", schemaOf: (field: DescField) => Schema): object {
  const { description, ...schema } = schemaOf(field);
  const required = place === "path" || isRequired(field);
  return { name: field.name, in: place, ...(required ? { required } : {}), description, schema };
}

function requestBody(
  method: DescMethod,
  body: string,
  { bodySchema, bodyExample }: OperationDetails,
  schemaOf: (field: DescField) => Schema,
): object {
  const field = method.input.fields.find(({ name }) => name === body);
  const plain = field === undefined ? { $ref: `#/components/schemas/${method.input.name}` } : schemaOf(field);
  const { description: _repeated, ...schema } = bodySchema ?? plain;
  const example = bodyExample === undefined ? {} : { example: bodyExample };
  return { required: true, content: { "application/json": { schema, ...example } } };
}
