import { join } from "node:path";
import {
  type CallOptions,
  type Client,
  type ClientUnaryCall,
  credentials,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** A client as proto-loader makes one: methods by name, messages as plain objects. */
export type DynamicClient = Client & {
  [method: string]: (
    message: object,
    metadata: Metadata,
    options: CallOptions,
    done: (error: ServiceError | null, answer: unknown) => void,
  ) => ClientUnaryCall;
};

/** A client of RelayService, from the .proto files of this repository. */
export function relayClient(url: string, options: object = {}): DynamicClient {
  return newClient(["relay", "v1", "RelayService"], "relay/v1/relay.proto", ["proto"], url, options);
}

/** A client of gRPC health, from the .proto file that gRPC publishes. */
export function healthClient(url: string): DynamicClient {
  return newClient(
    ["grpc", "health", "v1", "Health"],
    "health/v1/health.proto",
    ["node_modules/grpc-health-check/proto"],
    url,
  );
}

function newClient(name: string[], file: string, folders: string[], url: string, options: object = {}): DynamicClient {
  const includeDirs = folders.map((folder) => join(ROOT, folder));
  const definition = loadSync(file, { keepCase: true, longs: String, enums: String, includeDirs });
  const found = name.reduce<object>(
    (node, part) => Reflect.get(node, part) as object,
    loadPackageDefinition(definition),
  );
  const Service = found as ServiceClientConstructor;
  return new Service(new URL(url).host, credentials.createInsecure(), options) as unknown as DynamicClient;
}

/** One unary RPC; rejects with the status. */
export function invoke(
  client: DynamicClient,
  method: string,
  message: object,
  { metadata = {}, ...options }: CallOptions & { metadata?: Record<string, string> } = {},
): Promise<unknown> {
  const fields = new Metadata();
  for (const [name, value] of Object.entries(metadata)) fields.set(name, value);
  return new Promise((resolve, reject) => {
    client[method]?.(message, fields, options, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** One unary RPC with bytes in the place of a message. */
export function invokeRaw(client: Client, path: string, bytes: Buffer): Promise<unknown> {
  const same = (value: Buffer) => value;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, same, same, bytes, (error, answer) => (error ? reject(error) : resolve(answer)));
  });
}
