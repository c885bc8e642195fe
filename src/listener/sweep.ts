import { constants, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Connections, NewestExchange, SessionPeer } from "./connections.js";
import type { ListenerLimits } from "./limits.js";
import { isLeftToHandler } from "./self-limited.js";

/**
 * Cuts what node:http and node:http2 have no timeout for, or one that costs every call: one walk over all connections
 * instead of a timer that each frame restarts.
 */
export function sweep(connections: Connections, limits: ListenerLimits): void {
  connections.nowMs = performance.now();
  const { exchanges, nowMs, sessions, streams } = connections;
  for (const [socket, exchange] of exchanges) sweepExchange(socket, exchange, nowMs, limits);
  const youngest = nowMs - Math.min(limits.requestTimeoutMs, limits.answerTimeoutMs);
  for (const [stream, startedMs] of streams) {
    if (startedMs > youngest) break;
    if (isLeftToHandler(stream)) restart(streams, stream, nowMs);
    else if (isStalled(stream, nowMs - startedMs, limits)) stream.close(resetCodeOf(stream));
  }
  for (const [session, peer] of sessions) {
    if (nowMs - peer.activeMs > limits.sessionIdleTimeoutMs) sweepSession(session, peer, connections, limits);
    else if (nowMs - Math.max(peer.activeMs, peer.probedMs ?? 0) > limits.probeIntervalMs)
      probe(session, peer, nowMs, limits);
  }
}

/** Counts an answer that is not ended from now on; the oldest stay first. */
function restart(streams: Connections["streams"], stream: ServerHttp2Stream, nowMs: number): void {
  streams.delete(stream);
  streams.set(stream, nowMs);
}

function sweepExchange(socket: Socket, exchange: NewestExchange, nowMs: number, limits: ListenerLimits): void {
  if (exchange.response !== undefined && isLeftToHandler(exchange.response)) exchange.startedMs = nowMs;
  const isSending = socket.writableLength > 0 || socket.writableEnded;
  if (isSending && nowMs - exchange.startedMs > limits.answerTimeoutMs) socket.destroy();
  // Let go of a finished request and of whatever the handler hung on it.
  else if (exchange.response?.writableFinished) exchange.response = undefined;
}

/**
 * The client sends no end of its request while it has no answer, or does not take the answer. A stream that is open
 * in both directions, such as server reflection or Watch of the health service, is neither.
 */
function isStalled(stream: ServerHttp2Stream, ageMs: number, limits: ListenerLimits): boolean {
  if (ageMs > limits.answerTimeoutMs && stream.writableLength > 0) return true;
  // Answered, and the client does not end its side: nothing more can come of it.
  if (ageMs > limits.requestTimeoutMs && stream.writableFinished && stream.state.remoteClose !== 1) return true;
  return ageMs > limits.requestTimeoutMs && !stream.headersSent && stream.state.remoteClose !== 1;
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
