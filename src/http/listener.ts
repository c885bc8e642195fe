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

/** Where to listen and how to handle requests. */
export interface ListenerOptions {
  readonly host: string;
  /** 0 lets the system choose; see {@link Listener.address}. */
  readonly port: number;
  /** With it the port uses TLS (1.2 or later; ALPN h2, http/1.1), without it cleartext with both protocols. */
  readonly tls: TlsMaterial | undefined;
  /** Called for each request of either protocol that names a proper host. It may return a promise. */
  readonly handler: Handler;
  /**
   * Called with an error that is worth a log line; it never holds header values or bodies. `where` is `accept` (the
   * port), `connections` (some were refused: too many in total or from one client, or too many pipelined requests),
   * `client` (malformed HTTP/1 or TLS), `session` (malformed HTTP/2) or `handler` (whatever it threw, unchanged).
   */
  readonly onFault: OnFault;
  /** Whether an address acts for many clients, and is exempt from the limit of one client; by default none is. */
  readonly isTrustedProxy?: (address: string) => boolean;
  readonly limits?: Partial<ListenerLimits>;
  /** See `createDispatch()`. */
  readonly asksItself?: (target: string) => boolean;
}

/** A port in use. */
export interface Listener {
  readonly address: { readonly host: string; readonly port: number };
  /** TCP connections: open ones, and those refused since the start because there were too many. */
  readonly connections: { readonly open: number; readonly refused: number };
  /**
   * Stops accepting, finishes the requests in flight and resolves when all sockets are closed, after at most `quietMs`
   * plus `graceMs`. Idle connections are kept for `quietMs` (0 by default), and answers on them say that they are the
   * last. Further calls return the same promise.
   */
  close(graceMs: number, quietMs?: number): Promise<void>;
}

/**
 * Serves HTTP/1.1 and HTTP/2 on one port.
 *
 * @throws the system's error, such as EADDRINUSE, or an error for a certificate or key that cannot be read.
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

/** The state of one port. */
interface Port {
  readonly connections: Connections;
  readonly places: ClientPlaces;
  readonly limits: ListenerLimits;
}

/** Passes each connection to the protocol that its first bytes show. */
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

/** Sweeps at intervals and reports faults of the port; refused connections are reported once per sweep. */
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
    tell(places.refused - told.refused, `${limits.maxClientConnections} per client`);
    tell(connections.cut - told.cut, `${limits.maxQueuedRequests} pipelined requests`);
    Object.assign(told, { dropped, refused: places.refused, cut: connections.cut });
  }, limits.checkIntervalMs).unref();
  return { stop: () => clearInterval(timer), refused: () => dropped + places.refused };
}

/** Ignores a network failure on one connection: its users are notified by 'close'. */
function ignore(): void {}

/**
 * Reads just enough of a new connection to detect its protocol, puts the bytes back and calls `accept` in the same
 * tick. A connection that ends, or has not shown its protocol after `timeoutMs`, is destroyed.
 *
 * @param waiting holds the connection until then, so that a drain can close those without a request.
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
    // One chunk, one unshift: both protocols then read the rest from the handle, bypassing the stream.
    socket.unshift(seen);
    accept(socket, protocol);
  };
  waiting.add(socket);
  socket.on("readable", read).on("end", cut).on("close", settle);
}

function alpnProtocolOf(socket: Socket): string | false | undefined {
  return "alpnProtocol" in socket ? (socket.alpnProtocol as string | false) : undefined;
}

/** Last stream id in a first GOAWAY, which excludes no stream (RFC 9113 section 6.8). */
const MAX_STREAM_ID = 2 ** 31 - 1;

/**
 * Stops accepting, closes idle connections, lets requests in flight finish as the last on their connection, and
 * destroys what is left after `graceMs`. Resolves when every socket is closed.
 *
 * @param quietMs how long idle connections are kept before that; requests on them are still answered.
 */
async function drain(server: Server, connections: Connections, graceMs: number, quietMs: number): Promise<void> {
  connections.draining = true;
  // Not `close()` of the HTTP server, which also closes idle HTTP/1 connections.
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
  if (quietMs > 0) {
    // Clients open another connection for new requests from then on.
    for (const session of connections.sessions.keys()) {
      // A session stays here until its socket is closed, and one that its client or the sweep has ended would throw.
      if (!session.destroyed) session.goaway(0, MAX_STREAM_ID);
    }
    await Promise.race([closed, delay(quietMs)]);
  }
  connections.refusing = true;
  for (const socket of connections.waiting) socket.destroy();
  // The HTTP server's own `close()` also closes idle connections.
  server.close();
  for (const { response } of connections.exchanges.values()) {
    if (response === undefined || response.writableFinished) continue;
    if (!response.headersSent) response.shouldKeepAlive = false;
    // Its head may have promised keep-alive.
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

/** The first bytes of a client with prior knowledge of HTTP/2 (RFC 9113 section 3.4). */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Detects the protocol from the first bytes of a connection. Pure.
 *
 * @param alpnProtocol outcome of ALPN (RFC 7301): `false` for TLS without it, undefined for cleartext, where only the
 *   preface decides.
 * @returns the protocol, or undefined while the bytes fit both.
 */
export function decideProtocol(first: Buffer, alpnProtocol: string | false | undefined): Protocol | undefined {
  if (first.length === 0) return undefined;
  if (alpnProtocol !== undefined) return alpnProtocol === "h2" ? "http2" : "http1";
  const length = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, length, 0, length) !== 0) return "http1";
  return length === PREFACE.length ? "http2" : undefined;
}

/** Limits the connections of each client, so that one cannot use them all. */
interface ClientPlaces {
  /** Takes a place for a new connection until it closes; false when its client has its maximum. */
  take(socket: Socket): boolean;
  /** Connections that got no place since the start. */
  readonly refused: number;
}

/**
 * Counts open connections by client.
 *
 * @param isExempt whether an address acts for many clients: trusted proxies.
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
      // Without an address it is disconnected already, and closes like any other.
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
