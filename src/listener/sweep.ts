import { constants, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Connections, NewestExchange } from "./connections.js";
import type { ListenerLimits } from "./limits.js";

/** Cuts what node:http and node:http2 have no timeout for. One walk for all connections instead of a timer per call. */
export function sweep(connections: Connections, limits: ListenerLimits): void {
  connections.nowMs = performance.now();
  for (const [socket, exchange] of connections.exchanges) sweepExchange(socket, exchange, connections.nowMs, limits);
  const youngest = connections.nowMs - Math.min(limits.requestTimeoutMs, limits.answerTimeoutMs);
  for (const [stream, startedMs] of connections.streams) {
    if (startedMs > youngest) break;
    if (isStalled(stream, connections.nowMs - startedMs, limits)) stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

function sweepExchange(socket: Socket, exchange: NewestExchange, nowMs: number, limits: ListenerLimits): void {
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
  return ageMs > limits.requestTimeoutMs && !stream.headersSent && stream.state.remoteClose !== 1;
}
