import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { Writable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { bytesFromAddress } from "../lib/address-list.js";
import { type Bytes, bufferOf, createChunks, LARGE_BYTES, NOTHING, slicesOf } from "../lib/chunks.js";
import type { CallerListener, CallerSignal } from "../model/caller-signal.js";
import { overloaded, RelayError } from "../model/errors.js";

/** A request over HTTP/1.1 or HTTP/2. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;

/** A response over HTTP/1.1 or HTTP/2. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** Answers with a short plain text, outside the JSON route and the RPCs. */
export function answerPlain(
  response: HttpResponse,
  statusCode: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(`${text}\n`);
  response.writeHead(statusCode, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(body.length),
    ...headers,
  });
  response.end(body);
}

/**
 * Fields of an answer in JSON, which no cache keeps and no browser takes for anything else.
 *
 * @param waitSeconds for `Retry-After` (RFC 9110 section 10.2.3).
 */
export function jsonFields(length: number, waitSeconds?: number): OutgoingHttpHeaders {
  const fields: OutgoingHttpHeaders = {
    "content-type": "application/json",
    "content-length": length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  // Not by a spread, with which V8 would make another hidden class for each answer.
  if (waitSeconds !== undefined) fields["retry-after"] = String(waitSeconds);
  return fields;
}

/**
 * Ends a response with a body that may be in pieces. A small one is a single write to the socket. A large one is
 * written in slices, each after the client has read those before it, so that the sweep can tell a client that reads
 * slowly from one that does not read.
 *
 * HTTP/1 batches the writes of one tick by itself, and must not be corked: since Node.js 22.23 a chunked answer that
 * ends while it is corked has its last chunk in front of the others.
 */
export function endWith(response: HttpResponse, pieces: readonly Uint8Array[]): void {
  const out: Writable = response;
  if (pieces.reduce((bytes, { length }) => bytes + length, 0) > LARGE_BYTES) {
    endInSlices(out, slicesOf({ pieces }));
    return;
  }
  if (pieces.length > 1 && !(response instanceof ServerResponse)) out.cork();
  for (const piece of pieces.slice(0, -1)) out.write(piece);
  out.end(pieces.at(-1));
}

function endInSlices(out: Writable, slices: Iterator<Buffer, void>): void {
  for (let slice = slices.next(); !slice.done; slice = slices.next()) {
    if (out.write(slice.value)) continue;
    out.once("drain", () => endInSlices(out, slices));
    return;
  }
  out.end();
}

/** Sends a head before the first chunk of its body, since an event stream may have none for a while. */
export function writeHeadOf(response: HttpResponse, statusCode: number, fields: Record<string, string>): void {
  response.writeHead(statusCode, fields);
  // Not `flushHeaders()`: it would write the head in UTF-8, and fields are bytes.
  if (response instanceof ServerResponse) response.write(NOTHING);
}

/** Writes a chunk with backpressure: resolves when more may be written, or when the response is closed. */
export function writeChunk(response: HttpResponse, bytes: Buffer): true | Promise<true> {
  const out: Writable = response;
  // A closed one emits no event any more.
  const isClosed = response instanceof ServerResponse ? response.destroyed : response.stream.closed;
  if (isClosed || out.write(bytes)) return true;
  return new Promise((resolve) => {
    const settle = () => {
      response.off("drain", settle).off("close", settle);
      resolve(true);
    };
    response.on("drain", settle).on("close", settle);
  });
}

/** Ends an answer so that it cannot be taken for a complete one. */
export function cut(response: HttpResponse): void {
  if (!(response instanceof ServerResponse)) {
    response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return;
  }
  const { socket } = response;
  // HTTP/1.0, which some proxies use, has no chunks: a normal end of the connection would end the answer. Reset it. Over
  // TLS, where Node.js would throw, an end without close_notify says the same (RFC 8446 section 6.1).
  if (response.req.httpVersionMinor === 0 && socket !== null && !("encrypted" in socket)) socket.resetAndDestroy();
  response.destroy();
}

/** Whether answers with this status have content: not 204, 205 and 304 (RFC 9110 sections 15.3.5, 15.3.6, 15.4.5). */
export function hasContent(statusCode: number): boolean {
  return statusCode !== 204 && statusCode !== 205 && statusCode !== 304;
}

/** The field with the id of a request; the answer has it, too. */
export const REQUEST_ID = "x-request-id";

/**
 * An HTTP/1 response that always carries the id of its request. `setHeader()` would do the same, but makes every later
 * `writeHead()` take its slow path, which costs a call three times as much as the field itself. An answer that begins
 * while much of its request is still to come is the last one on its connection.
 */
export class NamedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Undefined until the request is named. */
  requestId: string | undefined;

  override writeHead(statusCode: number, statusMessage?: string, fields?: Fields): this;
  override writeHead(statusCode: number, fields?: Fields): this;
  override writeHead(statusCode: number, first?: string | Fields, second?: Fields): this {
    const fields = (typeof first === "string" ? second : first) ?? {};
    // Then node:http writes `connection: close`, and `closeAfterRest()` discards what still comes.
    if (leavesRest(this.req)) this.shouldKeepAlive = false;
    if (this.requestId === undefined) return super.writeHead(statusCode, fields);
    if (Array.isArray(fields)) this.setHeader(REQUEST_ID, this.requestId);
    // Changes the caller's object, which is not used again: a copy costs as much as all the rest.
    else fields[REQUEST_ID] = this.requestId;
    return super.writeHead(statusCode, fields);
  }
}

type Fields = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** Reading so many bytes that nobody wants is cheaper than a new connection. */
const MAX_DISCARDED_BYTES = 65_536;

/** Whether a request is left unread that node:http does not discard by itself, as it does a body that nobody has begun to read. */
function leavesRest({ complete, headers, readableDidRead }: IncomingMessage): boolean {
  if (complete) return false;
  const isLong = Number(headers["content-length"] ?? 0) > MAX_DISCARDED_BYTES;
  return isLong || readableDidRead || headers["transfer-encoding"] !== undefined;
}

/**
 * Returns a signal that aborts when the caller disconnects before its answer is written, or when the call is evicted.
 * Releases what is held for the call when the response closes, for whatever reason.
 */
export function watchCaller(response: HttpResponse, held: Held): ResponseSignal {
  const signal = new ResponseSignal(response);
  held.whenEvicted((reason) => signal.giveWay(reason));
  // Not an HTTP/2 response: without an end() one to HEAD does not emit 'close'.
  const closing = response instanceof ServerResponse ? response : response.stream;
  closing.on("close", () => {
    held.release();
    signal.onClose();
  });
  return signal;
}

/** What is held for a call. */
interface Held {
  release(): void;
  whenEvicted(listener: (reason: unknown) => void): void;
}

/**
 * Aborts when the caller's connection closes before the answer is written. A class, since every call has one: one
 * object, no closures.
 */
export class ResponseSignal implements CallerSignal {
  aborted = false;
  reason: unknown;
  readonly #response: HttpResponse;
  /** Most calls have only one listener at a time. */
  #listener: CallerListener | undefined;
  #others: readonly CallerListener[] = NONE;

  constructor(response: HttpResponse) {
    this.#response = response;
  }

  addEventListener(_type: "abort", listener: CallerListener): void {
    if (this.#listener === undefined) this.#listener = listener;
    else this.#others = [...this.#others, listener];
  }

  removeEventListener(_type: "abort", listener: CallerListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others = this.#others.filter((other) => other !== listener);
  }

  /** Called when the response closes. */
  onClose(): void {
    // Over HTTP/2 a cancelled stream counts as finished, so what matters is whether we had written the answer.
    if (!this.#response.writableEnded) this.#abort(new Error("The caller disconnected."));
  }

  /** Called when the call is evicted to free memory: it fails with the reason, or its answer is cut off. */
  giveWay(reason: unknown): void {
    this.#abort(reason);
    if (this.#response.headersSent) cut(this.#response);
  }

  #abort(reason: unknown): void {
    if (this.aborted) {
      // The caller of an evicted call may disconnect before it has its answer. After the head the answer is cut off.
      if (!this.#response.headersSent) this.reason = reason;
      return;
    }
    this.aborted = true;
    this.reason = reason;
    this.#listener?.handleEvent();
    for (const listener of this.#others) listener.handleEvent();
  }
}

const NONE: readonly CallerListener[] = [];

/**
 * The client's IP address: the peer's, or, when the peer is a trusted proxy, the right-most address of
 * X-Forwarded-For that no trusted proxy added. Empty when the socket is already gone.
 */
export function createClientAddress(isTrustedProxy: (address: string) => boolean): (request: HttpRequest) => string {
  return (request) => {
    const peer = plainAddress(request.socket.remoteAddress ?? "");
    const forwarded = request.headers["x-forwarded-for"];
    if (forwarded === undefined || !isTrustedProxy(peer)) return peer;
    const hops = String(forwarded).split(",").map(addressOfHop);
    return hops.findLast((hop) => !isTrustedProxy(hop)) ?? peer;
  };
}

/** Some proxies write the port as well: `203.0.113.5:1234`, `[2001:db8::1]:443` (RFC 7239 section 6). */
function addressOfHop(hop: string): string {
  return plainAddress(hop.trim().replace(/^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/, "$1$2"));
}

/** Whether the client's own connection is encrypted: the socket's, or, behind a trusted proxy, by X-Forwarded-Proto. */
export function createIsEncrypted(isTrustedProxy: (address: string) => boolean): (request: HttpRequest) => boolean {
  return ({ socket, headers }) => {
    if ((socket as Partial<TLSSocket>).encrypted === true) return true;
    const [scheme = ""] = String(headers["x-forwarded-proto"] ?? "").split(",");
    return scheme.trim().toLowerCase() === "https" && isTrustedProxy(plainAddress(socket.remoteAddress ?? ""));
  };
}

/** Where the groups of a network start in the bytes of an IPv6 address. */
const NETWORK_GROUPS = [0, 2, 4, 6];

/**
 * What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a client has all addresses
 * of such a network (RFC 4291 section 2.5.4). An IPv4-mapped address is its IPv4 address. Other text stays as it is.
 *
 * @param address without brackets, in any spelling, since a proxy may have written it.
 */
export function clientNetworkOf(address: string): string {
  const plain = plainAddress(address);
  const bytes = plain.includes(":") ? bytesFromAddress(plain) : undefined;
  if (bytes === undefined) return plain;
  const network = bufferOf(bytes);
  const groups = NETWORK_GROUPS.map((at) => network.readUInt16BE(at).toString(16));
  return `${groups.join(":")}::/64`;
}

/** An address as text; an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) is its IPv4 address. */
export function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** A body up to so many times the limit is still read and discarded, so that the caller gets the answer. */
export const DRAIN_FACTOR = 4;

/** A budget for the bytes that are held. */
interface Room {
  /** Reserves the bytes. False when there is no room. */
  reserve(bytes: number): boolean;
}

/**
 * Reads a whole request body, in the chunks in which it arrived. The signal reports that the caller has disconnected:
 * listening for that on the request costs each call more than its body.
 *
 * Rejects with RelayError REQUEST_TOO_LARGE above `maxBytes`, OVERLOADED when there is no room, and CALL_FORMAT_ERROR
 * when the caller disconnects before the end: nobody reads that row, but it is not an internal error.
 */
export function readBody(request: HttpRequest, maxBytes: number, room: Room, signal: CallerSignal): Promise<Bytes> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes * DRAIN_FACTOR) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    let chunks = createChunks();
    let length = 0;
    const left = {
      handleEvent: () =>
        signal.reason instanceof RelayError ? refuse(signal.reason) : reject(cutShort(signal.reason)),
    };
    function onData(chunk: Buffer): void {
      length += chunk.length;
      if (length > maxBytes * DRAIN_FACTOR) refuse(tooLarge(maxBytes));
      else if (length > maxBytes) chunks = createChunks();
      else if (room.reserve(chunk.length)) chunks.push(chunk);
      else refuse(overloaded());
    }
    function onEnd(): void {
      stop();
      if (length > maxBytes) reject(tooLarge(maxBytes));
      else resolve(chunks);
    }
    function refuse(error: unknown): void {
      stop();
      request.pause();
      reject(error);
    }
    // The listeners keep the bytes, and an open connection may keep the listeners long after the bytes count no more.
    function stop(): void {
      signal.removeEventListener("abort", left);
      request.off("data", onData).off("end", onEnd);
    }
    request.on("data", onData).on("end", onEnd);
    signal.addEventListener("abort", left);
  });
}

/** The error for a request body over the limit. */
export function tooLarge(maxBytes: number): RelayError {
  return new RelayError("REQUEST_TOO_LARGE", `The request body is over the limit of ${maxBytes} bytes. Send less.`);
}

function cutShort(cause: unknown): RelayError {
  return new RelayError("CALL_FORMAT_ERROR", "The request ended before its body was complete. Send it again.", {
    cause,
  });
}
