import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  Health,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../../gen/health/v1/health_pb.js";
import {
  type CallStreamResponse,
  CallStreamResponseSchema,
  ErrorDetailSchema,
  RelayService,
} from "../../../gen/relay/v1/relay_pb.js";
import type { CallerFields } from "../../applications/caller.js";
import type { Call } from "../../call/call.js";
import type { ErrorOutcome } from "../../call/outcome.js";
import type { StreamPart } from "../../call/relay.js";
import { textFromField } from "../../call/text.js";
import type { Readiness } from "../../http/dispatch.js";
import type { HttpRequest } from "../../http/exchange.js";
import { overloaded, type Reason, RelayError } from "../../model/errors.js";
import { createRpcAdapter, type RpcAdapterOptions, type RpcHandler } from "./adapter.js";
import type { ConnectionOperations } from "./connection-operations.js";
import { MAX_TIMEOUT_MS } from "./one-message.js";
import { createReflectionService } from "./reflection.js";
import {
  callContextFrom,
  callFrom,
  originOf,
  performCall,
  type RelayServiceOptions,
  requestContextKey,
  requestContextOf,
} from "./relay-service.js";
import { JSON_OPTIONS, responseFromOutcome, rowFromOutcome } from "./row.js";

/**
 * Health and reflection take only names. The limit is small because connect scans all chunks of an unfinished message
 * again for each new chunk, and a stream of messages cannot be joined into blocks first.
 */
const NAMES_ONLY = { readMaxBytes: 4096 };

/** Compressing a download costs more than the rest of the relay, and most large bodies are compressed already. */
const NEVER_COMPRESSED = { compressMinBytes: Number.POSITIVE_INFINITY };

/** What the typed protocols need from the rest of the service. */
interface RpcOptions extends RelayServiceOptions, Pick<RpcAdapterOptions, "budget" | "listsOrigin" | "onFault"> {
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
        // Every outcome is a row with RPC code OK.
        call: async (request, context) =>
          responseFromOutcome((await performCall(options, request, callContextFrom(context))).outcome),
        ...createConnectionService(options.connections, options.onFault),
        callStream: createCallStream(options),
      });
      // Registered again, the only way to set an option for one method: the last registration counts.
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
    contextValues: (request, address, memory, signal) =>
      createContextValues().set(requestContextKey, {
        ...requestContextOf(request, address, memory),
        signal,
      }),
    listsOrigin: options.listsOrigin,
    onFault: options.onFault,
    readMaxBytes: options.maxRequestBytes,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    jsonOptions: JSON_OPTIONS,
  });
}

/** `CallStream` of relay.v1.RelayService: message → relay → stream of messages. The RPC code is always OK. */
function createCallStream(options: RelayServiceOptions): ServiceImpl<typeof RelayService>["callStream"] {
  return async function* callStream(request, handlerContext) {
    const context = callContextFrom(handlerContext);
    const origin = originOf(request, context);
    let call: Call;
    try {
      call = callFrom(options, origin, request, context);
    } catch (error) {
      yield messageFromFailure(options.relay.refuse(origin, error));
      return;
    }
    for await (const part of await options.relay.stream(call)) {
      yield messageFromPart(call, part);
      if (part.kind === "head" && part.whole?.length) yield messageFromPart(call, { kind: "chunk", bytes: part.whole });
    }
  };
}

function messageFromPart({ callId }: Call, part: StreamPart): CallStreamResponse {
  switch (part.kind) {
    case "head": {
      const { statusCode, contentType, headers, isPossiblyTruncated: possiblyTruncated = false } = part.head;
      const texts = headers.map(([name, value]) => [name, textFromField(value)]);
      const value = { statusCode, contentType, headers: Object.fromEntries(texts), callId, possiblyTruncated };
      return create(CallStreamResponseSchema, { part: { case: "head", value } });
    }
    case "chunk":
      return create(CallStreamResponseSchema, { part: { case: "chunk", value: part.bytes } });
    case "failure":
      return messageFromFailure(part.outcome);
  }
}

function messageFromFailure(outcome: ErrorOutcome): CallStreamResponse {
  return create(CallStreamResponseSchema, { part: { case: "row", value: rowFromOutcome(outcome) } });
}

/** RPC code of each reason that these methods fail with; any other reason is an internal error. */
const CODES: Partial<Record<Reason, Code>> = {
  CALL_FORMAT_ERROR: Code.InvalidArgument,
  INVALID_PUBLIC_KEY: Code.Unauthenticated,
  CALLER_NOT_ALLOWED: Code.PermissionDenied,
  CALL_NOT_PERMITTED: Code.PermissionDenied,
  INVALID_PROVIDER: Code.NotFound,
  INVALID_OAUTHID: Code.NotFound,
  PROVIDER_MISCONFIGURED: Code.FailedPrecondition,
  STORE_UNAVAILABLE: Code.Unavailable,
  OVERLOADED: Code.ResourceExhausted,
};

/** The connection methods of relay.v1.RelayService; refusals are RPC errors with an ErrorDetail. */
function createConnectionService(
  operations: ConnectionOperations,
  onFault: (where: string, error: unknown) => void,
): Omit<ServiceImpl<typeof RelayService>, "call" | "callStream"> {
  const answer = async <Response>(context: HandlerContext, operate: (caller: CallerFields) => Promise<Response>) => {
    try {
      const { caller, memory } = context.values.get(requestContextKey);
      if (memory === undefined || !memory.begin()) throw overloaded();
      return await operate(caller);
    } catch (error) {
      throw connectErrorFrom(error, onFault);
    }
  };
  return {
    listConnections: (request, context) => answer(context, (caller) => operations.listConnections(request, caller)),
    deleteConnection: (request, context) => answer(context, (caller) => operations.deleteConnection(request, caller)),
    createConnectLink: (request, context) => answer(context, (caller) => operations.createConnectLink(request, caller)),
  };
}

function connectErrorFrom(error: unknown, onFault: (where: string, error: unknown) => void): ConnectError {
  const code = error instanceof RelayError ? CODES[error.reason] : undefined;
  if (!(error instanceof RelayError) || code === undefined) {
    onFault("rpc", error);
    return new ConnectError("internal error", Code.Internal);
  }
  const detail = { desc: ErrorDetailSchema, value: { errorType: error.reason } };
  return new ConnectError(error.message, code, undefined, [detail]);
}

/** gRPC health (grpc.health.v1) for the whole server (``) and for each named service; all share one readiness. */
function createHealthService(services: readonly string[], readiness: Readiness): ServiceImpl<typeof Health> {
  const known = new Set(["", ...services]);
  const current = async () =>
    create(HealthCheckResponseSchema, {
      status: (await readiness.problem()) === undefined ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
    });
  return {
    check(request) {
      if (!known.has(request.service)) throw new ConnectError("unknown service", Code.NotFound);
      return current();
    },
    async list() {
      const status = await current();
      return create(HealthListResponseSchema, {
        statuses: Object.fromEntries([...known].map((name) => [name, status])),
      });
    },
    async *watch(request, context) {
      if (!known.has(request.service)) {
        yield create(HealthCheckResponseSchema, { status: ServingStatus.SERVICE_UNKNOWN });
        await readiness.stopped(context.signal);
        return;
      }
      yield await current();
      await readiness.stopped(context.signal);
      if (!context.signal.aborted) yield create(HealthCheckResponseSchema, { status: ServingStatus.NOT_SERVING });
    },
  };
}
