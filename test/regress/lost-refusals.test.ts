import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectHttp2, connectRaw } from "../http/support.js";
import { type Harness, startHarness } from "../support/harness.js";

/**
 * A request that was refused before it was read to its end once lost its answer over HTTP/1.1, when its client wrote all
 * of it before it read: the socket was closed with unread input, and so reset. Over HTTP/2 its stream stayed open. The
 * body of one that nobody serves was read for as long as a whole request may take.
 */
const MIB = 1024 * 1024;
/** More than there is room for. */
const BODY = Buffer.alloc(2 * MIB);
const PIECE = Buffer.alloc(1000);

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_MCP: "on", RELAY_MAX_BUFFERED_BYTES: String(MIB) } });
});

afterAll(() => harness.close());

const port = () => Number(new URL(harness.url).port);
const QUERY = "user_id=u&public_key=k";
/** More than is read after a refusal. */
const LONG = { "content-type": "application/grpc-web+proto", "content-length": String(50 * MIB) };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** Path, fields and the status of the answer. */
const REFUSED: ReadonlyArray<[string, string, Readonly<Record<string, string>>, number]> = [
  ["a coded body on the JSON route", `/oauth/method/sandbox/call?${QUERY}`, { "content-encoding": "gzip" }, 200],
  ["a body without room on the JSON route", `/oauth/method/sandbox/call?${QUERY}`, {}, 200],
  ["a coded body on the raw route", `/oauth/method/sandbox/stream?${QUERY}`, { "content-encoding": "gzip" }, 400],
  ["a body without room on the raw route", `/oauth/method/sandbox/stream?${QUERY}`, {}, 503],
  ["a connect link that is too large", "/oauth/connect-links", {}, 413],
  ["a message to MCP without a token", "/mcp", {}, 401],
  ["a form that is too large", "/oauth/connect", FORM, 413],
  ["a typed call that is half-read", "/relay.v1.RelayService/Call", LONG, 200],
  ["a path that nobody serves", "/nowhere", {}, 404],
  ["a method that a path does not take", "/healthz", {}, 405],
  ["a passed-through request without a caller", "/via/sandbox/127.0.0.1/a", {}, 403],
];

/** Resolves when something is told on a channel. */
function toldOnce(channel: string): Promise<void> {
  return new Promise((resolve) => {
    const listener = () => {
      unsubscribe(channel, listener);
      resolve();
    };
    subscribe(channel, listener);
  });
}

/** Sends an unfinished request, and reads nothing before it is written. */
async function sendUnread(
  path: string,
  fields: Readonly<Record<string, string>>,
  host = "relay.test",
): Promise<string> {
  const { socket, closed } = await connectRaw(port());
  socket.pause();
  const lines = Object.entries({ host, "content-length": 5 * MIB, ...fields }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const answered = toldOnce("http.server.response.finish");
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  socket.write(BODY);
  await answered;
  // The write after one that caused a reset fails, and then nothing can be read.
  for (let round = 0; round < 3 && !socket.destroyed; round++) {
    await new Promise((resolve) => socket.write(PIECE, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.resume();
  return closed;
}

describe("a request that is refused before it was read to its end", () => {
  it.each(REFUSED)("gets its answer over HTTP/1.1, as the last: %s", async (_what, path, fields, status) => {
    const answer = await sendUnread(path, fields);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n[^]*\\r\\n.`, "i"));
  });

  it("keeps its connection when its body is short", async () => {
    const { socket, closed } = await connectRaw(port());
    const post = (path: string, body: string) =>
      `POST ${path} HTTP/1.1\r\nhost: relay.test\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    socket.write(post("/nowhere", "{}") + post("/healthz", "") + post("/via/sandbox/127.0.0.1/a", "a"));
    socket.write("GET /healthz HTTP/1.1\r\nhost: relay.test\r\nconnection: close\r\n\r\n");
    expect((await closed).match(/HTTP\/1\.1 \d+/g)).toEqual([404, 405, 403, 200].map((status) => `HTTP/1.1 ${status}`));
  });

  it.each([
    ["an invalid Host", "/", "a b", 400],
    ["a path that nobody serves, in its client's last request", "/nowhere", "relay.test", 404],
  ])("gets its answer over HTTP/1.1 from the listener as well: %s", async (_what, path, host, status) => {
    const answer = await sendUnread(path, { connection: "close" }, host);
    expect(answer).toContain(`HTTP/1.1 ${status} `);
  });

  // Node.js itself closes the stream of one of which nothing was read.
  const halfRead = REFUSED.filter(([what]) => /without room|half-read/.test(what));
  it.each(halfRead)(
    "has its stream closed over HTTP/2: %s",
    async (_what, path, fields, status) => {
      const session = await connectHttp2(port());
      const stream = session.request({ ":method": "POST", ":path": path, "content-length": 5 * MIB, ...fields });
      const responded = once(stream, "response");
      stream.on("error", () => {}); // Seen in the code.
      stream.resume().write(BODY);
      const [head] = await responded;
      // Node.js emits no 'close' while it has bytes to send.
      while (!stream.closed) await new Promise((resolve) => setImmediate(resolve));
      expect([head[":status"], stream.rstCode]).toEqual([status, 0]);
      // The sweep would take half a minute.
    },
    15_000,
  );
});
