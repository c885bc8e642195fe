import { once } from "node:events";
import net from "node:net";
import tls from "node:tls";
import { beforeAll, describe, expect, it } from "vitest";
import { frame, GOAWAY, HELLO } from "./frames.js";
import {
  connectHttp2,
  connectRaw,
  createCertificate,
  gate,
  type Request,
  type Response,
  request,
  start,
} from "./support.js";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/** Longer than any test: a drain that needs it fails by timeout. */
const LONG_MS = 600_000;

/** The sweep must not be what ends a drain. */
const NO_SWEEP = { checkIntervalMs: LONG_MS };

/** A handler that answers when the gate opens, and a promise for its first request. */
function holding(before?: (res: Response) => void) {
  const { opened, open } = gate();
  const arrived = gate();
  const handler = async (_req: Request, res: Response) => {
    before?.(res);
    arrived.open();
    await opened;
    res.end("held");
  };
  return { handler, open, arrived: arrived.opened };
}

describe("close()", () => {
  let certificate: ReturnType<typeof createCertificate>;
  beforeAll(() => {
    certificate = createCertificate();
  });

  it("resolves at once when nothing is open, and again when called again", async () => {
    const { listener } = await start();
    const first = listener.close(LONG_MS);
    expect(listener.close(0)).toBe(first);
    await first;
  });

  it("refuses new connections and finishes an HTTP/1 request, as the last of its connection", async () => {
    const { handler, open, arrived } = holding();
    const { listener, port } = await start({ handler, limits: NO_SWEEP });
    const { socket, closed } = await connectRaw(port);
    socket.write(GET);
    await arrived;
    const done = listener.close(LONG_MS);
    const [error] = await once(net.connect(port, "127.0.0.1"), "error").catch((reason) => [reason]);
    expect(error).toMatchObject({ code: "ECONNREFUSED" });
    open();
    expect(await closed).toMatch(/connection: close.*held/is);
    await done;
  });

  it("ends a connection whose answer had promised to keep it", async () => {
    const { handler, open, arrived } = holding((res) => void res.writeHead(200, { "content-length": "4" }));
    const { listener, port } = await start({ handler, limits: NO_SWEEP });
    const { socket, closed } = await connectRaw(port);
    socket.write(GET);
    await arrived;
    const done = listener.close(LONG_MS);
    open();
    expect(await closed).toMatch(/keep-alive.*held$/is);
    await done;
  });

  it.each([
    ["", /connection: close.*1\.1 GET \/late/is],
    ["Expect: foo\r\n", /HTTP\/1\.1 417 .*connection: close/is],
  ])("answers a request that had begun to arrive, as the last of its connection: %j", async (field, answer) => {
    const { listener, port } = await start({ limits: NO_SWEEP });
    const { socket, closed, received } = await connectRaw(port);
    socket.write(`${GET}GET /late HTTP/1.1\r\nHo`);
    await received("1.1 GET / ");
    const done = listener.close(LONG_MS);
    socket.write(`st: x\r\n${field}\r\n`);
    expect(await closed).toMatch(answer);
    await done;
  });

  it("finishes what was pipelined before, in order", async () => {
    const { handler, open, arrived } = holding();
    const { listener, port } = await start({ handler, limits: NO_SWEEP });
    const { socket, closed } = await connectRaw(port);
    socket.write(GET + GET);
    await arrived;
    const done = listener.close(LONG_MS);
    open();
    expect((await closed).match(/held/g)).toHaveLength(2);
    await done;
  });

  it("closes at once what rests: between requests, silent, or undecided", async () => {
    const { listener, port } = await start();
    const [resting, silent, undecided] = await Promise.all([connectRaw(port), connectRaw(port), connectRaw(port)]);
    resting.socket.write(GET);
    undecided.socket.write("PRI * ");
    await resting.received("1.1 GET /");
    const session = await connectHttp2(port);
    await request(session);
    await listener.close(LONG_MS);
    expect(await Promise.all([resting.closed, silent.closed, undecided.closed])).toHaveLength(3);
    if (!session.destroyed) await once(session, "close");
  });

  it("sends GOAWAY and finishes an HTTP/2 stream", async () => {
    const { handler, open, arrived } = holding();
    const { listener, port } = await start({ handler, limits: NO_SWEEP });
    const session = await connectHttp2(port);
    const answer = request(session);
    await arrived;
    const done = listener.close(LONG_MS);
    await once(session, "goaway");
    open();
    expect(await answer).toEqual({ status: 200, body: "held" });
    await done;
  });

  it("does not wait for an HTTP/2 peer that never closes its side", async () => {
    const { listener, port } = await start();
    const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {}).write(HELLO);
    await once(socket, "data");
    await listener.close(100);
    socket.destroy();
  });

  it("is not stopped by an HTTP/2 session that its client has ended, with the connection still open", async () => {
    const { listener, port } = await start({ limits: NO_SWEEP });
    const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {}).write(Buffer.concat([HELLO, frame(GOAWAY, 0, 0, Buffer.alloc(8))]));
    await once(socket.resume(), "end");
    await listener.close(100, 1);
    socket.destroy();
  });

  it.each(["http1", "http2"])("destroys what is left of %s when the grace ends", async (protocol) => {
    const { handler, arrived } = holding();
    const { listener, port } = await start({ handler, limits: NO_SWEEP });
    if (protocol === "http1") {
      const { socket, closed } = await connectRaw(port);
      socket.write(GET);
      await arrived;
      await listener.close(10);
      expect(await closed).toBe("");
    } else {
      const session = await connectHttp2(port);
      const answer = request(session).catch((error: Error) => error);
      await arrived;
      await listener.close(10);
      expect(await answer).not.toMatchObject({ status: 200 });
    }
  });

  it("drains TLS connections of both protocols, one that is silent too", async () => {
    const { handler, open, arrived } = holding();
    const { listener, port } = await start({ handler, tls: certificate, limits: NO_SWEEP });
    const session = await connectHttp2(port, { ca: certificate.ca });
    const options = { port, host: "127.0.0.1", servername: "localhost", ca: certificate.ca };
    const [busy, silent] = [tls.connect(options), tls.connect(options)];
    await Promise.all([once(busy, "secureConnect"), once(silent, "secureConnect")]);
    const text = busy.setEncoding("latin1").toArray();
    const silentClosed = once(silent.resume(), "close");
    busy.write(GET);
    await arrived;
    const answer = request(session);
    await new Promise((resolve) => session.ping(resolve as () => void));
    const done = listener.close(LONG_MS);
    await silentClosed;
    open();
    expect((await answer).body).toBe("held");
    expect((await text).join("")).toMatch(/connection: close.*held/is);
    await done;
  });

  it("closes a TLS connection whose handshake ends during the drain", async () => {
    const limits = { headersTimeoutMs: LONG_MS, requestTimeoutMs: LONG_MS };
    const { listener, port } = await start({ tls: certificate, limits });
    const { socket, closed } = await connectRaw(port);
    const later = await connectHttp2(port, { ca: certificate.ca });
    const done = listener.close(LONG_MS);
    tls.connect({ socket, servername: "localhost", ca: certificate.ca }).on("error", () => {});
    await Promise.all([closed, done]);
    expect(later.closed).toBe(true);
  });

  it("destroys TLS connections when the grace ends, in the middle of a handshake too", async () => {
    const { handler, arrived } = holding();
    const { listener, port } = await start({ handler, tls: certificate, limits: NO_SWEEP });
    const { closed } = await connectRaw(port);
    const session = await connectHttp2(port, { ca: certificate.ca });
    const answer = request(session).catch((error: Error) => error);
    await arrived;
    await listener.close(10);
    expect(await closed).toBe("");
    expect(await answer).not.toMatchObject({ status: 200 });
  });
});
