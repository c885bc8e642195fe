import { describe, expect, it } from "vitest";
import { type HttpRequest, type HttpResponse, readBody, watchCaller } from "../../src/http/exchange.js";
import * as h2 from "./frames.js";
import { connectHttp2, connectRaw, gate, request, reset, sendGood, sendRaw, start } from "./support.js";

const { frame } = h2;
const WHOLE = h2.END_HEADERS | h2.END_STREAM;

describe("a hostile HTTP/2 client", () => {
  it.each([
    ["I02 :authority: [", h2.getBlock("[")],
    [":authority with port 99999", h2.getBlock("x:99999")],
    [":authority and another host", h2.getBlock("x", [["host", "y"]])],
  ])("gets 400 on the stream and keeps the connection: %s", async (_name, block) => {
    const { port } = await start();
    const { socket, received } = await connectRaw(port);
    socket.write(Buffer.concat([h2.HELLO, frame(h2.HEADERS, WHOLE, 1, block)]));
    await received("Host");
    socket.write(frame(h2.HEADERS, WHOLE, 3, h2.getBlock("x")));
    await received("2.0 GET /");
    expect(await sendGood(port)).toContain("1.1 GET /good");
  });

  it.each([
    ["I02 :authority: a b", h2.getBlock("a b")],
    ["I02 empty :authority", h2.getBlock("")],
    ["I02 no :authority and no host", h2.getBlock(undefined)],
    ["I17 a field name in upper case", h2.getBlock("x", [["Bad", "y"]])],
    ["I17 a second :path", h2.getBlock("x", [[":path", "/y"]])],
  ])("has its stream reset: %s", async (_name, block) => {
    const { port } = await start();
    const { socket, received } = await connectRaw(port);
    socket.write(Buffer.concat([h2.HELLO, frame(h2.HEADERS, WHOLE, 1, block)]));
    await received(frame(h2.RST_STREAM, 0, 1, h2.uint32(1)).toString("latin1"));
    expect(await sendGood(port)).toContain("1.1 GET /good");
  });

  it.each([
    ["I17 HEADERS that HPACK cannot decode", frame(h2.HEADERS, WHOLE, 1, Buffer.from([0xff, 0xff, 0xff, 0xff]))],
    ["I17 WINDOW_UPDATE beyond 2^31 on stream 0", frame(h2.WINDOW_UPDATE, 0, 0, h2.uint32(0x7fffffff))],
    ["I17 WINDOW_UPDATE of 0 on stream 0", frame(h2.WINDOW_UPDATE, 0, 0, h2.uint32(0))],
    ["I17 CONTINUATION without HEADERS", frame(h2.CONTINUATION, h2.END_HEADERS, 1)],
    ["DATA on stream 0", frame(h2.DATA, 0, 0, Buffer.from("x"))],
    ["a frame of 16 MiB", frame(h2.DATA, 0, 1, Buffer.alloc(0xffffff))],
    ["I17 4,000 SETTINGS", repeat(frame(h2.SETTINGS, 0, 0), 4_000)],
    ["I17 CONTINUATION flood", Buffer.concat([frame(h2.HEADERS, h2.END_STREAM, 1, h2.getBlock("x")), flood(2_000)])],
    ["HTTP/1 after the preface", Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n")],
  ])("is disconnected: %s", async (_name, bytes) => {
    const { port } = await start({ limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 100 } });
    await sendRaw(port, Buffer.concat([h2.HELLO, bytes]));
    expect(await sendGood(port)).toContain("1.1 GET /good");
  });

  it("I17 resets 10,000 streams: most never reach the handler, and others are served", async () => {
    let handled = 0;
    const { port } = await start({
      limits: { checkIntervalMs: 20, sessionIdleTimeoutMs: 100 },
      handler: (_req, res) => {
        handled++;
        res.end("ok");
      },
    });
    const pair = (id: number) => [
      frame(h2.HEADERS, WHOLE, id, h2.getBlock("x")),
      frame(h2.RST_STREAM, 0, id, h2.uint32(8)),
    ];
    const pairs = Array.from({ length: 10_000 }, (_, index) => pair(index * 2 + 1)).flat();
    await sendRaw(port, Buffer.concat([h2.HELLO, ...pairs]));
    expect(handled).toBeLessThan(1_000);
    expect(await sendGood(port)).toContain("ok");
  });

  it("I09 gets 431 for a header section of 20 KB, and a reset for a larger one", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    expect((await request(session, { a: "a".repeat(20_000) })).status).toBe(431);
    await expect(request(session, { a: "a".repeat(70_000) })).rejects.toMatchObject({ code: "ERR_HTTP2_STREAM_ERROR" });
    expect((await request(session)).status).toBe(200);
  });

  it("I10 gets 431 for 101 fields, and a reset for many more", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    const fields = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, "b"]));
    expect((await request(session, fields(97))).status).toBe(431);
    expect((await request(session, fields(96))).status).toBe(200);
    await expect(request(session, fields(1_000))).rejects.toMatchObject({ code: "ERR_HTTP2_STREAM_ERROR" });
  });

  it("gets 405 for CONNECT and 417 for an unknown expectation", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    const tunnel = session.request({ ":method": "CONNECT", ":authority": "evil.test:443" });
    const head = await new Promise<{ ":status"?: number }>((resolve) => tunnel.once("response", resolve));
    expect(head[":status"]).toBe(405);
    expect((await request(session, { expect: "foo" })).status).toBe(417);
  });

  it("gets no 100-continue for a request that is refused", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    const stream = session.request({ ":method": "POST", ":authority": "x:99999", expect: "100-continue" });
    let continued = false;
    stream.on("continue", () => {
      continued = true;
    });
    const head = await new Promise<{ ":status"?: number }>((resolve) => stream.once("response", resolve));
    expect([head[":status"], continued]).toEqual([400, false]);
  });

  it("is reported when it breaks the protocol", async () => {
    const { port, fault } = await start();
    const { socket } = await connectRaw(port);
    socket.write(Buffer.concat([h2.HELLO, repeat(frame(h2.SETTINGS, 0, 0), 4_000)]));
    expect(await fault("session")).toMatchObject({ code: "ERR_HTTP2_ERROR" });
  });

  it("is told the limits", async () => {
    const { port } = await start({ limits: { maxConcurrentStreams: 7 } });
    const session = await connectHttp2(port);
    await request(session);
    expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListSize: 16_384 });
    expect(session.remoteSettings.initialWindowSize).toBe(256 * 1024);
    expect(session.state.remoteWindowSize).toBe(1024 * 1024);
  });

  it.each([0, 8])("has not sent a whole body when it cancels with code %i", async (code) => {
    const memory = { reserve: () => true, release() {}, whenEvicted() {} };
    const begun = gate();
    let read: Promise<unknown> | undefined;
    const handler = (req: HttpRequest, res: HttpResponse) => {
      read = readBody(req, 1_000, memory, watchCaller(res, memory));
      req.once("data", begun.open);
    };
    const { port } = await start({ handler });
    const { socket } = await connectRaw(port);
    const head = frame(h2.HEADERS, h2.END_HEADERS, 1, h2.getBlock("x"));
    socket.write(Buffer.concat([h2.HELLO, head, frame(h2.DATA, 0, 1, Buffer.from("beginning"))]));
    await begun.opened;
    socket.write(frame(h2.RST_STREAM, 0, 1, h2.uint32(code)));
    await expect(read).rejects.toMatchObject({ reason: "CALL_FORMAT_ERROR" });
  });

  it("may go away at any moment", async () => {
    const { port } = await start();
    const open = frame(h2.HEADERS, h2.END_HEADERS, 1, h2.getBlock("x"));
    for (const bytes of [h2.PREFACE, h2.HELLO, Buffer.concat([h2.HELLO, open])]) {
      const { socket } = await connectRaw(port);
      await new Promise((resolve) => socket.write(bytes, resolve));
      await sendGood(port); // By then the server has read what came before the reset.
      reset(socket);
    }
    expect(await sendGood(port)).toContain("1.1 GET /good");
  });
});

function repeat(bytes: Buffer, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, () => bytes));
}

function flood(count: number): Buffer {
  return repeat(frame(h2.CONTINUATION, 0, 1, h2.getBlock(undefined, [["a", "b".repeat(100)]]).subarray(3)), count);
}
