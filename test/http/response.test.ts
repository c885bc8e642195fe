import { once } from "node:events";
import tls from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { createBudget } from "../../src/call/budget.js";
import {
  answerPlain,
  cut,
  type HttpRequest,
  type HttpResponse,
  readBody,
  watchCaller,
  writeChunk,
  writeHeadOf,
} from "../../src/http/exchange.js";
import { connectHttp2, connectRaw, createCertificate, gate, start } from "./support.js";

/** Sends a request over HTTP/1.1 or HTTP/2; resolves with what abandons it. */
async function ask(version: string, port: number, method: string): Promise<() => void> {
  if (version === "HTTP/2") {
    const stream = (await connectHttp2(port)).request({ ":method": method });
    stream.on("error", () => {}); // It is reset.
    return () => stream.close(8);
  }
  const { socket } = await connectRaw(port);
  socket.write(`${method} / HTTP/1.1\r\nHost: relay.test\r\n\r\n`);
  return () => socket.destroy();
}

describe.each(["HTTP/1.1", "HTTP/2"])("a response over %s", (version) => {
  it.each(["GET", "HEAD"])("shows that its caller has gone before the answer to %s", async (method) => {
    const begun = gate();
    const released = gate();
    let signal: { readonly aborted: boolean } | undefined;
    const { port } = await start({
      handler: (_request, response) => {
        signal = watchCaller(response, { release: released.open, whenEvicted() {} });
        begun.open();
      },
    });
    const leave = await ask(version, port, method);
    await begun.opened;
    leave();
    await released.opened;
    expect(signal?.aborted).toBe(true);
  });

  it("takes no chunk after it was cut, and lets nobody wait", async () => {
    const closed = gate();
    let written: Promise<true> | true | undefined;
    const handler = async (_request: unknown, response: HttpResponse) => {
      writeHeadOf(response, 200, {});
      cut(response);
      await once(response, "close");
      written = writeChunk(response, Buffer.from("late"));
      closed.open();
    };
    const { port, faults } = await start({ handler });
    await ask(version, port, "GET");
    await closed.opened;
    expect(await written).toBe(true);
    expect(faults).toEqual([]);
  });
});

describe("an answer that is cut to make room", () => {
  it("leaves the upload of another caller alone, over TLS and HTTP/1.0 too, where no connection can be reset", async () => {
    const budget = createBudget({ maxInFlight: 10, maxBufferedBytes: 1000 });
    const handler = async (request: HttpRequest, response: HttpResponse) => {
      const memory = budget.open("network");
      const signal = watchCaller(response, memory);
      await readBody(request, 1000, memory, signal);
      if (request.url === "/upload") answerPlain(response, 200, "received");
      else writeHeadOf(response, 200, {});
    };
    const { cert, key, ca } = createCertificate();
    const { port, faults } = await start({ handler, tls: { cert, key } });
    const post = (path: string, version: string) => {
      const socket = tls.connect({ port, host: "127.0.0.1", servername: "localhost", ca });
      onTestFinished(() => void socket.destroy());
      socket.write(`POST ${path} HTTP/${version}\r\nHost: x\r\nContent-Length: 600\r\n\r\n${"a".repeat(600)}`);
      return socket.setEncoding("latin1");
    };
    const stream = post("/stream", "1.0");
    expect(String(await once(stream, "data"))).toContain("200 OK");
    const closed = once(
      stream.on("error", () => {}),
      "close",
    ); // It is cut off.
    expect(String(await once(post("/upload", "1.1"), "data"))).toContain("200 OK");
    await closed;
    expect(faults).toEqual([]);
  });
});
