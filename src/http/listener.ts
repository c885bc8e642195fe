import type { Server as HttpServer, Server } from "node:http";
import type { Server as HttpsServer } from "node:https";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { createDispatch, type Handler, type OnFault } from "./dispatch.js";
import { clientNetworkOf, plainAddress } from "./exchange.js";
import { createHttp1, type Http1, type TlsMaterial } from "./http1.js";
import { createHttp2 } from "./http2.js";
import { DEFAULT_LIMITS, type ListenerLimits } from "./limits.js";
import { type Connections, createConnections, sweep } from "./sweep.js";

/** What to listen on and whom to give the requests to. */
export interface ListenerOptions {
  readonly host: string;
  /** 0 lets the system choose; see {@link Listener.address}. */
  readonly port: number;
  /** With it the port speaks TLS (1.2 or later; ALPN h2, http/1.1), without it cleartext with both protocols. */
  readonly tls: TlsMaterial | undefined;
  /** Called for each request of either protocol that names a proper host. It may return a promise. */
  readonly handler: Handler;
  /**
   * Called with an error that is worth a log line; it never holds header values or bodies. `where` is `accept` (the
   * port), `connections` (some were refused, too many in all or of one client), `client` (malformed HTTP/1 or TLS), `session` (malformed
   * HTTP/2) or `handler` (whatever it threw, as it is).
   */
  readonly onFault: OnFault;
  /** Whether an address speaks for many clients and may have all connections; by default none does. */
  readonly isTrustedProxy?: (address: string) => boolean;
  readonly limits?: Partial<ListenerLimits>;
  /** See `createDispatch()`. */
  readonly asksItself?: (target: string) => boolean;
}

/** A port in use. */
export interface Listener {
  readonly address: { readonly host: string; readonly port: number };
  /** TCP connections: those that are open, and those that were refused since the start, being too many. */
  readonly connections: { readonly open: number; readonly refused: number };
  /**
   * Stops accepting, finishes the requests in flight and resolves when all sockets are gone, which is `quietMs` and
   * `graceMs` from now at the latest. Connections that rest are kept for `quietMs` (0 by default), and the answers on
   * them say that they are the last. Further calls return the same promise.
   */
  close(graceMs: number, quietMs?: number): Promise<void>;
}

/**
 * Serves HTTP/1.1 and HTTP/2 on one port.
 *
 * @throws the system's error, such as EADDRINUSE, or that of a certificate or key that cannot be read.
 */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const { tls, handler, onFault, asksItself, isTrustedProxy = () => false } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const connections = createConnections();
  const http1Dispatch = createDispatch(1, limits, handler, onFault, asksItself);
  const http2Dispatch = createDispatch(2, limits, handler, onFault, asksItself);
  const http1 = createHttp1(tls, limits, connections, http1Dispatch, onFault);
  const http2 = createHttp2(limits, connections, http2Dispatch, onFault);
  const places = createClientPlaces(limits.maxClientConnections, isTrustedProxy);
  route(http1, http2, { connections, places, limits });
  await bind(http1.server, options);
  const { stop, refused } = watch(http1.server, { connections, places, limits }, onFault);
  const { address: host, port } = http1.server.address() as AddressInfo;
  let closing: Promise<void> | undefined;
  return {
    address: { host, port },
    get connections() {
      return { open: connections.sockets.size, refused: refused() };
    },
    close: (graceMs, quietMs = 0) => (closing ??= drain(http1.server, connections, graceMs, quietMs).finally(stop)),
  };
}

/** What is kept of one port. */
interface Port {
  readonly connections: Connections;
  readonly places: ClientPlaces;
  readonly limits: ListenerLimits;
}

/** Gives each connection to the protocol that its first bytes show. */
function route(http1: Http1, http2: (socket: Socket) => void, { connections, places, limits }: Port): void {
  http1.server.on("connection", (socket: Socket) => {
    if (!places.take(socket)) return void socket.destroy();
    connections.sockets.add(socket);
    socket.on("close", () => connections.sockets.delete(socket));
  });
  http1.server.on(http1.readyEvent, (socket: Socket) => {
    socket.on("error", ignore);
    if (connections.refusing || socket.destroyed) return void socket.destroy();
    awaitProtocol(socket, connections.waiting, limits.headersTimeoutMs, (ready, protocol) =>
      protocol === "http1" ? http1.accept(ready) : http2(ready),
    );
  });
}

function bind(server: HttpServer | HttpsServer, { host, port }: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Sweeps at intervals and reports faults of the port; connections over the limit once per sweep, not one by one. */
function watch(
  server: HttpServer | HttpsServer,
  { connections, places, limits }: Port,
  onFault: OnFault,
): { readonly stop: () => void; readonly refused: () => number } {
  let dropped = 0;
  const tell = (count: number, limit: string) =>
    count > 0 && onFault("connections", new Error(`refused ${count} over the limit of ${limit}`));
  const told = { dropped: 0, refused: 0, cut: 0 };
  server.on("error", (error) => onFault("accept", error));
  server.on("drop", () => dropped++);
  const timer = setInterval(() => {
    sweep(connections, limits);
    tell(dropped - told.dropped, String(limits.maxConnections));
    tell(places.refused - told.refused, `${limits.maxClientConnections} for one client`);
    tell(connections.cut - told.cut, `${limits.maxQueuedRequests} requests sent ahead`);
    Object.assign(told, { dropped, refused: places.refused, cut: connections.cut });
  }, limits.checkIntervalMs).unref();
  return { stop: () => clearInterval(timer), refused: () => dropped + places.refused };
}

/** A network failure on one connection; whoever uses it learns of it from 'close'. */
function ignore(): void {}

/**
 * Reads just enough of a new connection to know its protocol, puts the bytes back and calls `accept` in the same tick.
 * A connection that ends, or has not said what it is after `timeoutMs`, is destroyed.
 *
 * @param waiting holds the connection until it is decided, so that a drain can cut those that have asked for nothing.
 */
function awaitProtocol(
  socket: Socket,
  waiting: Set<Socket>,
  timeoutMs: number,
  accept: (socket: Socket, protocol: Protocol) => void,
): void {
  const alpnProtocol = alpnProtocolOf(socket);
  let seen: Buffer = Buffer.alloc(0);
  const cut = () => socket.destroy();
  const timer = setTimeout(cut, timeoutMs);
  const settle = () => {
    clearTimeout(timer);
    waiting.delete(socket);
    socket.off("readable", read).off("end", cut).off("close", settle);
  };
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const protocol = decideProtocol(seen, alpnProtocol);
    if (protocol === undefined) return;
    settle();
    // One chunk, one unshift: both protocols then read the rest from the handle, behind the stream's back.
    socket.unshift(seen);
    accept(socket, protocol);
  };
  waiting.add(socket);
  socket.on("readable", read).on("end", cut).on("close", settle);
}

function alpnProtocolOf(socket: Socket): string | false | undefined {
  return "alpnProtocol" in socket ? (socket.alpnProtocol as string | false) : undefined;
}

/** Stands in a first GOAWAY for no stream at all (RFC 9113 section 6.8). */
const MAX_STREAM_ID = 2 ** 31 - 1;

/**
 * Stops accepting, closes what rests, lets requests in flight finish with the last word on their connection, and
 * destroys what is left after `graceMs`. Resolves when every socket is gone.
 *
 * @param quietMs how long connections that rest are kept before that: requests that come on them are still answered.
 */
async function drain(server: Server, connections: Connections, graceMs: number, quietMs: number): Promise<void> {
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

/** A protocol that the port serves: HTTP/1.0 and 1.1, or HTTP/2. */
type Protocol = "http1" | "http2";

/** What a client with prior knowledge of HTTP/2 sends first, RFC 9113 section 3.4. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Judges the first bytes of a connection. Pure.
 *
 * @param alpnProtocol outcome of ALPN (RFC 7301): `false` for TLS without it, undefined for cleartext, where only the
 *   preface tells.
 * @returns the protocol, or undefined while the bytes may become either.
 */
export function decideProtocol(first: Buffer, alpnProtocol: string | false | undefined): Protocol | undefined {
  if (first.length === 0) return undefined;
  if (alpnProtocol !== undefined) return alpnProtocol === "h2" ? "http2" : "http1";
  const length = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, length, 0, length) !== 0) return "http1";
  return length === PREFACE.length ? "http2" : undefined;
}

/** How many connections each client has, so that one cannot take the places of all. */
interface ClientPlaces {
  /** Takes a place for a new connection until it closes; false when its client has as many as it may. */
  take(socket: Socket): boolean;
  /** Connections that got no place since the start. */
  readonly refused: number;
}

/**
 * Counts connections by client, all of which are gone from here when they are closed.
 *
 * @param isExempt addresses that speak for many clients: trusted proxies.
 */
function createClientPlaces(maxOfOne: number, isExempt: (address: string) => boolean): ClientPlaces {
  const taken = new Map<string, number>();
  let refused = 0;

  function free(client: string): void {
    const left = (taken.get(client) ?? 1) - 1;
    if (left === 0) taken.delete(client);
    else taken.set(client, left);
  }

  return {
    take(socket) {
      // Without an address it is gone already, and is closed as any other.
      const address = plainAddress(socket.remoteAddress ?? "");
      if (address === "" || isExempt(address)) return true;
      const client = clientNetworkOf(address);
      const count = taken.get(client) ?? 0;
      if (count >= maxOfOne) {
        refused += 1;
        return false;
      }
      taken.set(client, count + 1);
      socket.once("close", () => free(client));
      return true;
    },
    get refused() {
      return refused;
    },
  };
}
