import type { Server } from "node:http";
import type { Connections } from "./connections.js";

/**
 * Stops accepting, closes what rests, lets requests in flight finish with the last word on their connection, and
 * destroys what is left after `graceMs`. Resolves when every socket is gone.
 */
export async function drain(
  server: Pick<Server, "close" | "closeIdleConnections">,
  connections: Connections,
  graceMs: number,
): Promise<void> {
  connections.draining = true;
  // Also closes HTTP/1 connections that rest between two requests.
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const socket of connections.waiting) socket.destroy();
  for (const { response } of connections.exchanges.values()) {
    if (response === undefined || response.writableFinished) continue;
    if (!response.headersSent) response.shouldKeepAlive = false;
    // Its head may have promised to keep the connection.
    response.once("close", () => server.closeIdleConnections());
  }
  // GOAWAY, RFC 9113 section 6.8
  for (const session of connections.sessions.keys()) session.close();
  const timer = setTimeout(() => destroyAll(connections), graceMs);
  await closed;
  clearTimeout(timer);
}

function destroyAll(connections: Connections): void {
  for (const socket of connections.sockets) socket.destroy();
}
