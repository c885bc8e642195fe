import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Connections } from "./connections.js";
import type { OnFault } from "./dispatch.js";

/** What the parser and the checks of node:http pass to 'clientError'. */
export interface ClientError extends Error {
  code?: string;
  /** The bytes that could not be parsed: a caller's secrets may stand in them. */
  rawPacket?: Buffer;
}

/** Failures of the network: nobody is left to answer. */
const GONE: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT"]);
/** The client ended its side in the middle of a request, most often because it went away. */
const CUT_SHORT = "HPE_INVALID_EOF_STATE";

/** Makes the 'clientError' listener: a short answer where one can still be read as such, then the end of the socket. */
export function createClientErrorListener(
  connections: Connections,
  lingerMs: number,
  onFault: OnFault,
): (error: ClientError, socket: Socket) => void {
  return (error, socket) => {
    if (GONE.has(error.code)) return void socket.destroy();
    // The rest of what was refused comes here too, chunk by chunk, until the linger is over.
    if (socket.writableEnded) return;
    delete error.rawPacket;
    if (error.code !== CUT_SHORT) onFault("client", error);
    const exchange = connections.exchanges.get(socket);
    if (isAnswered(exchange?.response)) return void socket.destroySoon();
    // Without an exchange it is a TLS handshake that failed: the client would not understand.
    if (exchange === undefined || !mayAnswer(socket, exchange.response)) return void socket.destroy();
    refuseSocket(socket, statusLineOf(error.code), lingerMs);
  };
}

/**
 * Whether nothing more may be answered on the connection: the faulty request is the one whose end never came, and has
 * its answer, or it stands behind the last one.
 */
function isAnswered(newest: ServerResponse | undefined): boolean {
  return newest?.writableEnded === true && (!newest.req.complete || !newest.shouldKeepAlive);
}

/**
 * Writes a bare answer, ends the connection, and destroys it after `lingerMs`. Until then input is read and dropped:
 * a socket closed with unread input resets the connection, and the client loses the answer (RFC 9112 section 9.6).
 */
export function refuseSocket(socket: Socket, statusLine: string, lingerMs: number): void {
  socket.end(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once("close", () => clearTimeout(timer));
}

/**
 * Whether bytes written now would be read as the answer to the faulty request: nothing is outstanding, or only that
 * request itself, of which the handler has the head. Otherwise they would answer an earlier, good request.
 */
export function mayAnswer(socket: Socket, newest: ServerResponse | undefined): boolean {
  if (!socket.writable) return false;
  if (newest === undefined || newest.writableFinished) return true;
  return newest.socket === socket && !newest.headersSent && !newest.req.complete;
}

function statusLineOf(code: string | undefined): string {
  if (code === "HPE_HEADER_OVERFLOW") return "431 Request Header Fields Too Large";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "408 Request Timeout" : "400 Bad Request";
}
