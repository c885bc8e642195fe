import { ServerResponse } from "node:http";
import { constants, type Http2Session, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { HttpRequest, HttpResponse } from "./exchange.js";
import { DEFAULT_LIMITS, type ListenerLimits } from "./limits.js";

/**
 * Cuts what node:http and node:http2 have no timeout for, or one that costs every call: one walk over all connections
 * instead of a timer that each frame restarts.
 */
export function sweep(connections: Connections, limits: ListenerLimits): void {
  connections.nowMs = performance.now();
  const { exchanges, nowMs, sessions, streams } = connections;
  for (const [socket, exchange] of exchanges) sweepExchange(socket, exchange, connections, limits);
  for (const [stream, startedMs] of streams) {
    if (isStalled(stream, nowMs - startedMs, connections, limits)) cut(stream, sessions);
  }
  for (const [session, peer] of sessions) {
    if (nowMs - peer.activeMs > limits.sessionIdleTimeoutMs) sweepSession(session, peer, connections, limits);
    else if (nowMs - Math.max(peer.activeMs, peer.probedMs ?? 0) > limits.probeIntervalMs)
      probe(session, peer, nowMs, limits);
  }
}

function sweepExchange(
  socket: Socket,
  exchange: NewestExchange,
  connections: Connections,
  limits: ListenerLimits,
): void {
  if (takesNothing(socket, socket.writableLength > 0 || socket.writableEnded, connections, limits)) socket.destroy();
  // Let go of a finished request and of whatever the handler hung on it.
  else if (exchange.response?.writableFinished) exchange.response = undefined;
}

/**
 * Whether the client takes nothing of what waits for it. Whoever answers writes in slices and waits in between, so that
 * a client which reads slowly is seen to read: by an empty queue (`drain`), or by one of another length.
 */
function takesNothing(
  out: Socket | ServerHttp2Stream,
  isSending: boolean,
  { nowMs, untaken }: Connections,
  limits: ListenerLimits,
): boolean {
  const known = untaken.get(out);
  if (!isSending && known === undefined) return false;
  const waiting = known ?? watchDrain(out, untaken);
  const bytes = isSending ? out.writableLength : undefined;
  if (bytes !== waiting.bytes) Object.assign(waiting, { bytes, sinceMs: nowMs });
  return isSending && nowMs - waiting.sinceMs > limits.writeTimeoutMs;
}

function watchDrain(out: Socket | ServerHttp2Stream, untaken: Connections["untaken"]): Untaken {
  const waiting: Untaken = { bytes: undefined, sinceMs: 0 };
  untaken.set(out, waiting);
  out.on("drain", () => {
    waiting.bytes = undefined;
  });
  return waiting;
}

/**
 * The client sends no end of its request while it has no answer, or does not take the answer. A stream that is open
 * in both directions, such as server reflection or Watch of the health service, is neither.
 */
function isStalled(
  stream: ServerHttp2Stream,
  ageMs: number,
  connections: Connections,
  limits: ListenerLimits,
): boolean {
  if (takesNothing(stream, stream.writableLength > 0, connections, limits)) return true;
  if (ageMs <= limits.requestTimeoutMs || stream.state.remoteClose === 1 || isLongUpload(stream)) return false;
  // Answered, and the client does not end its side: nothing more can come of it.
  return stream.writableFinished || !stream.headersSent;
}

/** Resets a stream; a client that does not take the reset either loses its connection. */
function cut(stream: ServerHttp2Stream, sessions: Connections["sessions"]): void {
  if (stream.closed) sessions.get(stream.session as ServerHttp2Session)?.socket.destroy();
  else stream.close(resetCodeOf(stream));
}

/** Of one that has its answer nothing went wrong; it is only to send no more of its request (RFC 9113 section 8.1). */
function resetCodeOf({ writableFinished }: ServerHttp2Stream): number {
  return writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_ENHANCE_YOUR_CALM;
}

/** Without a stream the connection is closed; with one, its peer must give a sign of life. */
function sweepSession(
  session: Http2Session,
  peer: SessionPeer,
  connections: Connections,
  limits: ListenerLimits,
): void {
  if (!session.destroyed && hasStreams(session, connections)) {
    peer.activeMs = connections.nowMs;
    probe(session, peer, connections.nowMs, limits);
  } else if (session.closed || session.destroyed) {
    // Closed by the sweep before: our side has ended, and the peer has not ended its own.
    peer.socket.destroy();
  } else session.close();
}

/**
 * Pings a silent peer and cuts it if no answer comes. Besides peers that vanished this ends connections that
 * node:http2 gave up after a protocol error: it sends GOAWAY, reads no more and stays.
 */
function probe(session: Http2Session, peer: SessionPeer, nowMs: number, limits: ListenerLimits): void {
  if (session.closed || session.destroyed) return;
  peer.probedMs = nowMs;
  const timer = setTimeout(() => peer.socket.destroy(), limits.headersTimeoutMs).unref();
  session.ping(() => clearTimeout(timer));
}

function hasStreams(session: Http2Session, connections: Connections): boolean {
  for (const stream of connections.streams.keys()) if (stream.session === session) return true;
  return false;
}

/** The newest request of an HTTP/1 connection; one object per connection, so that a call allocates nothing. */
export interface NewestExchange {
  response: ServerResponse | undefined;
  /** How many came on the connection so far. */
  requests: number;
  /** How many of them wait for the one in front of them to be answered. */
  queued: number;
}

/** An HTTP/2 connection below its session. */
export interface SessionPeer {
  readonly socket: Socket;
  /** When its last request came, or it was last heard of; before the first request, when the connection came. */
  activeMs: number;
  /** Requests begun in this turn of the event loop. */
  begun: number;
  /** Those that wait for another turn. */
  readonly queue: Array<() => void>;
  /** When it was last asked for a sign of life; undefined before the first time. */
  probedMs?: number;
}

/** What waits for a client to take it. */
interface Untaken {
  /** Bytes; undefined when nothing waits, or the client has taken something since the last sweep. */
  bytes: number | undefined;
  /** Since when there are so many. */
  sinceMs: number;
}

/** What is open on one listener, each kept up to date by whoever opens it. */
export interface Connections {
  /** Every TCP connection. */
  readonly sockets: Set<Socket>;
  /** Connections that have not shown their protocol. */
  readonly waiting: Set<Socket>;
  /** HTTP/1 connections. */
  readonly exchanges: Map<Socket, NewestExchange>;
  /** HTTP/2 connections. */
  readonly sessions: Map<Http2Session, SessionPeer>;
  /** HTTP/2 requests and when they came, oldest first. */
  readonly streams: Map<ServerHttp2Stream, number>;
  /** What clients that are behind had left to take, for those whom the sweep found behind. */
  readonly untaken: WeakMap<Socket | ServerHttp2Stream, Untaken>;
  /** A clock that the sweep moves: reading it costs a call nothing, and limits are as coarse as the sweep anyway. */
  nowMs: number;
  /** HTTP/1 requests that wait for the one in front of them, on all connections. */
  queued: number;
  /** Connections that are read again in the next turn of the event loop; undefined unless there are too many of those. */
  held: Set<Socket> | undefined;
  /** Connections that were cut because there were too many of those. */
  cut: number;
  /** Set once, when the listener begins to close: each answer is the last on its connection. */
  draining: boolean;
  /** Set once, after that: a connection that has not shown its protocol is given up. */
  refusing: boolean;
}

/** Nothing open yet. */
export function createConnections(): Connections {
  return {
    sockets: new Set(),
    waiting: new Set(),
    exchanges: new Map(),
    sessions: new Map(),
    streams: new Map(),
    untaken: new WeakMap(),
    nowMs: performance.now(),
    queued: 0,
    held: undefined,
    cut: 0,
    draining: false,
    refusing: false,
  };
}

/** Responses, or streams of HTTP/2, whose requests may take longer than `requestTimeoutMs`. */
const allowed = new WeakSet<object>();

/** From here on whoever reads the request's body says how long it may take, and not the listener. */
export function allowLongUpload(response: HttpResponse): void {
  allowed.add(response instanceof ServerResponse ? response : response.stream);
}

/** Whether the body of a request may take longer than others. @param exchange a response of HTTP/1, a stream of HTTP/2. */
export function isLongUpload(exchange: object | undefined): boolean {
  return exchange !== undefined && allowed.has(exchange);
}

/**
 * To be called with an answer that may be complete before its request is: what the client still sends is thrown away, for
 * so long that it gets to see the answer, and then the connection (HTTP/1.1) or the stream (HTTP/2) ends. A socket that is
 * closed with unread input resets the connection, and the client loses the answer (RFC 9112 section 9.6).
 */
export function discardRestAfter(request: HttpRequest, response: HttpResponse): void {
  if (!(response instanceof ServerResponse)) {
    const { stream } = response;
    // The response of node:http2 finishes when its stream is closed.
    stream.once("finish", () => {
      allowed.delete(stream);
      // The answer is whole: only the rest of the request is not wanted (RFC 9113 section 8.1).
      if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    return;
  }
  response.once("finish", () => {
    allowed.delete(response);
    if (!request.complete) discardRest(request);
  });
}

function discardRest(request: HttpRequest): void {
  const { socket } = request;
  request.removeAllListeners("data");
  request.resume();
  const timer = setTimeout(() => socket.destroy(), DEFAULT_LIMITS.lingerMs);
  request.once("end", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
}
