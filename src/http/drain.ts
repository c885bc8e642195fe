import type { Server } from "node:http";
import { Server as NetServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Connections } from "./connections.js";

/** Stands in a first GOAWAY for no stream at all (RFC 9113 section 6.8). */
const MAX_STREAM_ID = 2 ** 31 - 1;

/**
 * Stops accepting, closes what rests, lets requests in flight finish with the last word on their connection, and
 * destroys what is left after `graceMs`. Resolves when every socket is gone.
 *
 * @param quietMs how long connections that rest are kept before that: requests that come on them are still answered.
 */
export async function drain(server: Server, connections: Connections, graceMs: number, quietMs: number): Promise<void> {
  connections.draining = true;
  // Not that of the HTTP server, which also closes HTTP/1 connections that rest between two requests.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  if (quietMs > 0) {
    // The client opens another connection for what it begins from here on.
    for (const session of connections.sessions.keys()) session.goaway(0, MAX_STREAM_ID);
    await Promise.race([closed, delay(quietMs)]);
  }
  connections.refusing = true;
  for (const socket of connections.waiting) socket.destroy();
  // This one closes what rests.
  server.close();
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
