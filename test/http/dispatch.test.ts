import { describe, expect, it } from "vitest";
import type { Handler } from "../../src/http/dispatch.js";
import { END_HEADERS, END_STREAM, frame, getBlock, HEADERS, HELLO } from "./frames.js";
import { connectHttp2, connectRaw, gate, request, sendGood, sendRaw, start, writePart } from "./support.js";

const FAILURES: [string, Handler][] = [
  [
    "throws",
    () => {
      throw new TypeError("canary");
    },
  ],
  ["rejects", async () => Promise.reject(new TypeError("canary"))],
  [
    "throws after it set fields",
    (_req, res) => {
      res.statusCode = 204;
      res.setHeader("content-length", "5");
      res.setHeader("set-cookie", "canary");
      throw new TypeError("canary");
    },
  ],
];

describe("a handler that fails", () => {
  it.each(FAILURES)("is answered with 500 over HTTP/1 when it %s", async (_name, handler) => {
    const { port, faults } = await start({ handler });
    const answer = await sendRaw(port, "GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 500 .*x-request-id: mine\r\n.*Internal error\.\n$/s);
    expect(answer).not.toContain("canary");
    expect(faults).toEqual([{ where: "handler", error: expect.any(TypeError) }]);
  });

  it.each(FAILURES)("is answered with 500 over HTTP/2 when it %s", async (_name, handler) => {
    const { port, faults } = await start({ handler });
    const session = await connectHttp2(port);
    expect(await request(session)).toEqual({ status: 500, body: "Internal error.\n" });
    expect(await request(session)).toEqual({ status: 500, body: "Internal error.\n" });
    expect(faults.map((fault) => fault.where)).toEqual(["handler", "handler"]);
  });

  it("ends the connection, or the stream, when the answer has begun", async () => {
    const { port, faults } = await start({
      handler: async (_req, res) => {
        res.writeHead(200, { "content-length": "10" });
        writePart(res, "begun");
        throw new Error("canary");
      },
    });
    const answer = await sendGood(port);
    expect(answer).toMatch(/^(HTTP\/1\.1 200 .*begun)?$/s);
    const session = await connectHttp2(port);
    await expect(request(session)).rejects.toMatchObject({ code: "ERR_HTTP2_STREAM_ERROR" });
    expect(faults).toHaveLength(2);
  });

  it("does no harm to an answer that is complete", async () => {
    const { port, fault } = await start({
      handler: async (_req, res) => {
        res.end("whole");
        throw new Error("canary");
      },
    });
    expect(await sendGood(port)).toContain("whole");
    expect((await request(await connectHttp2(port))).body).toBe("whole");
    expect(await fault("handler")).toMatchObject({ message: "canary" });
  });

  it.each(["http1", "http2"])("may fail after the client went away, over %s", async (protocol) => {
    const { port, fault } = await start({
      handler: async (_req, res) => {
        await new Promise((resolve) => res.on("close", resolve));
        throw new Error("canary");
      },
    });
    const { socket } = await connectRaw(port);
    if (protocol === "http1") socket.end("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    else socket.end(Buffer.concat([HELLO, frame(HEADERS, END_HEADERS | END_STREAM, 1, getBlock("x"))]));
    expect(await fault("handler")).toMatchObject({ message: "canary" });
  });

  it("may write after the end, which is reported", async () => {
    const { port, fault } = await start({
      handler: (_req, res) => {
        res.end("whole");
        writePart(res, "late");
      },
    });
    expect(await sendGood(port)).toContain("whole");
    expect(await fault("handler")).toMatchObject({ code: "ERR_STREAM_WRITE_AFTER_END" });
    await request(await connectHttp2(port)).catch(() => {});
    expect(await sendGood(port)).toContain("whole");
  });

  it.each(["http1", "http2"])("may write after the client went away, over %s", async (protocol) => {
    const written = gate();
    const { port } = await start({
      handler: async (req, res) => {
        if (req.url === "/good") return void res.end("good");
        await new Promise((resolve) => res.on("close", resolve));
        writePart(res, "late");
        res.end("later");
        written.open();
      },
    });
    const { socket } = await connectRaw(port);
    if (protocol === "http1") socket.end("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    else socket.end(Buffer.concat([HELLO, frame(HEADERS, END_HEADERS | END_STREAM, 1, getBlock("x"))]));
    await written.opened;
    expect(await sendGood(port)).toContain("good");
  });

  it("gets no second status line into an answer that has begun", async () => {
    const { port, fault } = await start({
      handler: (_req, res) => writePart(res, "begun"),
    });
    const { socket, closed, received } = await connectRaw(port);
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    await received("begun");
    socket.write("no chunk");
    await fault("client");
    expect((await closed).match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
  });
});

describe("a target in absolute form", () => {
  const targetOf: Handler = (req, res) => res.end(`${req.url} at ${req.headers.host}`);

  it.each([
    ["http://relay.test:1/a?b=c", "/a?b=c at relay.test:1"],
    ["HTTPS://relay.test?b", "/?b at relay.test"],
    ["http://relay.test", "/ at relay.test"],
  ])("is that of its path, and its host replaces Host: %s", async (target, expected) => {
    const { port } = await start({ handler: targetOf });
    const answer = await sendRaw(port, `GET ${target} HTTP/1.1\r\nhost: other\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain(expected);
  });

  it.each([
    ["http:///a", "Host: x"],
    ["http://[/a", "Host: x"],
    ["http://user@relay.test/a", "Host: x"],
    ["http://relay.test/a", "X-A: no host"],
    ["http://relay.test/a", "Host: x\r\nHost: x"],
  ])("is refused with 400 where its host, or Host, is not valid: %s with %s", async (target, field) => {
    const { port } = await start({ handler: targetOf });
    expect(await sendRaw(port, `GET ${target} HTTP/1.1\r\n${field}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  });
});
