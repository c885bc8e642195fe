import { ServerResponse } from "node:http";
import { constants, type Http2Session, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { HttpResponse } from "./exchange.js";
import type { ListenerLimits } from "./limits.js";

/**
 * Enforces timeouts that node:http and node:http2 lack, or that would cost every call: it walks all connections at
 * intervals, instead of a timer that each frame restarts.
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
  // Frees a finished request and whatever the handler attached to it. The last one shows that no other may be begun.
  else if (exchange.response?.writableFinished && exchange.response.shouldKeepAlive) exchange.response = undefined;
}

/**
 * Whether the client reads nothing of what is queued for it. Answers are written in slices with backpressure, so that a
 * slow reader still shows progress: by an empty queue (`drain`), or by a queue of another length.
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
 * Whether the client does not read its answer, or does not finish its request in time. A stream that is open in both
 * directions, such as server reflection or Watch of the health service, is not stalled.
 */
function isStalled(
  stream: ServerHttp2Stream,
  ageMs: number,
  connections: Connections,
  limits: ListenerLimits,
): boolean {
  if (takesNothing(stream, stream.writableLength > 0, connections, limits)) return true;
  if (ageMs <= limits.requestTimeoutMs || stream.state.remoteClose === 1 || isLongUpload(stream)) return false;
  // Either answered while the client does not end its side, or not answered at all.
  return stream.writableFinished || !stream.headersSent;
}

/** Resets a stream. If it was reset before and the client has not read that, destroys the connection. */
function cut(stream: ServerHttp2Stream, sessions: Connections["sessions"]): void {
  if (stream.closed) sessions.get(stream.session as ServerHttp2Session)?.socket.destroy();
  else stream.close(resetCodeOf(stream));
}

/**
 * NO_ERROR for a stream that has its answer: the client should only stop sending its request (RFC 9113 section 8.1).
 */
function resetCodeOf({ writableFinished }: ServerHttp2Stream): number {
  return writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_ENHANCE_YOUR_CALM;
}

/** Closes a connection without streams; pings the peer of one with streams. */
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
    // Closed by an earlier sweep: our side has ended, and the peer has not ended its own.
    peer.socket.destroy();
  } else session.close();
}

/**
 * Pings a silent peer and destroys its connection if no answer comes. Besides vanished peers this finds connections
 * that node:http2 has given up after a protocol error: it sends GOAWAY and stops reading, but does not close them.
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

/** The newest request of an HTTP/1 connection. One object per connection, so that a call allocates nothing. */
export interface NewestExchange {
  response: ServerResponse | undefined;
  /** Requests on the connection so far. */
  requests: number;
  /** Requests that wait for the one before them to be answered. */
  queued: number;
}

/** An HTTP/2 connection below its session. */
export interface SessionPeer {
  readonly socket: Socket;
  /** Time of its last request or sweep with open streams; before the first request, of the connection. */
  activeMs: number;
  /** Requests started in this turn of the event loop. */
  begun: number;
  /** Requests that wait for another turn. */
  readonly queue: Array<() => void>;
  /** When it was last pinged; undefined before the first time. */
  probedMs?: number;
}

/** Output that a client has not read yet. */
interface Untaken {
  /** Queued bytes; undefined when nothing is queued, or the queue was empty since the last sweep. */
  bytes: number | undefined;
  /** Since when `bytes` has not changed. */
  sinceMs: number;
}

/** Everything that is open on one listener; each set is updated by the code that opens its members. */
export type Connections = ReturnType<typeof createConnections>;

/** Nothing open yet. */
export function createConnections() {
  return {
    /** Every TCP connection. */
    sockets: new Set<Socket>(),
    /** Connections that have not shown their protocol. */
    waiting: new Set<Socket>(),
    /** HTTP/1 connections. */
    exchanges: new Map<Socket, NewestExchange>(),
    /** HTTP/2 connections. */
    sessions: new Map<Http2Session, SessionPeer>(),
    /** HTTP/2 requests and when they began, oldest first. */
    streams: new Map<ServerHttp2Stream, number>(),
    /** Unread output of the clients that a sweep found to be behind. */
    untaken: new WeakMap<Socket | ServerHttp2Stream, Untaken>(),
    /** A clock that the sweep updates: reading it costs a call nothing, and limits are as coarse as the sweep anyway. */
    nowMs: performance.now(),
    /** HTTP/1 requests that wait for the one before them, on all connections. */
    queued: 0,
    /** Connections paused until the next turn of the event loop; undefined unless too many requests are queued. */
    held: undefined as Set<Socket> | undefined,
    /** Connections that were closed because too many requests were queued. */
    cut: 0,
    /** Set once, when the listener begins to close: from then on each answer is the last on its connection. */
    draining: false,
    /** Set once, after that: from then on a connection that has not shown its protocol is closed. */
    refusing: false,
  };
}

/** HTTP/1 responses and HTTP/2 streams whose requests may take longer than `requestTimeoutMs`. */
const allowed = new WeakSet<object>();

/** Exempts a request from `requestTimeoutMs`: from then on the reader of its body limits the time. */
export function allowLongUpload(response: HttpResponse): void {
  allowed.add(response instanceof ServerResponse ? response : response.stream);
}

/** Whether {@link allowLongUpload} was called. @param exchange an HTTP/1 response or an HTTP/2 stream. */
export function isLongUpload(exchange: object | undefined): boolean {
  return exchange !== undefined && allowed.has(exchange);
}

/**
 * How long the rest of a request is discarded once its answer is complete, so that the client can read that before a
 * reset, in milliseconds: one slow round trip.
 */
export const LINGER_MS = 1_000;
