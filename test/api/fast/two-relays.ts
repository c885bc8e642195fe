import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect } from "node:net";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";

/** Where the fast path is. */
export const PATH = "/relay.v1.RelayService/Call";

/** What a client gets to see, but for what is new each time: dates, and ids of calls. */
export interface Seen {
  readonly head: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly trailers: Readonly<Record<string, unknown>>;
  /** How the stream or the connection ended. */
  readonly end: string;
}

/** Sends one request to the relay of an address. */
export type Send = (url: string) => Promise<Seen>;

/** The same relay twice, with the fast path and with connect-node alone, on one store. */
export interface TwoRelays {
  readonly harness: Harness;
  readonly application: TestApplication;
  readonly withFastPath: string;
  readonly without: string;
  close(): Promise<void>;
}

/** Starts them, with a connected user `ada`. */
export async function startTwoRelays(env: Readonly<Record<string, string>> = {}): Promise<TwoRelays> {
  const harness = await startHarness({ env });
  const application = await harness.createApplication({ allowedOrigins: ["https://app.example"] });
  await harness.connect(application, "ada");
  const without = await harness.startPeer({ fastPath: false });
  return { harness, application, withFastPath: harness.url, without, close: () => harness.close() };
}

/** One piece of a body, or what to wait for before the next. */
type Piece = Buffer | ((session: ClientHttp2Session) => Promise<unknown>);

/** A request over HTTP/2, its body in pieces as they are written; the signal resets its stream. */
export function http2Request(
  headers: OutgoingHttpHeaders,
  body: readonly Piece[] | Buffer | undefined,
  signal?: AbortSignal,
): Send {
  return async (url) => {
    const session = connectHttp2(url);
    try {
      const fields = { ":method": "POST", ":path": PATH, ...headers };
      const stream = session.request(fields, { endStream: body === undefined, ...(signal && { signal }) });
      const seen = { head: {} as IncomingHttpHeaders, trailers: {} as IncomingHttpHeaders, body: "" };
      stream.on("response", (head) => Object.assign(seen.head, head));
      stream.on("trailers", (trailers) => Object.assign(seen.trailers, trailers));
      stream.on("data", (chunk: Buffer) => {
        seen.body += chunk.toString("latin1");
      });
      stream.on("error", () => {}); // Seen in the code of its end.
      stream.on("end", () => stream.close());
      const closed = new Promise((resolve) => stream.on("close", resolve));
      for (const piece of Buffer.isBuffer(body) ? [body] : (body ?? [])) {
        // A relay that has refused the rest takes no more of it.
        const taken = Buffer.isBuffer(piece) ? new Promise((resolve) => stream.write(piece, resolve)) : piece(session);
        await Promise.race([taken, closed]);
      }
      stream.end();
      await closed;
      return seenFrom(seen.head, seen.body, seen.trailers, `code ${stream.rstCode}`);
    } finally {
      session.destroy();
    }
  };
}

/** Bytes over HTTP/1.1; the connection has to end by itself. */
export function http1Request(...pieces: readonly (Buffer | string)[]): Send {
  return async (url) => {
    const { port, hostname } = new URL(url);
    const socket = connect(Number(port), hostname);
    let text = "";
    socket.setNoDelay(true).setEncoding("latin1");
    socket.on("data", (chunk: string) => {
      text += chunk;
    });
    const end = new Promise<string>((resolve) => {
      socket.on("error", (error: NodeJS.ErrnoException) => resolve(`error ${error.code}`));
      socket.on("close", () => resolve("closed"));
    });
    for (const piece of pieces) {
      await new Promise((resolve) => socket.write(piece, "latin1", resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const how = await end;
    const [head = "", ...body] = text.split("\r\n\r\n");
    // In any order: it means nothing.
    return seenFrom({ ...head.split("\r\n").sort() }, body.join("\r\n\r\n"), {}, how);
  };
}

/** The text of a POST over HTTP/1.1 that ends its connection. */
export function post(contentType: string, body: Buffer | string, fields = "", path = PATH): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const head = `POST ${path} HTTP/1.1\r\nHost: relay.test\r\nConnection: close\r\nContent-Type: ${contentType}\r\n${fields}`;
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`, "latin1"), bytes]);
}

function seenFrom(head: object, body: string, trailers: object, end: string): Seen {
  return { head: withoutNew(head), body: plain(body), trailers: withoutNew(trailers), end };
}

function withoutNew(fields: object): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]) => [
    name,
    typeof value === "string" ? plain(value) : value,
  ]);
  return Object.fromEntries(entries.filter(([name]) => name !== "date" && name !== "x-request-id"));
}

/** What stands for an id or a date is as long as they are, so that a message still is one. */
function plain(text: string): string {
  return text
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, "<id>".padEnd(36))
    .replace(/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>".padEnd(29));
}
