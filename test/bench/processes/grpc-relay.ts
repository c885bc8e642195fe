import { join } from "node:path";
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceClientConstructor,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { Agent } from "undici";
import { announce } from "./serve.js";

/** The same relay as one would write it by hand on `@grpc/grpc-js`: no store, no checks, one row out. */
const ROOT = process.cwd();
const agent = new Agent({ connections: 200, pipelining: 1 });
const headers = { authorization: "Bearer bench-token-bench-token-bench-token", accept: "*/*" };

interface CallRequest {
  readonly call: { readonly url: string; readonly method: string };
  readonly response_mode: string;
}

const definition = loadSync("relay/v1/relay.proto", {
  keepCase: true,
  enums: String,
  includeDirs: [join(ROOT, "proto")],
});
// biome-ignore lint/suspicious/noExplicitAny: proto-loader's packages have no types of their own
const { service } = (loadPackageDefinition(definition) as any).relay.v1.RelayService as ServiceClientConstructor;

async function answer({ call, response_mode }: CallRequest): Promise<object> {
  const { origin, pathname, search } = new URL(call.url);
  const response = await agent.request({ origin, path: pathname + search, method: call.method as "GET", headers });
  const body = Buffer.from(await response.body.arrayBuffer());
  const row = {
    pinc_status: response.statusCode < 400 ? "success" : "error",
    status_code: response.statusCode,
    content_type: String(response.headers["content-type"]),
    headers: response.headers,
    call_id: crypto.randomUUID(),
  };
  const data = response_mode === "RESPONSE_MODE_BODY" ? { body } : { data: protoValueOf(JSON.parse(body.toString())) };
  return { rows: [{ ...row, ...data }] };
}

/** google.protobuf.Value as proto-loader takes it. */
function protoValueOf(json: unknown): object {
  if (json === null) return { nullValue: 0 };
  if (typeof json === "number") return { numberValue: json };
  if (typeof json === "string") return { stringValue: json };
  if (typeof json === "boolean") return { boolValue: json };
  if (Array.isArray(json)) return { listValue: { values: json.map(protoValueOf) } };
  const fields = Object.fromEntries(Object.entries(json as object).map(([name, value]) => [name, protoValueOf(value)]));
  return { structValue: { fields } };
}

const server = new Server();
server.addService(service, {
  call: ({ request }: ServerUnaryCall<CallRequest, object>, done: sendUnaryData<object>) => {
    answer(request).then(
      (response) => done(null, response),
      (error: Error) => done(error),
    );
  },
});
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  announce({ port, address: "127.0.0.1", family: "IPv4" });
});
