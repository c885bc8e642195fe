import { type DescMessage, type DescService, type FileRegistry, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.js";
import manifest from "../../package.json" with { type: "json" };
import { TABLE } from "../../src/config/setting-list.js";
import { DETAILS } from "./details.js";
import { HEALTH_ROUTES, HEALTH_TAG } from "./health.js";
import { isRequired, operationFromMethod } from "./operation.js";
import { PAGES_TAG, pagePaths } from "./pages.js";
import { REQUEST_ID, withRequestIds } from "./request-ids.js";
import { envelopeSchemas } from "./rows.js";
import { type Refer, referrerInto, type Schema, schemaFromField, schemaFromMessage } from "./schema.js";

const INFO = `Performs API calls at third-party OAuth providers on behalf of an application's users, with tokens that callers never see.

The same operations are methods of \`relay.v1.RelayService\` over Connect, gRPC and gRPC-Web on the same port. Scripts of web pages need their origin on the application's list. The administration port has a document of its own, openapi-admin.json.`;

const SECURITY_SCHEMES = {
  privateKeyBearer: {
    type: "http",
    scheme: "bearer",
    description: "The application's private key. From servers alone: never from a browser.",
  },
  partnerKey: {
    type: "apiKey",
    in: "header",
    name: "x-partner-key",
    description: "`PUBLIC_KEY.PRIVATE_KEY` of the application. From servers alone: never from a browser.",
  },
};

const HEADERS = {
  ...REQUEST_ID,
  "x-call-id": { description: "Id of this call; the relay's log line has the same.", schema: { type: "string" } },
  "x-error-type": {
    description: "The `errorType` of the error row in the body. An answer of a provider never has it.",
    schema: { $ref: "#/components/schemas/ErrorType" },
  },
};

const TAGS = [
  { name: "Calls", description: "One HTTP request at a provider, with a user's token." },
  { name: "Connections", description: "What a user has connected." },
  PAGES_TAG,
  HEALTH_TAG,
];

/** Their fields stand in the query and in the path. */
const NO_BODIES = ["CallRequest", "ListConnectionsRequest", "DeleteConnectionRequest"];

/** The OpenAPI 3.1 document of the public port's HTTP surfaces, from the schema with its annotations and comments. */
export function createDocument(schema: FileRegistry): object {
  const service = schema.getService("relay.v1.RelayService");
  const row = schema.getMessage("relay.v1.ResultRow");
  if (service === undefined || row === undefined) throw new Error("proto/ has no relay.v1.RelayService");
  const schemas = new Map<string, Schema>();
  const paths = pathsOf(service, schemas);
  for (const [name, each] of Object.entries(envelopeSchemas(row))) schemas.set(name, each);
  for (const name of NO_BODIES) schemas.delete(name);
  const license = { name: manifest.license, identifier: manifest.license };
  const { listen } = TABLE;
  return {
    openapi: "3.1.1",
    info: { title: "Provider call relay", version: manifest.version, description: INFO, license },
    servers: [{ url: `http://${listen.fallback}`, description: `The default of ${listen.name}.` }],
    tags: TAGS,
    paths: withRequestIds({ ...paths, ...pagePaths(), ...HEALTH_ROUTES }),
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** The routes of every annotated method; the messages that they need are added to `schemas`. */
function pathsOf(service: DescService, schemas: Map<string, Schema>): Record<string, Record<string, unknown>> {
  const refer = referrerInto(schemas, { nameOf: ({ name }) => name, messageSchema });
  const paths: Record<string, Record<string, unknown>> = {};
  for (const method of service.methods.filter((each) => hasOption(each, http))) {
    const details = DETAILS[method.name];
    if (details === undefined) throw new Error(`details.ts says nothing of ${method.name}`);
    refer(method.input);
    // What calls answer is narrower than their messages.
    if (details.tag !== "Calls") refer(method.output);
    const { path, verb, operation } = operationFromMethod(method, details, (field) => schemaFromField(field, refer));
    paths[path] = { ...paths[path], [verb]: operation };
  }
  return paths;
}

/** A request leaves out what it does not say, and may say nothing that is unknown. */
function messageSchema(message: DescMessage, refer: Refer): Schema {
  const schema = schemaFromMessage(message, refer);
  const isCall = message.name === "CallDescription";
  if (!isCall && !message.name.endsWith("Request")) return schema;
  const required = message.fields.filter(isRequired).map((field) => field.jsonName);
  const request = { ...schema, required, additionalProperties: false };
  return isCall ? lenientCall(request) : request;
}

/** src/api/rest/description.ts takes a little more than ProtoJSON: null for nothing, and plain values in headers. */
function lenientCall(schema: Schema): Schema {
  const properties = { ...(schema["properties"] as Record<string, Schema>) };
  for (const name of ["payload", "queryString"]) properties[name] = { ...properties[name], type: ["object", "null"] };
  const additionalProperties = { type: ["string", "number", "boolean"] };
  properties["headers"] = { ...properties["headers"], type: ["object", "null"], additionalProperties };
  return { ...schema, properties };
}
