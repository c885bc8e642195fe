import { ServerResponse } from "node:http";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type ContextValues,
  cors,
  createConnectRouter,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  compressionBrotli,
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { RelayService } from "../../../gen/relay/v1/relay_pb.js";
import type { Budget, Reservation } from "../../call/budget.js";
import { isUtf8Charset, parseMediaType } from "../../call/text.js";
import { answerOriginPreflight, corsFieldsIfListed, type ListsOrigin } from "../../http/cors.js";
import {
  clientNetworkOf,
  DRAIN_FACTOR,
  type HttpRequest,
  type HttpResponse,
  watchCaller,
} from "../../http/exchange.js";
import { slicesOf } from "../../lib/chunks.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { overloaded } from "../../model/errors.js";
import { withDecodeError } from "./errors.js";
import { type BinaryParts, createBinaryParts } from "./message-parts.js";
import { describeAsPlain, inOnePiece, type MessageOptions, messageFormFrom, shortenTimeout } from "./one-message.js";

/** What requests may be compressed with. */
const COMPRESSIONS = [compressionGzip, compressionBrotli];

/** What the adapter needs besides the router's own options. */
export interface RpcAdapterOptions extends ConnectRouterOptions {
  /** Largest request message in bytes, after decompression. */
  readonly readMaxBytes: number;
  readonly routes: (router: ConnectRouter) => void;
  readonly budget: Budget;
  readonly contextValues: (
    request: HttpRequest,
    clientAddress: string,
    memory: Reservation,
    signal: CallerSignal,
  ) => ContextValues;
  readonly listsOrigin: ListsOrigin;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Faults while a response is written. */
  readonly onFault: (where: string, error: unknown) => void;
}

/**
 * Answers requests to its paths, as a PathHandler does. `readAhead` is the part of the body that was read already,
 * which may be all of it.
 */
export type RpcHandler = (
  request: HttpRequest,
  response: HttpResponse,
  path: string,
  readAhead?: Uint8Array,
) => Promise<void> | undefined;

/**
 * Replaces connect-node's own adapter, which prints whole error objects to the console when a response cannot be
 * written (threats 6.3), cannot tell whether a path belongs to an RPC, has no CORS, lists no methods with a 405
 * (RFC 9110 section 15.5.6), quotes requests in errors, and leaves unread bodies on connections.
 */
export function createRpcAdapter(options: RpcAdapterOptions): RpcHandler {
  const router = createConnectRouter({ ...options, acceptCompression: COMPRESSIONS });
  options.routes(router);
  const methods = new Map<string, Method>(router.handlers.map((handler) => [handler.requestPath, methodOf(handler)]));
  return (request, response, path, readAhead) => {
    const method = methods.get(path);
    return method === undefined ? undefined : answer(options, method, request, response, readAhead);
  };
}

/** A served method. */
interface Method {
  readonly handler: UniversalHandler;
  /** Counter for its request message; undefined when it takes a stream of messages. */
  readonly parts: BinaryParts | undefined;
}

function methodOf(handler: UniversalHandler): Method {
  return { handler, parts: takesOneMessage(handler) ? createBinaryParts(handler.method.input) : undefined };
}

async function answer(
  options: RpcAdapterOptions,
  { handler, parts }: Method,
  request: HttpRequest,
  response: HttpResponse,
  readAhead: Uint8Array | undefined,
): Promise<void> {
  const address = options.clientAddress(request);
  const memory = options.budget.open(clientNetworkOf(address));
  const signal = watchCaller(response, memory);
  // connect-node waits for 'drain' before it writes on; over HTTP/2 nothing else tells it that the caller is gone.
  response.on("close", () => response.emit("drain"));
  // Watch of the health service and reflection are long-lived, and hold hardly any memory.
  if (parts === undefined) memory.release();
  try {
    if (request.headers.origin !== undefined) {
      // Browsers that use Connect or gRPC-Web. A preflight names no application: the public key is in the message.
      if (request.method === "OPTIONS") return await answerOriginPreflight(options, request, response, ALLOWED);
      await allowPage(options, request, response);
    }
    const values = options.contextValues(request, address, memory, signal);
    const body = createRequestBody(request, readAhead);
    const asked = universalRequestFromNodeRequest(request, response, undefined, values);
    shortenTimeout(asked.header);
    leaveUtf8Out(asked.header);
    const message = parts && messageFrom(options, parts, asked.header);
    // A stream of messages is passed through.
    const universal = await handler({
      ...asked,
      body: message ? inOnePiece(counted(body, memory, signal, response), message) : body,
    });
    await settleRequest(options, handler, request, body);
    const answered = await withDecodeError(withAllow(universal, handler));
    await universalResponseToNodeResponse(isUnary(handler) ? inSlices(answered) : answered, response);
  } catch (error) {
    if (!isCallerGone(error, response)) options.onFault("rpc", error);
    response.destroy();
  }
}

/** Removes a UTF-8 charset, the only one allowed: connect accepts few of its spellings (RFC 9110 section 5.6.6). */
function leaveUtf8Out(header: Headers): void {
  const { essence, charset } = parseMediaType(header.get("content-type") ?? "");
  if (charset !== undefined && isUtf8Charset(charset)) header.set("content-type", essence);
}

/** Whether a method takes one request message; it may answer with many. */
function takesOneMessage(handler: UniversalHandler): boolean {
  return isUnary(handler) || handler.service.typeName === RelayService.typeName;
}

/** @param header fields of the request; changed in place to describe the body that connect is going to read. */
function messageFrom({ readMaxBytes }: RpcAdapterOptions, parts: BinaryParts, header: Headers): MessageOptions {
  const form = messageFormFrom(header, COMPRESSIONS);
  describeAsPlain(header, form);
  return { form, parts, maxBytes: readMaxBytes };
}

/** Reserves memory for the body of a request: refuses it when there is no room, cuts it off when it is evicted. */
async function* counted(
  body: AsyncIterable<Uint8Array>,
  memory: Reservation,
  signal: CallerSignal,
  response: HttpResponse,
): AsyncIterable<Uint8Array> {
  const cutOff = { handleEvent: () => response.destroy() };
  signal.addEventListener("abort", cutOff);
  try {
    for await (const chunk of body) {
      if (!memory.reserve(chunk.length)) throw new ConnectError(overloaded().message, Code.ResourceExhausted);
      yield chunk;
    }
  } finally {
    signal.removeEventListener("abort", cutOff);
  }
}

/**
 * Reads the rest of a request that was refused half-way. On HTTP/1.1 it is in front of the next request, and many
 * HTTP/2 clients hold it, and their connection, until it is read. A stream of messages is left to the handler.
 */
async function settleRequest(
  { readMaxBytes }: RpcAdapterOptions,
  { method }: UniversalHandler,
  request: HttpRequest,
  body: RequestBody,
): Promise<void> {
  if (!request.complete && method.methodKind !== "bidi_streaming") await body.drain(readMaxBytes * DRAIN_FACTOR);
}

function isUnary({ method }: UniversalHandler): boolean {
  return method.methodKind === "unary";
}

/** Writes a large message slice by slice, see `endWith()`; messages of a stream are small. */
function inSlices({ body, ...rest }: UniversalServerResponse): UniversalServerResponse {
  return body === undefined ? rest : { ...rest, body: slicesFrom(body) };
}

async function* slicesFrom(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of body) yield* slicesOf({ pieces: [piece] });
}

/** Adds the allowed methods to a 405 (RFC 9110 section 15.5.6). */
function withAllow(universal: UniversalServerResponse, { allowedMethods }: UniversalHandler): UniversalServerResponse {
  if (universal.status !== 405) return universal;
  return { ...universal, header: new Headers({ allow: allowedMethods.join(", ") }) };
}

function isCallerGone(error: unknown, response: HttpResponse): boolean {
  // An HTTP/2 response does not know that its stream was reset. An HTTP/1.1 response learns that its socket is gone
  // only after its writes have failed (ECANCELED, from Node.js 26 on).
  const { destroyed } = response instanceof ServerResponse ? (response.socket ?? response) : response.stream;
  return destroyed || ConnectError.from(error).code === Code.Aborted;
}

/** The body of one request, which the reader may leave unfinished. */
interface RequestBody extends AsyncIterable<Uint8Array> {
  /** Reads and discards the rest. Gives up above `maxBytes`, at once when more are announced. */
  drain(maxBytes: number): Promise<void>;
}

/**
 * A body that a reader can leave without ending its stream. connect stops reading a message over the limit, which would
 * end the request's stream; an HTTP/1.1 connection with an ended, unread request answers nothing more and stays open.
 *
 * @param readAhead the part that was read already; it comes first.
 */
function createRequestBody(request: HttpRequest, readAhead?: Uint8Array): RequestBody {
  const rest: AsyncIterator<Uint8Array> = request[Symbol.asyncIterator]();
  const chunks = readAhead === undefined ? rest : after(readAhead, rest);
  return {
    // Without a return(), which would end the stream.
    [Symbol.asyncIterator]: () => ({ next: () => chunks.next() }),
    drain: (maxBytes) => drain(chunks, Number(request.headers["content-length"] ?? 0), maxBytes),
  };
}

async function* after(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (let chunk = await rest.next(); chunk.done !== true; chunk = await rest.next()) yield chunk.value;
}

async function drain(chunks: AsyncIterator<Uint8Array>, announced: number, maxBytes: number): Promise<void> {
  let length = 0;
  while (announced <= maxBytes && length <= maxBytes) {
    const chunk = await chunks.next();
    if (chunk.done) return;
    length += chunk.value.length;
  }
}

const ALLOWED = { methods: "POST", headers: [...cors.allowedHeaders, "Authorization", "X-Partner-Key"].join(", ") };
const EXPOSED_HEADERS = [...cors.exposedHeaders, "X-Request-Id"].join(", ");

/**
 * Sets the CORS fields with which scripts of a listed origin can read the answer; not for a client that is no browser.
 */
export async function allowPage(
  options: Pick<RpcAdapterOptions, "listsOrigin">,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const fields = await corsFieldsIfListed(options, request, EXPOSED_HEADERS);
  for (const [name, value] of Object.entries(fields ?? {})) response.setHeader(name, value);
}
