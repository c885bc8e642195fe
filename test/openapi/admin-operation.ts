import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { mayCall } from "../../src/admin/roles.js";
import { ADMIN_SERVICES } from "../../src/admin/rpc-handler.js";
import { descriptionOf, summaryOf } from "./comment.js";
import { type Naming, type Refer, referrerInto, type Schema, schemaFromMessage } from "./schema.js";

/** Messages that methods take; others stand in answers, too. */
const INPUTS = new Set(ADMIN_SERVICES.flatMap(({ methods }) => methods.map(({ input }) => input.typeName)));

const NAMING: Naming = { nameOf: ({ typeName }) => typeName.replace(/^relay\.(?:admin\.)?v1\./, ""), messageSchema };

/** The answer to a request without a good token. */
export const UNAUTHENTICATED = {
  description: "No admin token, or none that is on file.",
  headers: { "www-authenticate": { required: true, schema: { type: "string" } } },
};
/** Schema `ConnectError`, to which every method refers. */
export const CONNECT_ERROR: Schema = {
  type: "object",
  description: "An error of the Connect protocol, with the HTTP status of its code.",
  properties: {
    code: { type: "string", description: "Such as `invalid_argument`, `not_found`, `permission_denied`, `aborted`." },
    message: { type: "string", description: "What happened and what to do, for a human." },
    details: {
      type: "array",
      description: "An ErrorDetail of relay.admin.v1 names the field at fault.",
      items: {
        type: "object",
        properties: { type: { type: "string" }, value: { type: "string", contentEncoding: "base64" }, debug: {} },
        required: ["type", "value"],
      },
    },
  },
  required: ["code"],
};

const STREAM =
  "\n\nEach message, of the request as well, stands in an envelope of the Connect protocol: a byte of flags, four of its length, then the JSON that the schema describes. The last one has flag 2 and holds the error, if there is one.";

/** Where the Connect protocol has a method. */
export function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

/** One method over Connect with JSON; the messages that it needs are added to `schemas`. */
export function operationOf(method: DescMethod, schemas: Map<string, Schema>): object {
  const refer = referrerInto(schemas, NAMING);
  const description = descriptionOf(method);
  const role = mayCall("read-only", method) ? "Any admin token may call it." : "For tokens with the role operator.";
  const [input, output] = [refer(method.input), refer(method.output)];
  return {
    operationId: `${method.parent.name}.${method.name}`,
    tags: [method.parent.name],
    summary: summaryOf(description),
    description: `${description}\n\n${role}${isStream(method) ? STREAM : ""}`,
    requestBody: { required: true, content: contentOf(method, input) },
    responses: {
      "200": { description: isStream(method) ? "Messages as they come." : "Done.", content: contentOf(method, output) },
      ...(isStream(method) ? {} : { default: errorOf() }),
      "401": { ...UNAUTHENTICATED, content: json({ $ref: "#/components/schemas/ConnectError" }) },
    },
  };
}

function isStream({ methodKind }: DescMethod): boolean {
  return methodKind !== "unary";
}

function contentOf(method: DescMethod, schema: Schema): object {
  return isStream(method) ? { "application/connect+json": { schema } } : json(schema);
}

function errorOf(): object {
  return { description: "It failed, or was refused.", content: json({ $ref: "#/components/schemas/ConnectError" }) };
}

function json(schema: Schema): object {
  return { "application/json": { schema } };
}

/** What is empty is left out by either side; a request says nothing that is unknown. */
function messageSchema(message: DescMessage, refer: Refer): Schema {
  const { required: _always, ...schema } = schemaFromMessage(message, refer);
  if (!INPUTS.has(message.typeName)) return schema;
  const required = message.fields.filter((field) => /\bRequired\.$/.test(descriptionOf(field)));
  return {
    ...schema,
    ...(required.length > 0 ? { required: required.map(({ jsonName }) => jsonName) } : {}),
    additionalProperties: false,
  };
}
