import http2, {
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Connections } from "./connections.js";
import type { Dispatch, Expectation, OnFault } from "./dispatch.js";
import type { ListenerLimits } from "./limits.js";

/** Makes the function that speaks HTTP/2 on a connection, with an HTTP/2 server that never listens itself. */
export function createHttp2(
  limits: ListenerLimits,
  connections: Connections,
  dispatch: Dispatch,
  onFault: OnFault,
): (socket: Socket) => void {
  const server = http2.createServer(serverOptions(limits));
  const { streams } = connections;
  function forget(this: ServerHttp2Stream): void {
    streams.delete(this);
  }
  const begin = (expectation: Expectation, req: Http2ServerRequest, res: Http2ServerResponse) => {
    const stream = res.stream;
    // Opened and reset in one packet: no work for rapid resets (CVE-2023-44487).
    if (stream.destroyed || stream.closed) return;
    streams.set(stream, connections.nowMs);
    stream.on("close", forget);
    dispatch(expectation, req, res);
  };
  server.on("request", begin.bind(undefined, "none"));
  server.on("checkContinue", begin.bind(undefined, "continue"));
  server.on("checkExpectation", begin.bind(undefined, "unknown"));
  server.on("sessionError", (error) => onFault("session", error));
  return (socket) => {
    // As for sockets of an HTTP/2 server of its own: a client that ends its side has gone, and its calls with it.
    socket.allowHalfOpen = false;
    server.once("session", (session) => beginSession(session, socket, limits, connections));
    server.emit("connection", socket);
  };
}

function serverOptions(limits: ListenerLimits): http2.ServerOptions {
  return {
    maxSessionMemory: limits.maxSessionMemoryMb,
    maxSessionInvalidFrames: limits.maxSessionInvalidFrames,
    maxSessionRejectedStreams: limits.maxSessionRejectedStreams,
    // decideRequest() answers 431 to a few too many; a header section far beyond it resets the stream.
    maxHeaderListPairs: limits.maxHeaders + 28,
    settings: {
      enablePush: false,
      initialWindowSize: limits.streamWindowBytes,
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
  };
}

function beginSession(
  session: ServerHttp2Session,
  socket: Socket,
  limits: ListenerLimits,
  connections: Connections,
): void {
  connections.sessions.add(session);
  session.on("close", () => connections.sessions.delete(session));
  session.setLocalWindowSize(limits.sessionWindowBytes);
  const cut = () => socket.destroy();
  session.setTimeout(limits.sessionIdleTimeoutMs);
  // Not the callback of setTimeout(): that one is called once only.
  session.on("timeout", () => {
    if (hasStreams(session, connections)) return probe(session, limits, cut);
    session.close();
    // A graceful close ends our side and waits for the peer, which may never end its own.
    setTimeout(cut, limits.lingerMs).unref();
  });
}

/**
 * Asks a silent peer that has streams open for a sign of life and cuts it if none comes. Besides peers that vanished
 * this ends connections that node:http2 gave up after a protocol error: it sends GOAWAY, reads no more and stays.
 */
function probe(session: ServerHttp2Session, limits: ListenerLimits, cut: () => void): void {
  const timer = setTimeout(cut, limits.headersTimeoutMs).unref();
  session.ping((error) => {
    clearTimeout(timer);
    // The answer does not count as activity: without this the timeout would not strike again.
    if (error === null) session.setTimeout(limits.sessionIdleTimeoutMs);
  });
}

function hasStreams(session: ServerHttp2Session, connections: Connections): boolean {
  for (const stream of connections.streams.keys()) if (stream.session === session) return true;
  return false;
}
