import http2, {
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Dispatch, Expectation, OnFault } from "./dispatch.js";
import type { ListenerLimits } from "./limits.js";
import { type Connections, LINGER_MS, type SessionPeer } from "./sweep.js";

/** Creates the function that serves HTTP/2 on a connection, with an HTTP/2 server that never listens itself. */
export function createHttp2(
  limits: ListenerLimits,
  connections: Connections,
  dispatch: Dispatch,
  onFault: OnFault,
): (socket: Socket) => void {
  const server = http2.createServer(serverOptions(limits));
  const { sessions, streams } = connections;
  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
  }
  const begin = (expectation: Expectation, req: Http2ServerRequest, res: Http2ServerResponse) => {
    const stream = res.stream;
    // Opened and reset in one packet: do no work for rapid resets (CVE-2023-44487).
    if (stream.destroyed || stream.closed) return;
    const peer = sessions.get(stream.session as ServerHttp2Session);
    if (peer !== undefined) peer.activeMs = connections.nowMs;
    streams.set(stream, connections.nowMs);
    stream.on("close", forget).on("aborted", endIfAbandoned).on("finish", leaveRest);
    if (peer === undefined || mayBegin(peer)) dispatch(expectation, req, res);
    else peer.queue.push(() => !stream.destroyed && dispatch(expectation, req, res));
  };
  server.on("request", begin.bind(undefined, "none"));
  server.on("checkContinue", begin.bind(undefined, "continue"));
  server.on("checkExpectation", begin.bind(undefined, "unknown"));
  server.on("sessionError", (error) => onFault("session", error));
  return (socket) => {
    // As on a listening HTTP/2 server: a client that ends its side has disconnected, and its calls end.
    socket.allowHalfOpen = false;
    server.once("session", (session) => beginSession(session, socket, connections));
    server.emit("connection", socket);
  };
}

/**
 * A client that cancels its request with NO_ERROR (RFC 9113 section 8.1) has gone, as with any other code. node:http2
 * would pass what has arrived as the whole body, and would wait for somebody to read it before it reports the end.
 */
function endIfAbandoned(this: ServerHttp2Stream): void {
  if (this.rstCode === constants.NGHTTP2_NO_ERROR) this.destroy();
}

/**
 * Closes a stream whose answer is complete and whose request is not (RFC 9113 section 8.1). Not at once: a client that
 * is reset while it sends may give up before it reads.
 */
function leaveRest(this: ServerHttp2Stream): void {
  if (!this.endAfterHeaders && !this.readableEnded)
    setTimeout(() => this.close(constants.NGHTTP2_NO_ERROR), LINGER_MS).unref();
}

/** Most requests of one connection to start in one turn of the event loop: a packet may hold a hundred. */
const MAX_PER_TURN = 8;

/** Whether a request may start in this turn; the others wait for the next turns. */
function mayBegin(peer: SessionPeer): boolean {
  if (peer.begun === 0) setImmediate(beginTurn, peer);
  peer.begun += 1;
  return peer.begun <= MAX_PER_TURN;
}

function beginTurn(peer: SessionPeer): void {
  const next = peer.queue.splice(0, MAX_PER_TURN);
  peer.begun = next.length + peer.queue.length;
  if (peer.begun > 0) setImmediate(beginTurn, peer);
  for (const begin of next) begin();
}

/** Body bytes a client may send ahead on one stream: 10 MiB in 2 s at a round trip of 50 ms; 64 KiB would take 8 s. */
const STREAM_WINDOW_BYTES = 256 * 1024;
/** The same on all streams of a connection: four uploads at full speed. One connection can make us buffer as much. */
const SESSION_WINDOW_BYTES = 1024 * 1024;

function serverOptions(limits: ListenerLimits): http2.ServerOptions {
  return {
    // In units of 1,000,000 bytes, with answers that wait to be sent; above it new streams are reset. It is above
    // RELAY_MAX_BUFFERED_BYTES (256 MiB), which bounds the answers of all connections and refuses with a message.
    maxSessionMemory: 280,
    // Frames sent by mistake. A correct client sends none; one whose stream we reset has a few in flight.
    maxSessionInvalidFrames: 100,
    // decideRequest() answers 431 to a few too many; a header section far beyond it resets the stream.
    maxHeaderListPairs: limits.maxHeaders + 28,
    settings: {
      enablePush: false,
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
  };
}

function beginSession(session: ServerHttp2Session, socket: Socket, { sessions, nowMs }: Connections): void {
  sessions.set(session, { socket, activeMs: nowMs, begun: 0, queue: [] });
  session.on("close", () => sessions.delete(session));
  session.setLocalWindowSize(SESSION_WINDOW_BYTES);
}
