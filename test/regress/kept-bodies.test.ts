import { describe, expect, it } from "vitest";
import { readMessage } from "../../src/api/fast/read-message.js";
import type { Reservation } from "../../src/call/budget.js";
import { type HttpRequest, readBody } from "../../src/http/exchange.js";
import { connectHttp2, connectRaw, gate, start } from "../http/support.js";
import { collectGarbage } from "../support/collect-garbage.js";

const SIGNAL = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} };
const MAX_BYTES = 1024 * 1024;
/** One chunk, which is never copied into another. */
const SMALL = Buffer.alloc(1000);
/** Many chunks. */
const LARGE = Buffer.alloc(MAX_BYTES / 2);

type Read = (request: HttpRequest, room: Reservation) => Promise<unknown>;
const READERS: ReadonlyArray<[string, Read]> = [
  ["most routes", (request, room) => readBody(request, MAX_BYTES, room, SIGNAL)],
  ["the fast path", (request, room) => readMessage(request, false, MAX_BYTES, room, SIGNAL)],
];

/**
 * Sends a body; resolves with its first chunk once `read` has settled, without an answer.
 *
 * @param more bytes that are announced and not sent.
 */
async function firstChunkOf(version: string, read: (request: HttpRequest) => Promise<unknown>, body: Buffer, more = 0) {
  const settled = gate();
  let first: WeakRef<Buffer> | undefined;
  const { port } = await start({
    handler: (request) => {
      request.once("data", (chunk: Buffer) => {
        first = new WeakRef(chunk);
      });
      read(request).then(
        () => settled.open(),
        () => settled.open(),
      );
    },
  });
  if (version === "HTTP/2") {
    const stream = (await connectHttp2(port)).request({ ":method": "POST", "content-length": body.length + more });
    stream.on("error", () => {}); // The end of the test.
    stream.write(body);
    if (more === 0) stream.end();
  } else {
    const { socket } = await connectRaw(port);
    socket.write(`POST / HTTP/1.1\r\nHost: relay.test\r\nContent-Length: ${body.length + more}\r\n\r\n`);
    socket.write(body);
  }
  await settled.opened;
  return first;
}

async function isFreed(chunk: WeakRef<Buffer> | undefined): Promise<boolean> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  return chunk !== undefined && chunk.deref() === undefined;
}

describe.each(["HTTP/1.1", "HTTP/2"])("the body of a request that is still open over %s", (version) => {
  it.each(READERS)("is not kept once it has been read and dropped: %s", async (_name, read) => {
    const room = { reserve: () => true } as unknown as Reservation;
    expect(await isFreed(await firstChunkOf(version, (request) => read(request, room), SMALL))).toBe(true);
  });

  it("is not kept once it is refused because there is no room", async () => {
    let chunks = 0;
    const room = { reserve: () => ++chunks < 3 };
    const read = (request: HttpRequest) => readBody(request, MAX_BYTES, room, SIGNAL);
    expect(await isFreed(await firstChunkOf(version, read, LARGE, 1))).toBe(true);
    expect(chunks).toBe(3);
  });
});
