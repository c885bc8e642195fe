import { once } from "node:events";
import net from "node:net";
import { describe, expect, it } from "vitest";
import { isGivenUp } from "../fuzz/raw-judge.js";
import { DATA, frame, HELLO } from "../http/frames.js";
import { connectHttp2, request, start } from "../http/support.js";

// Found by `npm run fuzz -- --only raw`: after a protocol error node:http2 reads no more, so that it does not see the
// client go. Each such connection held its place, and memory, for the idle timeout of two minutes: 34 of them a second,
// closed by the client at once, were enough to keep everybody else out.

const LIMITS = { checkIntervalMs: 20, probeIntervalMs: 50, headersTimeoutMs: 100 };

describe("an HTTP/2 connection without an open stream", () => {
  it("is cut soon after a protocol error, also when the client has ended its side", async () => {
    const { port } = await start({ limits: LIMITS });
    const socket = net.connect(port, "127.0.0.1");
    socket.write(Buffer.concat([HELLO, frame(DATA, 0, 1)]));
    let received = Buffer.alloc(0);
    for (socket.on("data", (chunk) => (received = Buffer.concat([received, chunk]))); !isGivenUp(received); )
      await once(socket, "data");
    socket.end();
    await once(socket, "close");
  });

  it("is kept while the peer answers pings", async () => {
    const { port } = await start({ limits: LIMITS });
    const session = await connectHttp2(port);
    for (let pings = 0; pings < 5; pings++) await once(session, "ping");
    expect((await request(session)).status).toBe(200);
  });
});
