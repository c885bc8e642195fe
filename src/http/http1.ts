import type { IncomingMessage, ServerResponse } from "node:http";
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Dispatch, Expectation, OnFault } from "./dispatch.js";
import { NamedResponse } from "./exchange.js";
import type { ListenerLimits } from "./limits.js";
import { type Connections, isLongUpload, LINGER_MS, type NewestExchange } from "./sweep.js";

/** Certificate chain and private key, PEM. */
export interface TlsMaterial {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** The server that owns the port, and the function that passes one of its connections to the HTTP/1 parser. */
export interface Http1 {
  readonly server: http.Server | https.Server;
  /** Emitted by `server` when a connection can be read, after the TLS handshake if there is one. */
  readonly readyEvent: "connection" | "secureConnection";
  readonly accept: (socket: Socket) => void;
}

/** Creates the server with its limits. Connections reach its parser only through `accept`. */
export function createHttp1(
  tls: TlsMaterial | undefined,
  limits: ListenerLimits,
  connections: Connections,
  dispatch: Dispatch,
  onFault: OnFault,
): Http1 {
  const server = createServer(tls, limits);
  const readyEvent = tls === undefined ? "connection" : "secureConnection";
  // The public way, `emit("connection")` on a server without a port, has no header and request timeouts: up to Node.js
  // 26 only "listening" starts them. So the server owns the port, and its own listener is called by hand.
  const parse = server.listeners(readyEvent)[0] as (socket: Socket) => void;
  server.removeAllListeners(readyEvent);

  const queue = createQueue();
  // A handler wrote after the end. Without a listener the error would crash the process.
  const fault = (error: Error) => onFault("handler", error);
  const begin = (expectation: Expectation, req: IncomingMessage, res: ServerResponse) => {
    const exchange = connections.exchanges.get(req.socket);
    if (exchange === undefined || req.socket.destroyed) return;
    const previous = exchange.response;
    if (!beginExchange(exchange, res, connections, limits)) return discardAll(req.socket);
    res.on("error", fault);
    if (previous === undefined || previous.closed) return dispatch(expectation, req, res);
    if (exchange.queued >= MAX_QUEUED && connections.queued >= limits.maxQueuedRequests) {
      connections.cut += 1;
      req.socket.destroy();
      return holdAll(connections);
    }
    queueBehind(previous, { exchange, socket: req.socket, connections, queue }, () => dispatch(expectation, req, res));
  };
  server.on("request", begin.bind(undefined, "none"));
  server.on("checkContinue", begin.bind(undefined, "continue"));
  server.on("checkExpectation", begin.bind(undefined, "unknown"));
  server.on("clientError", createClientErrorListener(connections, onFault));
  server.on("connect", (_req, socket) => refuseConnect(socket as Socket, connections));
  // The first bytes of a new connection are parsed even while it is paused, so wait.
  const acceptInTurn = (socket: Socket) => {
    if (connections.held !== undefined) setImmediate(acceptInTurn, socket);
    else if (!socket.destroyed) accept(server, parse, socket, connections);
  };
  return { server, readyEvent, accept: acceptInTurn };
}

/**
 * Records the newest request of a connection and decides whether it is the last. False when it comes after the last,
 * and so would be performed without an answer (RFC 9112 section 9.6).
 */
function beginExchange(
  exchange: NewestExchange,
  res: ServerResponse,
  connections: Connections,
  limits: ListenerLimits,
): boolean {
  if (exchange.response?.shouldKeepAlive === false) return false;
  exchange.response = res;
  exchange.requests += 1;
  if (connections.draining || exchange.requests >= limits.maxRequestsPerSocket) res.shouldKeepAlive = false;
  return true;
}

/**
 * Discards what comes after the last request of a connection. If it were parsed, each of thousands of requests would be
 * kept until the connection ends, and then aborted, which blocks the event loop.
 */
function discardAll(socket: Socket): void {
  socket.removeAllListeners("data");
  socket.on("data", () => {});
}

/**
 * Pauses all connections for the rest of this turn of the event loop. node:http parses up to 64 KiB of each at once,
 * which may be thousands of requests with 2 KiB of memory each, and those of a closed connection are freed only after
 * the turn.
 */
function holdAll(connections: Connections): void {
  if (connections.held !== undefined) return;
  const held = new Set<Socket>();
  connections.held = held;
  for (const socket of connections.exchanges.keys()) if (!socket.isPaused()) hold(socket, connections);
  setImmediate(() => {
    connections.held = undefined;
    for (const socket of held) socket.resume();
  });
}

function hold(socket: Socket, { held }: Connections): void {
  if (held === undefined) return;
  held.add(socket);
  socket.pause();
}

/**
 * Starts a pipelined request once the one before it on the connection has been answered and its turn has come. A
 * connection with many waiting requests is paused until there are fewer.
 */
function queueBehind(
  previous: ServerResponse,
  { exchange, socket, connections, queue }: Queueing,
  begin: () => void,
): void {
  exchange.queued += 1;
  connections.queued += 1;
  if (exchange.queued >= MAX_QUEUED) socket.pause();
  previous.once("close", () => {
    // A closed connection has already subtracted its requests from the count.
    if (socket.destroyed) return;
    queue(() => {
      if (socket.destroyed) return;
      exchange.queued -= 1;
      connections.queued -= 1;
      if (exchange.queued < MAX_QUEUED) socket.resume();
      begin();
    });
  });
}

/** What a waiting request belongs to. */
interface Queueing {
  readonly exchange: NewestExchange;
  readonly socket: Socket;
  readonly connections: Connections;
  readonly queue: Queue;
}

type Queue = (begin: () => void) => void;

/**
 * Starts one pipelined request per turn of the event loop, over all connections: one packet may hold hundreds, which
 * would otherwise all start before anything else runs.
 */
function createQueue(): Queue {
  const waiting: Array<() => void> = [];
  let isArmed = false;
  const arm = () => {
    if (isArmed || waiting.length === 0) return;
    isArmed = true;
    setImmediate(() => {
      isArmed = false;
      waiting.shift()?.();
      arm();
    });
  };
  return (begin) => {
    waiting.push(begin);
    arm();
  };
}

/** Requests that may wait on a connection before it is paused; bytes that were read already may hold some more. */
const MAX_QUEUED = 8;

function createServer(tls: TlsMaterial | undefined, limits: ListenerLimits): http.Server | https.Server {
  const options: http.ServerOptions = {
    ServerResponse: NamedResponse,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // Even if the process was started with the flag for it.
    insecureHTTPParser: false,
    // decideRequest() answers these, with a text and for HTTP/1.0 too.
    requireHostHeader: false,
    noDelay: true,
    // Finds peers that vanished while a stream was open and silent.
    keepAlive: true,
    keepAliveInitialDelay: 60_000,
  };
  const server = tls === undefined ? http.createServer(options) : https.createServer(tlsOptions(tls, options, limits));
  server.maxConnections = limits.maxConnections;
  // One more than allowed shows that there are too many; node:http drops the rest.
  server.maxHeadersCount = limits.maxHeaders + 1;
  return server;
}

function tlsOptions(tls: TlsMaterial, options: http.ServerOptions, limits: ListenerLimits): https.ServerOptions {
  return {
    ...options,
    cert: tls.cert,
    key: tls.key,
    minVersion: "TLSv1.2",
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.headersTimeoutMs,
  };
}

function accept(server: object, parse: (socket: Socket) => void, socket: Socket, connections: Connections): void {
  const exchange: NewestExchange = { response: undefined, requests: 0, queued: 0 };
  connections.exchanges.set(socket, exchange);
  socket.on("close", () => {
    connections.exchanges.delete(socket);
    connections.queued -= exchange.queued;
  });
  const before = socket.listeners("close");
  parse.call(server, socket);
  // node:http also listens for the end of the connection, and creates an error for each request that still waits on it.
  // With hundreds of pipelined requests their stack traces, which nobody reads, would take nine tenths of the time.
  for (const listener of socket.listeners("close") as CloseListener[]) {
    if (!before.includes(listener)) socket.off("close", listener).on("close", withoutStackTraces(listener));
  }
  // At the end of each request node:http resumes reading, even on a socket that was paused meanwhile, and a paused
  // socket emits no second 'pause'. This listener runs after that of node:http, and makes it stop again.
  socket.on("resume", () => {
    hold(socket, connections);
    if (exchange.queued >= MAX_QUEUED) socket.pause();
    if (socket.isPaused()) socket.emit("pause");
  });
  closeAfterRest(socket, exchange);
}

/**
 * Changes how node:http closes a connection after its last answer, by this method: it first discards the rest of the
 * request. A socket that is closed with unread input resets the connection, and the client loses the answer (RFC 9112
 * section 9.6).
 */
function closeAfterRest(socket: Socket, exchange: NewestExchange): void {
  const destroySoon = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    const request = exchange.response?.req;
    if (request === undefined || request.complete) return destroySoon();
    socket.end();
    request.removeAllListeners("data").resume();
    request.once("end", () => socket.destroy());
    destroyLater(socket);
  };
}

function destroyLater(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}

type CloseListener = (hadError: boolean) => void;

/** The same listener, whose errors have no stack trace. `off()` with the original removes it. */
function withoutStackTraces(listener: CloseListener): CloseListener {
  const quiet: CloseListener = (hadError) => {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      listener(hadError);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  };
  return Object.assign(quiet, { listener });
}

/** Refuses CONNECT: the relay is not a tunnel (RFC 9110 section 9.3.6). */
function refuseConnect(socket: Socket, connections: Connections): void {
  if (mayAnswer(socket, connections.exchanges.get(socket)?.response)) refuseSocket(socket, "405 Method Not Allowed");
  else socket.destroy();
}

/** The error that the parser and the checks of node:http pass to 'clientError'. */
interface ClientError extends Error {
  code?: string;
  /** The bytes that could not be parsed, which may hold a caller's secrets. */
  rawPacket?: Buffer;
}

/** Network failures: there is no client left to answer. */
const GONE: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT"]);
/** The client ended its side in the middle of a request, usually because it disconnected. */
const CUT_SHORT = "HPE_INVALID_EOF_STATE";
/** The request did not end within `requestTimeoutMs`. */
const TOO_SLOW = "ERR_HTTP_REQUEST_TIMEOUT";

/** Creates the 'clientError' listener: sends a short answer if it can still be read as one, then ends the socket. */
function createClientErrorListener(
  connections: Connections,
  onFault: OnFault,
): (error: ClientError, socket: Socket) => void {
  return (error, socket) => {
    if (GONE.has(error.code)) return void socket.destroy();
    // node:http reports this once for each request.
    if (error.code === TOO_SLOW && isLongUpload(connections.exchanges.get(socket)?.response)) return;
    // The rest of a refused request also causes errors here, chunk by chunk, until `LINGER_MS` have passed.
    if (socket.writableEnded) return;
    delete error.rawPacket;
    if (error.code !== CUT_SHORT) onFault("client", error);
    const exchange = connections.exchanges.get(socket);
    if (isAnswered(exchange?.response)) return void socket.destroySoon();
    // Without an exchange it is a TLS handshake that failed: the client would not understand.
    if (exchange === undefined || !mayAnswer(socket, exchange.response)) return void socket.destroy();
    refuseSocket(socket, statusLineOf(error.code));
  };
}

/**
 * Whether nothing more may be answered on the connection: the faulty request is an incomplete one that has its answer
 * already, or it comes after the last one.
 */
function isAnswered(newest: ServerResponse | undefined): boolean {
  return newest?.writableEnded === true && (!newest.req.complete || !newest.shouldKeepAlive);
}

/**
 * Writes a bare answer, ends the connection, and destroys it after {@link LINGER_MS}. Until then input is read and discarded:
 * a socket closed with unread input resets the connection, and the client loses the answer (RFC 9112 section 9.6).
 */
function refuseSocket(socket: Socket, statusLine: string): void {
  socket.end(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.resume();
  destroyLater(socket);
}

/**
 * Whether bytes written now would be read as the answer to the faulty request: no answer is outstanding, or only that
 * of this request, whose head the handler has. Otherwise they would answer an earlier, good request.
 */
function mayAnswer(socket: Socket, newest: ServerResponse | undefined): boolean {
  if (!socket.writable) return false;
  if (newest === undefined || newest.writableFinished) return true;
  return newest.socket === socket && !newest.headersSent && !newest.req.complete;
}

function statusLineOf(code: string | undefined): string {
  if (code === "HPE_HEADER_OVERFLOW") return "431 Request Header Fields Too Large";
  return code === TOO_SLOW ? "408 Request Timeout" : "400 Bad Request";
}
