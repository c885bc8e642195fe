import type { ConnectRouter, ConnectRouterOptions, ContextValues } from "@connectrpc/connect";
import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { HttpRequest, HttpResponse } from "../listener/exchange.js";
import type { PathHandler } from "../listener/router.js";
import { type Budget, overloaded, type Reservation } from "../relay/budget.js";
import { answeredAsPreflight } from "./cors.js";

/** What the adapter needs besides the router's own options. */
export interface RpcAdapterOptions extends ConnectRouterOptions {
  readonly routes: (router: ConnectRouter) => void;
  readonly budget: Budget;
  readonly contextValues: (request: HttpRequest, memory: Reservation | undefined) => ContextValues;
  /** Whether any active application lists this browser origin. */
  readonly listsOrigin: (origin: string) => Promise<boolean>;
  /** Faults while a response is written. */
  readonly onFault: (where: string, error: unknown) => void;
}

/**
 * connect-node's own adapter, but for three things: it prints whole error objects to the console when a response
 * cannot be written (threats 6.3), its fallback cannot be asked whether a path is an RPC's, and it knows no CORS.
 */
export function createRpcAdapter(options: RpcAdapterOptions): PathHandler {
  const router = createConnectRouter({ ...options, acceptCompression: [compressionGzip, compressionBrotli] });
  options.routes(router);
  const handlers = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response, path) => {
    const handler = handlers.get(path);
    return handler === undefined ? undefined : answer(options, handler, request, response);
  };
}

async function answer(
  options: RpcAdapterOptions,
  handler: UniversalHandler,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  try {
    if (await answeredAsPreflight(options.listsOrigin, request, response)) return;
    const memory = options.budget.open();
    if (memory !== undefined) response.on("close", memory.release);
    const values = options.contextValues(request, memory);
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    const body = counted(universal.body as AsyncIterable<Uint8Array>, memory);
    await universalResponseToNodeResponse(await handler({ ...universal, body }), response);
  } catch (error) {
    if (!isCallerGone(error, response)) options.onFault("rpc", error);
    response.destroy();
  }
}

/** The body of a request, refused when the memory budget has no room for it. */
async function* counted(body: AsyncIterable<Uint8Array>, memory: Reservation | undefined): AsyncIterable<Uint8Array> {
  for await (const chunk of body) {
    if (memory?.reserve(chunk.length) === false) throw new ConnectError(overloaded().message, Code.ResourceExhausted);
    yield chunk;
  }
}

function isCallerGone(error: unknown, response: HttpResponse): boolean {
  return response.destroyed || ConnectError.from(error).code === Code.Aborted;
}
