import { once } from "node:events";
import type { Http2ServerResponse } from "node:http2";
import { describe, expect, it } from "vitest";
import { END_HEADERS, frame, getBlock, HEADERS, HELLO, PING, SETTINGS, uint32 } from "./frames.js";
import {
  connectHttp2,
  connectRaw,
  gate,
  type Response,
  request,
  sendGood,
  sendRaw,
  start,
  writePart,
} from "./support.js";

const SHORT = { headersTimeoutMs: 100, requestTimeoutMs: 100, checkIntervalMs: 20 };
const HEAD = "POST / HTTP/1.1\r\nHost: x\r\n";
/** Settings with SETTINGS_INITIAL_WINDOW_SIZE 0: the client takes no body. RFC 9113 section 6.5.2. */
const NO_WINDOW = frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)]));

describe("timeouts of HTTP/1", () => {
  it("cuts a connection that sends nothing, without a word", async () => {
    const { port } = await start({ limits: SHORT });
    expect(await (await connectRaw(port)).closed).toBe("");
  });

  it("cuts a connection that stops in the middle of the HTTP/2 preface", async () => {
    const { port } = await start({ limits: SHORT });
    expect(await sendRaw(port, "PRI * HT")).toBe("");
  });

  it.each([
    ["header section", `${HEAD}A: `],
    ["body", `${HEAD}Content-Length: 9\r\n\r\nabc`],
  ])("answers 408 to a %s that does not end, and serves others meanwhile", async (_name, bytes) => {
    const { port } = await start({ limits: { ...SHORT, requestTimeoutMs: 200 } });
    const slow = sendRaw(port, bytes);
    expect(await sendGood(port)).toContain("1.1 GET /good");
    expect(await slow).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("answers 408 to a body that drips", async () => {
    const { port } = await start({ limits: SHORT });
    const { socket, closed } = await connectRaw(port);
    socket.write(`${HEAD}Content-Length: 1000000\r\n\r\n`);
    const drip = setInterval(() => socket.write("a"), 10);
    expect(await closed.finally(() => clearInterval(drip))).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("does not apply to a call that takes long", async () => {
    const { opened, open } = gate();
    const { port } = await start({ limits: SHORT, handler: (_req, res) => void opened.then(() => res.end("late")) });
    const answer = sendGood(port);
    expect(await sendRaw(port, `${HEAD}A: `)).toMatch(/^HTTP\/1\.1 408 /);
    open();
    expect(await answer).toContain("late");
  });

  it("cuts a connection that rests too long between requests", async () => {
    const { port } = await start({ limits: { keepAliveTimeoutMs: 1 } });
    expect(await sendRaw(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("cuts a client that does not take its answer", async () => {
    const closed = gate();
    const { port } = await start({ limits: { ...SHORT, answerTimeoutMs: 100 }, handler: large(closed.open) });
    const { socket } = await connectRaw(port);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed.opened;
    expect((await start()).port).toBeGreaterThan(0);
  });
});

describe("timeouts of HTTP/2", () => {
  it("resets a stream whose body does not end", async () => {
    const { port } = await start({ limits: SHORT });
    const session = await connectHttp2(port);
    const stream = session.request({ ":method": "POST" });
    stream.write("abc");
    const [error] = await once(stream, "error").catch((reason) => [reason]);
    expect(error).toMatchObject({ message: expect.stringContaining("NGHTTP2_ENHANCE_YOUR_CALM") });
    expect((await request(session)).status).toBe(200);
  });

  it("leaves a stream alone that is answered while its body is open", async () => {
    const { port } = await start({
      limits: SHORT,
      handler: (req, res) => {
        writePart(res, "begun ");
        req.on("end", () => res.end("done")).resume();
      },
    });
    const session = await connectHttp2(port);
    const open = session.request({ ":method": "POST" });
    let body = "";
    open.setEncoding("latin1").on("data", (chunk: string) => {
      body += chunk;
    });
    await once(open, "data");
    const other = session.request({ ":method": "POST" });
    other.on("error", () => {});
    await request(session, { ":method": "POST" }, "x");
    open.end();
    await once(open, "close");
    other.destroy();
    expect(body).toBe("begun done");
  });

  it("resets a stream whose client does not take the answer, though the connection is alive", async () => {
    const closed = gate();
    const { port } = await start({ limits: { ...SHORT, answerTimeoutMs: 100 }, handler: large(closed.open) });
    const { socket } = await connectRaw(port);
    socket.write(Buffer.concat([HELLO, NO_WINDOW, frame(HEADERS, END_HEADERS | 1, 1, getBlock("x"))]));
    const alive = setInterval(() => socket.write(frame(PING, 0, 0, Buffer.alloc(8))), 10);
    await closed.opened.finally(() => clearInterval(alive));
    expect(await sendGoodLarge(port)).toBe(LARGE_BYTES);
  });

  it("closes a connection without streams gracefully, and does not wait for the peer", async () => {
    const { port } = await start({ limits: { sessionIdleTimeoutMs: 50, lingerMs: 50 } });
    const session = await connectHttp2(port);
    const [code] = await once(session, "goaway");
    expect(code).toBe(0);
    expect(await sendRaw(port, HELLO)).not.toBe("");
  });

  it("keeps a silent connection whose stream is open as long as the peer answers pings", async () => {
    const { opened, open } = gate();
    const { port } = await start({
      limits: { sessionIdleTimeoutMs: 50 },
      handler: (_req, res) => void opened.then(() => res.end("late")),
    });
    const session = await connectHttp2(port);
    const answer = request(session);
    for (let pings = 0; pings < 3; pings++) await once(session, "ping");
    open();
    expect(await answer).toEqual({ status: 200, body: "late" });
  });

  it("cuts a connection with an open stream whose peer is silent", async () => {
    const closed = gate();
    const { port } = await start({
      limits: { ...SHORT, sessionIdleTimeoutMs: 50 },
      handler: (_req, res) => void res.on("close", closed.open),
    });
    await sendRaw(port, Buffer.concat([HELLO, frame(HEADERS, END_HEADERS | 1, 1, getBlock("x"))]));
    await closed.opened;
  });

  it("cuts a connection with an open stream after a protocol error", async () => {
    const { port } = await start({ limits: { ...SHORT, sessionIdleTimeoutMs: 50 }, handler: () => {} });
    const error = frame(SETTINGS, 0, 1);
    await sendRaw(port, Buffer.concat([HELLO, frame(HEADERS, END_HEADERS | 1, 1, getBlock("x")), error]));
    const session = await connectHttp2(port);
    expect(session.closed).toBe(false);
  });
});

const LARGE_BYTES = 32 * 1024 * 1024;

/** Answers more than the kernel takes without a reader. */
function large(onClose: () => void): (req: unknown, res: Response) => void {
  return (_req, res: Response | Http2ServerResponse) => {
    res.on("close", onClose);
    res.end(Buffer.alloc(LARGE_BYTES));
  };
}

async function sendGoodLarge(port: number): Promise<number> {
  const answer = await sendRaw(port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return answer.length - answer.indexOf("\r\n\r\n") - 4;
}
