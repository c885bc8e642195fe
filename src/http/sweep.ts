import { constants, type Http2Session, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Connections, NewestExchange, SessionPeer, Untaken } from "./connections.js";
import type { ListenerLimits } from "./limits.js";

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
  if (ageMs <= limits.requestTimeoutMs || stream.state.remoteClose === 1) return false;
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
