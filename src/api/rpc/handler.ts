import { createContextValues } from "@connectrpc/connect";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../../gen/health/v1/health_pb.js";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import type { HttpRequest } from "../../http/exchange.js";
import type { Readiness } from "../../http/readiness.js";
import { createRpcAdapter, type RpcAdapterOptions, type RpcHandler } from "./adapter.js";
import { createCallStream } from "./call-stream.js";
import type { ConnectionOperations } from "./connection-operations.js";
import { createConnectionService } from "./connection-service.js";
import { createHealthService } from "./health.js";
import { JSON_OPTIONS } from "./json-options.js";
import { createReflectionService } from "./reflection.js";
import { createRelayService, type RelayServiceOptions } from "./relay-service.js";
import { requestContextKey, requestContextOf } from "./request-context.js";
import { MAX_TIMEOUT_MS } from "./timeout.js";

/**
 * Health and reflection take names. Small, because connect looks at all chunks of an unfinished message again for each
 * chunk that comes, and a stream of messages cannot be read in blocks.
 */
const NAMES_ONLY = { readMaxBytes: 4096 };

/** Compressing a download costs more than all the rest of the relay, and most of what is large is compressed already. */
const NEVER_COMPRESSED = { compressMinBytes: Number.POSITIVE_INFINITY };

/** What the typed protocols need from the rest of the service. */
export interface RpcOptions extends RelayServiceOptions, Pick<RpcAdapterOptions, "budget" | "listsOrigin" | "onFault"> {
  readonly readiness: Readiness;
  readonly connections: ConnectionOperations;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Largest request message, after decompression. */
  readonly maxRequestBytes: number;
}

/** Connect, gRPC and gRPC-Web for RelayService, health and reflection. */
export function createRpcHandler(options: RpcOptions): RpcHandler {
  const services = [RelayService, Health, ServerReflection];
  return createRpcAdapter({
    routes: (router) => {
      router.service(RelayService, {
        ...createRelayService(options),
        ...createConnectionService(options.connections, options.onFault),
        callStream: createCallStream(options),
      });
      // Again, since an option of one method can be given in no other way: the method that comes last counts.
      router.rpc(RelayService.method.callStream, createCallStream(options), NEVER_COMPRESSED);
      router.service(
        Health,
        createHealthService(
          services.map(({ typeName }) => typeName),
          options.readiness,
        ),
        NAMES_ONLY,
      );
      router.service(ServerReflection, createReflectionService(services), NAMES_ONLY);
    },
    budget: options.budget,
    clientAddress: options.clientAddress,
    contextValues: (request, memory) =>
      createContextValues().set(requestContextKey, requestContextOf(request, options.clientAddress, memory)),
    listsOrigin: options.listsOrigin,
    onFault: options.onFault,
    readMaxBytes: options.maxRequestBytes,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    jsonOptions: JSON_OPTIONS,
  });
}
