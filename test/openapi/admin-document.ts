import type { FileRegistry } from "@bufbuild/protobuf";
import manifest from "../../package.json" with { type: "json" };
import { ADMIN_SERVICES } from "../../src/admin/rpc-handler.js";
import { METRICS_PATH } from "../../src/app/admin-port.js";
import { SETTINGS } from "../../src/config/setting-list.js";
import { CONNECT_ERROR, operationOf, pathOf, UNAUTHENTICATED } from "./admin-operation.js";
import { descriptionOf } from "./comment.js";
import { HEALTH_ROUTES, HEALTH_TAG } from "./health.js";
import { REQUEST_ID, withRequestIds } from "./request-ids.js";
import type { Schema } from "./schema.js";

const INFO = `What operators do with the relay: applications, their OAuth clients, connections and webhooks, and what became of calls.

These are the methods of \`relay.admin.v1\` as the [Connect protocol](https://connectrpc.com/docs/protocol) has them with JSON; gRPC and gRPC-Web are on the same port. Fields that are empty are left out of answers. Every request carries an admin token; its role decides which methods it may call.`;

const METRICS_TAG = { name: "Metrics", description: "For Prometheus and what reads its format." };

const METRICS = {
  get: {
    operationId: "metrics",
    tags: [METRICS_TAG.name],
    summary: "Metrics of all processes in Prometheus' text format, for any admin token",
    responses: {
      "200": { description: "The metrics.", content: { "text/plain": { schema: { type: "string" } } } },
      "401": UNAUTHENTICATED,
      "503": { description: "The metrics of the other processes are not available right now." },
    },
  },
};

/** The OpenAPI 3.1 document of the administration port: its services' methods, metrics and health. */
export function createAdminDocument(schema: FileRegistry): object {
  const schemas = new Map<string, Schema>([["ConnectError", CONNECT_ERROR]]);
  const services = ADMIN_SERVICES.map(({ typeName }) => {
    const service = schema.getService(typeName);
    if (service === undefined) throw new Error(`proto/ has no ${typeName}`);
    return service;
  });
  const methods = services.flatMap((service) => service.methods);
  const paths = Object.fromEntries(methods.map((method) => [pathOf(method), { post: operationOf(method, schemas) }]));
  const listen = SETTINGS.find(({ name }) => name === "RELAY_ADMIN_LISTEN");
  return {
    openapi: "3.1.1",
    info: {
      title: "Provider call relay: administration",
      version: manifest.version,
      description: INFO,
      license: { name: manifest.license, identifier: manifest.license },
    },
    servers: [{ url: `http://${listen?.fallback}`, description: `The default of ${listen?.name}.` }],
    tags: [
      ...services.map((service) => ({ name: service.name, description: descriptionOf(service) })),
      METRICS_TAG,
      HEALTH_TAG,
    ],
    security: [{ adminToken: [] }],
    paths: withRequestIds({ ...paths, [METRICS_PATH]: METRICS, ...HEALTH_ROUTES }),
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      headers: REQUEST_ID,
      securitySchemes: {
        adminToken: {
          type: "http",
          scheme: "bearer",
          description: "The last word of a line of RELAY_ADMIN_TOKEN_FILE.",
        },
      },
    },
  };
}
