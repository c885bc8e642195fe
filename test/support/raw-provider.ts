import { once } from "node:events";
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** One request as it came over the wire. */
export interface RawRequest {
  /** Request line and field lines, without the empty line; latin1. */
  readonly head: string;
  readonly body: Buffer;
  /** How many requests came on this socket before. */
  readonly indexOnSocket: number;
  readonly socket: Socket;
}

/** What the provider does with a request: writes whatever bytes it likes. */
export type Play = (socket: Socket, request: RawRequest) => void;

/** A provider made of bytes, on 127.0.0.1 and a free port. */
export interface RawProvider {
  readonly origin: string;
  readonly port: number;
  readonly requests: readonly RawRequest[];
  /** Sockets accepted since the start. */
  readonly accepted: number;
  /** Sockets open now. */
  readonly open: ReadonlySet<Socket>;
  /** Resolves when that many requests have come. */
  seen(count: number): Promise<void>;
  /** Resolves when no more than that many sockets are open, idle ones as well. */
  openAtMost(count: number): Promise<void>;
  /** Resolves when the socket is closed that the request of this index came on. */
  letGo(index: number): Promise<void>;
  close(): Promise<void>;
}

/** What differs from a plain provider. */
export interface RawProviderOptions {
  /** Speaks TLS. */
  readonly tls?: TlsOptions;
  /** Called for each accepted socket, before any request. */
  readonly onConnection?: (socket: Socket) => void;
  /** The host in `origin`; default 127.0.0.1. */
  readonly host?: string;
}

/** Starts a provider that answers every request with what `play` writes. */
export async function startRawProvider(play: Play, options: RawProviderOptions = {}): Promise<RawProvider> {
  const requests: RawRequest[] = [];
  const open = new Set<Socket>();
  const watchers = new Set<() => void>();
  let accepted = 0;
  const wake = () => {
    for (const watcher of watchers) watcher();
  };
  const until = (holds: () => boolean) =>
    new Promise<void>((resolve) => {
      const watcher = () => {
        if (!holds()) return;
        watchers.delete(watcher);
        resolve();
      };
      watchers.add(watcher);
      watcher();
    });
  const accept = (socket: Socket) => {
    options.onConnection?.(socket);
    socket.on("close", wake);
    readRequests(socket, (request) => {
      requests.push(request);
      wake();
      play(socket, request);
    });
  };
  const server: Server = options.tls === undefined ? createNetServer(accept) : createTlsServer(options.tls, accept);
  server.on("connection", (socket: Socket) => {
    accepted += 1;
    open.add(socket);
    // What a test writes is at the relay at once, and not held back until the relay writes again (Nagle).
    socket.setNoDelay(true);
    socket.on("error", () => {
      // The peer may reset whenever it likes: that is what many tests are about.
    });
    socket.on("close", () => {
      open.delete(socket);
      wake();
    });
  });
  server.on("tlsClientError", () => {
    // Clients that refuse the certificate.
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    origin: `${options.tls === undefined ? "http" : "https"}://${options.host ?? "127.0.0.1"}:${port}`,
    port,
    requests,
    open,
    get accepted() {
      return accepted;
    },
    seen: (count) => until(() => requests.length >= count),
    openAtMost: (count) => until(() => open.size <= count),
    letGo: (index) => until(() => requests[index]?.socket.destroyed === true),
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** A complete answer with a length; the default of most tests. */
export function answer(body: string | Buffer, ...fields: string[]): Buffer {
  const bytes = Buffer.from(body as string);
  return Buffer.concat([
    Buffer.from(["HTTP/1.1 200 OK", `Content-Length: ${bytes.length}`, ...fields, "", ""].join("\r\n"), "latin1"),
    bytes,
  ]);
}

function readRequests(socket: Socket, onRequest: (request: RawRequest) => void): void {
  let buffered = Buffer.alloc(0);
  let indexOnSocket = 0;
  socket.on("error", () => {
    // As above; a TLS socket is not the one that "connection" reported.
  });
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    for (let end = buffered.indexOf("\r\n\r\n"); end !== -1; end = buffered.indexOf("\r\n\r\n")) {
      const head = buffered.toString("latin1", 0, end);
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0);
      if (buffered.length < end + 4 + length) return;
      const body = buffered.subarray(end + 4, end + 4 + length);
      buffered = buffered.subarray(end + 4 + length);
      onRequest({ head, body, indexOnSocket, socket });
      indexOnSocket += 1;
    }
  });
}
