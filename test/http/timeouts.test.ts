import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { ClientHttp2Stream } from "node:http2";
import net from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { requestBodyOf } from "../../src/api/via/request-body.js";
import type { Handler } from "../../src/http/dispatch.js";
import { endWith } from "../../src/http/exchange.js";
import { DEFAULT_LIMITS } from "../../src/http/limits.js";
import { END_HEADERS, frame, getBlock, HEADERS, HELLO, PING, SETTINGS, uint32 } from "./frames.js";
import {
  connectHttp2,
  connectRaw,
  gate,
  type Request,
  type Response,
  request,
  sendGood,
  sendRaw,
  start,
  writePart,
} from "./support.js";

const SHORT = { headersTimeoutMs: 300, requestTimeoutMs: 300, checkIntervalMs: 20 };
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

  it.each(["", "PRI * HT"])("closes at once a connection that ends after %j", async (bytes) => {
    const { port } = await start({ limits: { headersTimeoutMs: 600_000, requestTimeoutMs: 600_000 } });
    const { socket, closed } = await connectRaw(port);
    socket.end(bytes);
    expect(await closed).toBe("");
  });

  it.each([
    ["header section", `${HEAD}A: `],
    ["body", `${HEAD}Content-Length: 9\r\n\r\nabc`],
  ])("answers 408 to a %s that does not end, and serves others meanwhile", async (_name, bytes) => {
    const { port } = await start({ limits: { ...SHORT, requestTimeoutMs: 600 } });
    const slow = sendRaw(port, bytes);
    expect(await sendGood(port)).toContain("1.1 GET /good");
    expect(await slow).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("does not limit a body of the pass-through that waits for its turn", async () => {
    const held = gate();
    const handler = (request: Request, response: Response) => {
      if (request.url !== "/via") return;
      requestBodyOf(request, response, { maxBytes: 9, proofs: () => expect.unreachable(), onBytes: () => {} });
      void held.opened.then(() => response.end("in the end"));
    };
    const { port } = await start({ limits: SHORT, handler });
    const [waiting, other] = [await connectRaw(port), await connectRaw(port)];
    waiting.socket.write("POST /via HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc");
    other.socket.write(`${HEAD}Content-Length: 9\r\n\r\nabc`);
    // Of the two, which began together, the other is cut.
    expect(await other.closed).toMatch(/^HTTP\/1\.1 408 /);
    held.open();
    expect(await waiting.received("in the end")).toMatch(/^HTTP\/1\.1 200 /);
    waiting.socket.destroy();
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
    const { port } = await start({ limits: { ...SHORT, writeTimeoutMs: 300 }, handler: large(closed.open) });
    const { socket } = await connectRaw(port);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed.opened;
    expect(await sendGood(port)).toContain("small");
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

  it.each([
    ["is answered while its body is open", "POST", "begun done"],
    ["waits for its answer after its body has ended", "GET", "done"],
  ])("leaves a stream alone that %s", async (_name, method, body) => {
    const { opened, open } = gate();
    const arrived = gate();
    const { port } = await start({
      limits: SHORT,
      handler: (req, res) => {
        if (req.url === "/stalls") return;
        if (method === "POST") writePart(res, "begun ");
        arrived.open();
        void opened.then(() => res.end("done"));
      },
    });
    const session = await connectHttp2(port);
    const older = request(session, { ":method": method }, method === "POST" ? "x".repeat(1_000_000) : undefined);
    await arrived.opened;
    await expect(request(session, { ":path": "/stalls", ":method": "POST" }, "x".repeat(1_000_000))).rejects.toThrow();
    open();
    expect(await older).toEqual({ status: 200, body });
  });

  it("resets a stream whose client does not take the answer, though the connection is alive", async () => {
    const closed = gate();
    const { port } = await start({ limits: { ...SHORT, writeTimeoutMs: 300 }, handler: large(closed.open) });
    const { socket } = await connectRaw(port);
    socket.write(Buffer.concat([HELLO, NO_WINDOW, frame(HEADERS, END_HEADERS | 1, 1, getBlock("x"))]));
    const alive = setInterval(() => socket.write(frame(PING, 0, 0, Buffer.alloc(8))), 10);
    await closed.opened.finally(() => clearInterval(alive));
    expect(await sendGood(port)).toContain("small");
  });

  it("closes a connection without streams gracefully", async () => {
    const { port } = await start({ limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 50 } });
    const session = await connectHttp2(port);
    const [code] = await once(session, "goaway");
    expect(code).toBe(0);
  });

  it("keeps a connection on which requests come", async () => {
    const { port } = await start({ limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 1000 } });
    const session = await connectHttp2(port);
    for (const endMs = performance.now() + 1500; performance.now() < endMs; ) {
      await request(session);
      // A while without a stream.
      await new Promise((resolve) => session.ping(resolve as () => void));
    }
    expect(session.closed).toBe(false);
  });

  it("does not wait for a peer that never closes its side", async () => {
    const { port } = await start({ limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 50 } });
    const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.resume().write(HELLO);
    await once(socket, "end");
    // Writes fail once the other end is gone altogether.
    const probe = setInterval(() => socket.write(frame(PING, 0, 0, Buffer.alloc(8))), 10);
    await new Promise((resolve) => socket.once("error", resolve)).finally(() => clearInterval(probe));
  });

  it("keeps a silent connection whose stream is open as long as the peer answers pings", async () => {
    const { opened, open } = gate();
    const { port } = await start({
      limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 50 },
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

describe("an answer that is larger than what waits for a client", () => {
  it.each([
    ["HTTP/1.1", pausedHttp1],
    ["HTTP/2", pausedHttp2],
  ])("goes over %s as slowly as it is read, and is cut when nothing of it is taken any more", async (_name, ask) => {
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const answered = gate();
    const closed = gate();
    let response: Response | undefined;
    const { port } = await start({
      handler: (_req, res) => {
        response = res.on("close", closed.open);
        endWith(res, [Buffer.alloc(64 * 1024 * 1024)]);
        answered.open();
      },
    });
    const client = await ask(port);
    await answered.opened;
    const { writeTimeoutMs } = DEFAULT_LIMITS;
    for (let round = 0; round < 6; round++) {
      vi.advanceTimersByTime(0.9 * writeTimeoutMs);
      const taken = once(response as Response, "drain");
      client.resume();
      await Promise.race([taken, closed.opened.then(() => Promise.reject(new Error(`cut in round ${round}`)))]);
      client.pause();
    }
    vi.advanceTimersByTime(1.2 * writeTimeoutMs);
    await closed.opened;
  });
});

async function pausedHttp1(port: number): Promise<Pick<net.Socket, "pause" | "resume">> {
  const { socket } = await connectRaw(port);
  socket.pause().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return socket;
}

async function pausedHttp2(port: number): Promise<Pick<ClientHttp2Stream, "pause" | "resume">> {
  const stream = (await connectHttp2(port)).request({ ":path": "/" });
  stream.on("error", () => {}); // It is reset at last.
  return stream.pause();
}

/** Answers `/` with more than the kernel takes without a reader. */
function large(onClose: () => void): Handler {
  return (req, res) => {
    if (req.url !== "/") return void res.end("small");
    res.on("close", onClose);
    res.end(Buffer.alloc(32 * 1024 * 1024));
  };
}

describe("a connection after its last answer, which came before the rest of the request", () => {
  it.each([
    ["sent before the answer is read", true],
    ["never sent", false],
  ])(
    "is destroyed when the rest is %s, and the answer arrives whole",
    async (_, isSent) => {
      // More than both kernels' buffers hold, so that the answer is not written before it is read.
      const answer = Buffer.alloc(32 * 1024 * 1024, "z");
      const begun = gate();
      const read = gate();
      let closed: Promise<unknown> = Promise.reject(new Error("no request"));
      closed.catch(() => {});
      const handler: Handler = (req, res) => {
        closed = once(req.socket, "close");
        req.on("end", read.open).resume();
        (res as ServerResponse).end(answer);
        begun.open();
      };
      const { port } = await start({ handler });
      const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      onTestFinished(() => void socket.destroy());
      socket.write(`${HEAD}Connection: close\r\nContent-Length: 6\r\n\r\nabc`);
      await begun.opened;
      if (isSent) {
        socket.write("def");
        await read.opened;
      }
      let length = 0;
      socket.on("data", (chunk: Buffer) => (length += chunk.length));
      await once(socket, "end");
      expect(length).toBeGreaterThan(answer.length);
      // Although the client keeps its side open; the sweep would take half a minute.
      await closed;
    },
    15_000,
  );
});
