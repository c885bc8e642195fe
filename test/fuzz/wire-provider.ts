import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { faultOf, fieldValue, readWireRequest, type WireRequest } from "./wire-request.js";

/** Answers a request with whatever bytes it likes. */
export type Play = (socket: Socket, request: WireRequest) => void;

/** A provider made of bytes: it holds every request to the strictest reading and knows whose it is by its token. */
export interface WireProvider {
  readonly port: number;
  /** Sockets open now. */
  readonly open: number;
  /** What was wrong with requests, each problem once. */
  readonly faults: ReadonlySet<string>;
  /** The requests that came with this token since the last time. */
  take(token: string): readonly WireRequest[];
  /** How requests with this token are answered from now on; {@link playOk} until then. */
  play(token: string, play: Play): void;
  /** Resolves when no socket is open. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

const OK_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n";
const OK_BODY = '{"ok":true}';

/** The answer of a provider that does nothing special. */
function playOk(socket: Socket, { method }: WireRequest): void {
  socket.write(method === "HEAD" ? OK_HEAD : OK_HEAD + OK_BODY);
}

/** @param hosts names that the provider may be called by, in Host. */
export async function startWireProvider(hosts: readonly string[] = ["127.0.0.1"]): Promise<WireProvider> {
  const inboxes = new Map<string, WireRequest[]>();
  const plays = new Map<string, Play>();
  const faults = new Set<string>();
  const open = new Set<Socket>();
  let onClosed = () => {};
  const server = createServer((socket) => {
    open.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}); // The relay may reset when it gives an answer up; 'close' follows.
    socket.on("close", () => {
      open.delete(socket);
      onClosed();
    });
    readRequests(socket, faults, (request) => receive(socket, request));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const authorities = new Set(hosts.map((host) => `${host}:${port}`));

  function receive(socket: Socket, request: WireRequest): void {
    const authority = fieldValue(request.fields, "host") ?? "";
    const fault = faultOf(request, authorities.has(authority) ? authority : `one of ${[...authorities]}`, isToken);
    if (fault !== undefined) faults.add(fault);
    const token = tokenOf(request);
    inboxes.get(token)?.push(request);
    (plays.get(token) ?? playOk)(socket, request);
  }

  function isToken(value: string): boolean {
    return value.startsWith("Bearer ") && inboxes.has(value.slice("Bearer ".length));
  }

  return {
    port,
    faults,
    get open() {
      return open.size;
    },
    take(token) {
      const requests = inboxes.get(token) ?? [];
      inboxes.set(token, []);
      return requests;
    },
    play: (token, play) => void plays.set(token, play),
    idle: () => untilEmpty(open, (watcher) => (onClosed = watcher)),
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

function tokenOf({ fields }: WireRequest): string {
  return (fieldValue(fields, "authorization") ?? "").slice("Bearer ".length);
}

function untilEmpty(open: ReadonlySet<Socket>, watch: (watcher: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const watcher = () => {
      if (open.size === 0) resolve();
    };
    watch(watcher);
    watcher();
  });
}

/** One call at a time on a socket: whatever stands behind a request before it is answered was smuggled. */
function readRequests(socket: Socket, faults: Set<string>, onRequest: (request: WireRequest) => void): void {
  let buffered: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    const read = readWireRequest(buffered);
    if (read === undefined) return;
    if ("fault" in read || buffered.length > read.end) {
      faults.add("fault" in read ? read.fault : "bytes behind the end of a request");
      return void socket.destroy();
    }
    buffered = Buffer.alloc(0);
    onRequest(read.request);
  });
}
