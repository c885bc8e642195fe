import { ServerResponse } from "node:http";
import type { ConnectRouter, ConnectRouterOptions, ContextValues } from "@connectrpc/connect";
import { Code, ConnectError, createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
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
import { withDecodeError } from "./invalid-argument.js";
import { createRequestBody, type RequestBody } from "./request-body.js";

/** How far beyond the limit a body is still read and thrown away, so that the caller gets to see the answer. */
const DRAIN_FACTOR = 4;

/** What the adapter needs besides the router's own options. */
export interface RpcAdapterOptions extends ConnectRouterOptions {
  /** Largest request message in bytes, after decompression. */
  readonly readMaxBytes: number;
  readonly routes: (router: ConnectRouter) => void;
  readonly budget: Budget;
  readonly contextValues: (request: HttpRequest, memory: Reservation | undefined) => ContextValues;
  /** Whether any active application lists this browser origin. */
  readonly listsOrigin: (origin: string) => Promise<boolean>;
  /** Faults while a response is written. */
  readonly onFault: (where: string, error: unknown) => void;
}

/**
 * connect-node's own adapter, but for what it does not do: it prints whole error objects to the console when a response
 * cannot be written (threats 6.3), its fallback cannot be asked whether a path is an RPC's, it knows no CORS, names no
 * methods with a 405 (RFC 9110 section 15.5.6), quotes requests in errors, and leaves unread bodies on connections.
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
    const body = createRequestBody(request);
    const universal = await handler({
      ...universalRequestFromNodeRequest(request, response, undefined, values),
      body: counted(body, memory),
    });
    await settleRequest(options, request, response, body);
    await universalResponseToNodeResponse(await withDecodeError(withAllow(universal, handler)), response);
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

/** On HTTP/1.1 the rest of a request stands before the next one; HTTP/2 has a stream for each. */
async function settleRequest(
  { readMaxBytes }: RpcAdapterOptions,
  request: HttpRequest,
  response: HttpResponse,
  body: RequestBody,
): Promise<void> {
  if (request.complete || !(response instanceof ServerResponse)) return;
  await body.drain(readMaxBytes * DRAIN_FACTOR);
  response.shouldKeepAlive &&= request.complete;
}

/** RFC 9110 section 15.5.6: a 405 names the methods that are allowed. */
function withAllow(universal: UniversalServerResponse, { allowedMethods }: UniversalHandler): UniversalServerResponse {
  if (universal.status !== 405) return universal;
  return { ...universal, header: new Headers({ allow: allowedMethods.join(", ") }) };
}

function isCallerGone(error: unknown, response: HttpResponse): boolean {
  return response.destroyed || ConnectError.from(error).code === Code.Aborted;
}
