import { once } from "node:events";
import http from "node:http";
import type http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { beforeAll, describe, expect, it } from "vitest";
import { cut } from "../../src/http/exchange.js";
import { END_HEADERS, END_STREAM, frame, getBlock, HEADERS, HELLO } from "./frames.js";
import {
  connectHttp2,
  connectRaw,
  createCertificate,
  type Request,
  type Response,
  request,
  reset,
  sendGood,
  sendRaw,
  start,
  writePart,
} from "./support.js";

const LARGE = Buffer.alloc(1024 * 1024, "0123456789abcdef");

describe("listen() in cleartext", () => {
  it("serves HTTP/1 byte by byte, with a method that begins like the preface", async () => {
    const { port } = await start();
    const { socket, closed } = await connectRaw(port);
    socket.setNoDelay(true);
    for (const byte of "PROPFIND /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") {
      await new Promise((resolve) => socket.write(byte, resolve));
    }
    expect(await closed).toContain("1.1 PROPFIND /p");
  });

  it("serves HTTP/2 whose preface comes byte by byte", async () => {
    const { port } = await start();
    const { socket, received } = await connectRaw(port);
    socket.setNoDelay(true);
    for (const byte of HELLO) await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
    socket.write(frame(HEADERS, END_HEADERS | END_STREAM, 1, getBlock("x")));
    expect(await received("2.0 GET / ")).toBeTruthy();
  });

  it("serves HTTP/2 whose preface, settings and request come in one packet", async () => {
    const { port } = await start();
    const { socket, received } = await connectRaw(port);
    socket.write(Buffer.concat([HELLO, frame(HEADERS, END_HEADERS | END_STREAM, 1, getBlock("x"))]));
    expect(await received("2.0 GET / ")).toBeTruthy();
  });

  it("resets a connection of HTTP/1.0 whose answer fails half-way: its end would be the answer's", async () => {
    const handler = (_req: Request, res: Response) => {
      writePart(res, "half");
      throw new Error("half-way");
    };
    const { port } = await start({ handler });
    const client = net.connect(port, "127.0.0.1").resume();
    client.write("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    expect(await once(client, "error")).toMatchObject([{ code: "ECONNRESET" }]);
  });

  it("answers requests of one packet in order", async () => {
    const { port } = await start();
    const head = (path: string, more = "") => `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n${more}\r\nabc`;
    const answers = await sendRaw(port, head("/1") + head("/2") + head("/3", "Connection: close\r\n"));
    expect(answers.match(/1\.1 POST \/\d abc/g)).toEqual(["1.1 POST /1 abc", "1.1 POST /2 abc", "1.1 POST /3 abc"]);
  });

  it("reads a body that begins in the first packet and goes on after it", async () => {
    const { port } = await start();
    const head = `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${LARGE.length}\r\n\r\n`;
    const answer = await sendRaw(port, Buffer.concat([Buffer.from(head), LARGE]));
    expect(answer.endsWith(`1.1 POST / ${LARGE.toString("latin1")}`)).toBe(true);
  });

  it("keeps an HTTP/1 connection for the next request", async () => {
    const { port } = await start();
    const { socket, received } = await connectRaw(port);
    socket.write("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    await received("GET /1");
    socket.write("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(await received("GET /2")).toContain("GET /1");
  });

  it("serves many HTTP/2 streams of one connection, with bodies", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    const paths = Array.from({ length: 20 }, (_, index) => `/${index}`);
    const answers = await Promise.all(
      paths.map((path) => request(session, { ":path": path, ":method": "POST" }, LARGE)),
    );
    expect(answers.map((answer) => answer.status)).toEqual(paths.map(() => 200));
    expect(answers[19]?.body).toBe(`2.0 POST /19 ${LARGE.toString("latin1")}`);
  });

  it("serves streams of one connection while many large answers wait to be taken", async () => {
    const { port } = await start({ handler: (_req, res) => void res.end(LARGE) });
    const session = await connectHttp2(port);
    const streams: http2.ClientHttp2Stream[] = [];
    while (streams.length < 40) {
      const stream = session.request();
      streams.push(stream);
      await once(stream, "response");
    }
    const [first] = await Promise.all(streams.map((stream) => textOf(stream)));
    expect(first?.length).toBe(LARGE.length);
  });

  it("serves both at once", async () => {
    const { port } = await start();
    const session = await connectHttp2(port);
    const [first, second] = await Promise.all([sendGood(port), request(session)]);
    expect(first).toContain("1.1 GET /good");
    expect(second.body).toContain("2.0 GET /");
  });

  it.each(["http1", "http2"])("answers Expect: 100-continue over %s before it reads the body", async (protocol) => {
    const { port } = await start();
    const headers = { expect: "100-continue" };
    const stream =
      protocol === "http1"
        ? http.request({ port, host: "127.0.0.1", method: "POST", headers })
        : (await connectHttp2(port)).request({ ":method": "POST", ...headers });
    if (stream instanceof http.ClientRequest) stream.flushHeaders();
    await new Promise<void>((resolve) => stream.once("continue", resolve));
    stream.end("late");
    const answer = stream instanceof http.ClientRequest ? await response(stream) : stream;
    expect(await textOf(answer)).toContain("POST / late");
  });

  it("rejects when the port is taken", async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  it("says where it listens", async () => {
    const { listener } = await start({ host: "localhost" });
    expect(listener.address.host).toMatch(/^(127\.0\.0\.1|::1)$/);
    expect(listener.address.port).toBeGreaterThan(0);
  });
});

describe("listen() with TLS", () => {
  let certificate: ReturnType<typeof createCertificate>;
  beforeAll(() => {
    certificate = createCertificate();
  });

  it("cuts an answer of HTTP/1.0 without a fault, although a TLS connection cannot be reset", async () => {
    const handler = (_req: Request, res: Response) => {
      writePart(res, "half");
      cut(res);
    };
    const { port, faults } = await start({ tls: certificate, handler });
    const client = tls.connect({ port, host: "127.0.0.1", servername: "localhost", ca: certificate.ca });
    client.on("error", () => {}).write("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
    await once(client.resume(), "close");
    expect(faults).toEqual([]);
  });

  it("rejects a certificate that cannot be read", async () => {
    await expect(start({ tls: { cert: Buffer.from("x"), key: Buffer.from("y") } })).rejects.toThrow();
  });

  it("serves HTTP/2 to a client that offers h2", async () => {
    const { port } = await start({ tls: certificate });
    const session = await connectHttp2(port, { ca: certificate.ca });
    expect(session.alpnProtocol).toBe("h2");
    const answer = await request(session, { ":method": "POST" }, LARGE);
    expect(answer.body.length).toBe("2.0 POST / ".length + LARGE.length);
  });

  it.each([[["http/1.1"]], [undefined]])("serves HTTP/1.1 to a client that offers %j", async (ALPNProtocols) => {
    const { port } = await start({ tls: certificate });
    const options = { port, host: "127.0.0.1", servername: "localhost", ca: certificate.ca, agent: false };
    const client = https.request({ ...options, ...(ALPNProtocols && { ALPNProtocols }), path: "/tls" });
    expect(await textOf(await response(client.end()))).toContain("1.1 GET /tls");
  });

  it("refuses TLS 1.1 and cleartext, and goes on", async () => {
    const { port, fault } = await start({ tls: certificate });
    const old = tls.connect({
      port,
      host: "127.0.0.1",
      ca: certificate.ca,
      maxVersion: "TLSv1.1",
      minVersion: "TLSv1",
    });
    await new Promise((resolve) => old.once("error", resolve));
    expect(await sendGood(port)).not.toContain("200");
    await fault("client");
    const session = await connectHttp2(port, { ca: certificate.ca });
    expect((await request(session)).status).toBe(200);
  });

  it("survives clients that go away during and after the handshake", async () => {
    const { port, faults } = await start({ tls: certificate });
    const session = await connectHttp2(port, { ca: certificate.ca });
    const early = await connectRaw(port);
    await request(session);
    reset(early.socket);
    const raw = await connectRaw(port);
    const late = tls.connect({ socket: raw.socket, servername: "localhost", ca: certificate.ca });
    await new Promise((resolve) => late.once("secureConnect", resolve));
    await request(session);
    reset(raw.socket);
    expect((await request(session)).status).toBe(200);
    expect(faults).toEqual([]);
  });

  it("does not take the preface without ALPN for HTTP/2", async () => {
    const { port } = await start({ tls: certificate });
    const socket = tls.connect({ port, host: "127.0.0.1", servername: "localhost", ca: certificate.ca });
    socket.write(HELLO);
    socket.resume();
    await new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
    const session = await connectHttp2(port, { ca: certificate.ca });
    expect((await request(session)).status).toBe(200);
  });
});

function response(client: http.ClientRequest): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => client.once("response", resolve).once("error", reject));
}

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return text;
}
