import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { cut, type HttpResponse, watchCaller, writeChunk, writeHeadOf } from "../../src/http/exchange.js";
import { connectHttp2, connectRaw, gate, start } from "./support.js";

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
