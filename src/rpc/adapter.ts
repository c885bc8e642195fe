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
import { answeredAsPreflight } from "./cors.js";

/** What the adapter needs besides the router's own options. */
export interface RpcAdapterOptions extends ConnectRouterOptions {
  readonly routes: (router: ConnectRouter) => void;
  readonly contextValues: (request: HttpRequest) => ContextValues;
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
    const values = options.contextValues(request);
    const universal = await handler(universalRequestFromNodeRequest(request, response, undefined, values));
    await universalResponseToNodeResponse(universal, response);
  } catch (error) {
    if (!isCallerGone(error, response)) options.onFault("rpc", error);
    response.destroy();
  }
}

function isCallerGone(error: unknown, response: HttpResponse): boolean {
  return response.destroyed || ConnectError.from(error).code === Code.Aborted;
}
