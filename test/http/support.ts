import type { IncomingMessage, ServerResponse } from "node:http";
import http2, { type ClientHttp2Session, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import net from "node:net";
import { onTestFinished } from "vitest";
import { type Listener, type ListenerOptions, listen } from "../../src/http/listener.js";
import { createAuthority } from "../support/certificates.js";

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** A listener on a free port, what it reported, and a way to wait for a report. */
export interface Started {
  readonly listener: Listener;
  readonly port: number;
  readonly faults: { where: string; error: unknown }[];
  fault(where: string): Promise<unknown>;
}

/** Starts a listener that the end of the test closes. The default handler is {@link echo}. */
export async function start(options: Partial<ListenerOptions> = {}): Promise<Started> {
  const faults: Started["faults"] = [];
  const awaited: { where: string; resolve: (error: unknown) => void }[] = [];
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    tls: undefined,
    handler: echo,
    onFault: (where, error) => {
      faults.push({ where, error });
      for (const waiter of awaited) if (waiter.where === where) waiter.resolve(error);
    },
    ...options,
  });
  onTestFinished(() => listener.close(0));
  const fault = (where: string) => {
    const seen = faults.find((one) => one.where === where);
    return new Promise((resolve) => (seen ? resolve(seen.error) : awaited.push({ where, resolve })));
  };
  return { listener, port: listener.address.port, faults, fault };
}

/** Reads the whole body, then answers with version, method, target and body. */
export async function echo(req: Request, res: Response): Promise<void> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of req) chunks.push(chunk as Buffer);
  } catch {
    return; // The client went away; there is nobody to answer.
  }
  res.end(`${req.httpVersion} ${req.method} ${req.url} ${Buffer.concat(chunks).toString("latin1")}`);
}

/** Part of an answer; the two types of response differ in their overloads of `write`. */
export function writePart(res: Response, text: string): void {
  (res as ServerResponse).write(text);
}

/** A connection whose input is kept as text; `closed` resolves with all of it, after a reset too. */
export interface RawClient {
  readonly socket: net.Socket;
  readonly closed: Promise<string>;
  /** Resolves with everything so far as soon as it contains `text`. */
  received(text: string): Promise<string>;
}

export async function connectRaw(port: number): Promise<RawClient> {
  const socket = net.connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let input = "";
  const closed = new Promise<string>((resolve) => socket.on("close", () => resolve(input)));
  socket.on("error", () => {}); // A reset is one of the ways in which a server ends a connection: 'close' follows.
  socket.on("data", (chunk) => {
    input += chunk.toString("latin1");
  });
  await new Promise((resolve) => socket.once("connect", resolve));
  const received = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => input.includes(text) && resolve(input);
      socket.on("data", look).on("close", () => reject(new Error(`closed before ${JSON.stringify(text)}: ${input}`)));
      look();
    });
  return { socket, closed, received };
}

/** Ends a connection by a reset alone. resetAndDestroy() sends FIN first, and the other side may never see the reset. */
export function reset(socket: net.Socket): void {
  Object.assign(socket, { resetAndClosing: true }).destroy();
}

/** Sends bytes and resolves with the answer when the server has closed the connection. */
export async function sendRaw(port: number, bytes: string | Buffer): Promise<string> {
  const { socket, closed } = await connectRaw(port);
  socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  return closed;
}

/** A good request on a new connection; resolves with the answer. */
export function sendGood(port: number): Promise<string> {
  return sendRaw(port, "GET /good HTTP/1.1\r\nHost: relay.test\r\nConnection: close\r\n\r\n");
}

/** A client with prior knowledge of HTTP/2, or with TLS when `ca` is given. */
export async function connectHttp2(port: number, options: http2.SecureClientSessionOptions = {}) {
  const scheme = options.ca === undefined ? "http" : "https";
  // Node.js 24 and later reset streams of a client that has many large bodies in hand, above 10 MB by default.
  const session = http2.connect(`${scheme}://localhost:${port}`, { maxSessionMemory: 1000, ...options });
  onTestFinished(() => session.destroy());
  session.on("error", () => {}); // Seen through the streams.
  await new Promise((resolve) => session.once("connect", resolve));
  return session;
}

/** One request; resolves with status and body, rejects when the stream is reset. */
export function request(
  session: ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders = {},
  body?: string | Buffer,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":path": "/", ...headers }, { endStream: body === undefined });
    let status = 0;
    let text = "";
    stream.setEncoding("latin1");
    stream.on("response", (head) => {
      status = head[":status"] ?? 0;
    });
    stream.on("data", (chunk: string) => {
      text += chunk;
    });
    stream.on("error", reject);
    stream.on("close", () => resolve({ status, body: text }));
    if (body !== undefined) stream.end(body);
  });
}

/** A promise and what settles it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** A certificate for localhost, made for this run. */
export function createCertificate(): { cert: Buffer; key: Buffer; ca: string } {
  const authority = createAuthority("listener");
  const { cert, key } = authority.issue({ names: ["localhost"] });
  return { cert: Buffer.from(cert), key: Buffer.from(key), ca: authority.ca };
}
