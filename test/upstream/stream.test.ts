import { once } from "node:events";
import type { Socket } from "node:net";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { UpstreamStream } from "../../src/upstream/request.js";
import { answer } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

const CLOSING = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
const MIB = 1024 * 1024;

async function bytesOf({ body }: UpstreamStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Resolves when the socket takes no more, because nobody reads on the other side. */
async function writeUntilFull(socket: Socket, atMost: number): Promise<number> {
  const piece = Buffer.alloc(64 * 1024, "a");
  let written = 0;
  while (written < atMost) {
    written += piece.length;
    if (socket.write(piece)) continue;
    const timer = new Promise<"full">((resolve) => setTimeout(resolve, 500, "full"));
    if ((await Promise.race([once(socket, "drain"), timer])) === "full") return written;
  }
  return written;
}

describe("stream()", () => {
  it("gives the head before the body, and each piece as it comes", async () => {
    let socket: Socket | undefined;
    const { origin } = await provider((opened) => {
      socket = opened;
      opened.write("HTTP/1.1 206 Partial\r\nX-A: 1\r\nContent-Length: 6\r\n\r\n");
    });
    const stream = await upstream().stream(get(origin), within());
    expect(stream).toMatchObject({ statusCode: 206, rawHeaders: expect.arrayContaining(["X-A", "1"]) });
    for (const piece of ["one", "two"]) {
      socket?.write(piece);
      expect((await stream.body.next()).value?.toString()).toBe(piece);
    }
    expect((await stream.body.next()).done).toBe(true);
  });

  it("reads the provider's socket no faster than the body is read", async () => {
    let written: Promise<number> | undefined;
    const { origin, openAtMost } = await provider((socket) => {
      socket.write(CLOSING);
      written = writeUntilFull(socket, 200 * MIB);
    });
    const stream = await upstream().stream(get(origin), within());
    expect(await written).toBeLessThan(32 * MIB);
    stream.close();
    await openAtMost(0);
  });

  it.each([65_536, 70_000, 1_000_000])("bears a provider that ends while %i bytes wait", async (size) => {
    const { origin, openAtMost } = await provider((socket) => void socket.end(CLOSING + "a".repeat(size)));
    const stream = await upstream().stream(get(origin), within());
    // A large answer stays in the provider's socket until it is read.
    if (size < 100_000) await openAtMost(0);
    expect(await bytesOf(stream)).toHaveLength(size);
  });

  it.each([1_000, 65_536, 80_000])("bears a provider that resets while %i bytes wait", async (size) => {
    const { origin, openAtMost } = await provider((socket) => {
      socket.write(CLOSING + "a".repeat(size), () => setTimeout(() => socket.resetAndDestroy(), 50));
    });
    const stream = await upstream().stream(get(origin), within());
    await openAtMost(0);
    await failureOf(bytesOf(stream), "PROVIDER_RESPONSE_INVALID");
  });

  it.each([
    ["before its length", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"],
    ["within its chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
    ["in a wrong chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"],
  ])("fails when the answer ends %s", async (_where, bytes) => {
    const { origin } = await provider((socket) => void socket.end(bytes));
    const stream = await upstream().stream(get(origin), within());
    await failureOf(bytesOf(stream), "PROVIDER_RESPONSE_INVALID");
  });

  it("fails when there is no head before the deadline", async () => {
    const { origin } = await provider((socket) => {
      const drip = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 200);
      socket.on("close", () => clearInterval(drip));
    });
    await failureOf(upstream().stream(get(origin), within(500)), "PROVIDER_TIMEOUT");
  });

  it("keeps the deadline until it begins, and then only that of a stream", async () => {
    const { origin } = await provider((socket) => void socket.write(`${CLOSING}a`));
    const client = upstream({ streamIdleTimeoutMs: 60_000, streamTimeoutMs: 600 });
    await failureOf(bytesOf(await client.stream(get(origin), within(300))), "PROVIDER_TIMEOUT");
    const begun = await client.stream(get(origin), within(300));
    begun.begin();
    expect((await begun.body.next()).value?.toString()).toBe("a");
    await failureOf(begun.body.next(), "PROVIDER_TIMEOUT");
  });

  it("fails when the provider stops sending, but not while nobody reads", async () => {
    const { origin, openAtMost } = await provider((socket) => void socket.write(`${CLOSING}${"a".repeat(65_536)}`));
    const stream = await upstream({ streamIdleTimeoutMs: 200 }).stream(get(origin), within());
    stream.begin();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await stream.body.next()).value?.length).toBeGreaterThan(0);
    await failureOf(bytesOf(stream), "PROVIDER_TIMEOUT");
    await openAtMost(0);
  });

  it("lets the provider's socket go when the caller is gone", async () => {
    const { origin, openAtMost } = await provider((socket) => void socket.write(`${CLOSING}a`));
    const controller = new AbortController();
    const stream = await upstream().stream(get(origin), within(10_000, controller.signal));
    controller.abort(new Error("gone"));
    await openAtMost(0);
    await expect(bytesOf(stream)).rejects.toThrow("gone");
  });

  it.each([
    ["204", "HTTP/1.1 204 No Content\r\n\r\n", "GET"],
    ["304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET"],
    ["HEAD with a length and a coding", "HTTP/1.1 200 OK\r\nContent-Encoding: x\r\nContent-Length: 5\r\n\r\n", "HEAD"],
  ])("has no body after %s", async (_name, bytes, method) => {
    const { origin } = await provider((socket) => void socket.write(bytes));
    expect(await bytesOf(await upstream().stream(get(origin, { method }), within()))).toHaveLength(0);
  });

  it("uses a socket again whose answer was read to its end, and waited for", async () => {
    const sent = await provider((socket) => void socket.write(answer("a".repeat(200_000))));
    const client = upstream();
    for (let at = 0; at < 3; at += 1) {
      expect(await bytesOf(await client.stream(get(sent.origin), within()))).toHaveLength(200_000);
    }
    expect(await textOf(client.send(get(sent.origin), within()))).toHaveLength(200_000);
    expect(sent.accepted).toBe(1);
  });
});

describe("streams at one origin", () => {
  it("leave half of the places to other calls", async () => {
    const held = await provider((socket, { head }) => {
      socket.write(head.startsWith("GET /held") ? `${CLOSING}a` : answer("ok"));
    });
    const client = upstream({ maxConcurrent: 4, maxWaiting: 4 });
    const open = await Promise.all([1, 2].map(() => client.stream(get(held.origin, { path: "/held" }), within())));
    await failureOf(client.stream(get(held.origin, { path: "/held" }), within()), "OVERLOADED");
    expect(await textOf(client.send(get(held.origin), within()))).toBe("ok");
    for (const stream of open) stream.close();
    expect(await bytesOf(await client.stream(get(held.origin), within()))).toHaveLength(2);
  });
});

describe("content codings of a stream", () => {
  const text = "the quick brown fox ".repeat(20_000);
  const brotliWithWindow = (bits: number) =>
    brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_LGWIN]: bits, [constants.BROTLI_PARAM_QUALITY]: 5 } });
  const coded = (coding: string, body: Buffer) => answer(body, `Content-Encoding: ${coding}`);

  it.each([
    ["gzip", gzipSync(text)],
    ["x-gzip", Buffer.concat([gzipSync(text.slice(0, 1000)), gzipSync(text.slice(1000))])],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["br", brotliCompressSync(text)],
    ["gzip, br", brotliCompressSync(gzipSync(text))],
    ["identity", Buffer.from(text)],
    ["UTF-8", Buffer.from(text)],
  ])("undoes %s", async (coding, body) => {
    const { origin } = await provider((socket) => void socket.write(coded(coding, body)));
    expect((await bytesOf(await upstream().stream(get(origin), within()))).toString()).toBe(text);
  });

  it.each([
    ["gzip", coded("gzip", Buffer.alloc(0))],
    ["an unknown one", coded("compress", Buffer.alloc(0))],
    ["an unknown one, and no length", Buffer.from("HTTP/1.1 204 No Content\r\nContent-Encoding: compress\r\n\r\n")],
    [
      "an unknown one, in chunks",
      Buffer.from("HTTP/1.1 200 OK\r\nContent-Encoding: compress\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
  ])("takes an empty body for empty, whatever its coding: %s", async (_coding, bytes) => {
    const { origin } = await provider((socket) => void socket.write(bytes));
    const stream = await upstream().stream(get(origin), within());
    expect(stream.isPossiblyTruncated).toBe(false);
    expect(await bytesOf(stream)).toHaveLength(0);
    expect(await textOf(upstream().send(get(origin), within()))).toBe("");
  });

  it.each([
    ["gzip", gzipSync(text), 32 * 1024],
    ["gzip, gzip", gzipSync(gzipSync(text)), 64 * 1024],
    ["br", brotliWithWindow(24), 16 * MIB],
    ["br", brotliWithWindow(22), 4 * MIB],
    ["br", brotliWithWindow(18), 256 * 1024],
    ["br", brotliWithWindow(16), 64 * 1024],
    ["identity", Buffer.from(text), 0],
  ])("counts what a decoder of %s keeps while it decodes", async (coding, body, bytes) => {
    const { origin } = await provider((socket) => void socket.write(coded(coding, body)));
    let [held, most] = [0, 0];
    const reserve = (more: number) => {
      held += more;
      most = Math.max(most, held);
      return true;
    };
    const memory = { reserve, giveBack: (less: number) => void reserve(-less) };
    const stream = await upstream().stream(get(origin), { ...within(), memory });
    expect(await bytesOf(stream)).toHaveLength(text.length);
    expect({ held, most }).toEqual({ held: 0, most: bytes });
    const crowded = { reserve: () => false, giveBack: () => {} };
    const refused = bytesOf(await upstream().stream(get(origin), { ...within(), memory: crowded }));
    if (bytes === 0) expect(await refused).toHaveLength(text.length);
    else await failureOf(refused, "OVERLOADED");
  });

  it.each(["compress", "gzip, gzip, gzip, gzip"])("refuses %s", async (coding) => {
    const { origin } = await provider((socket) => void socket.write(coded(coding, Buffer.from("a"))));
    await failureOf(upstream().stream(get(origin), within()), "PROVIDER_RESPONSE_INVALID");
  });

  it.each([
    ["corrupt", Buffer.from("no gzip at all")],
    ["truncated", gzipSync(text).subarray(0, -20)],
  ])("fails for %s bytes", async (_name, body) => {
    const { origin } = await provider((socket) => void socket.write(coded("gzip", body)));
    await failureOf(bytesOf(await upstream().stream(get(origin), within())), "PROVIDER_RESPONSE_INVALID");
  });

  it("ends a decompression bomb, and takes a small one for what it is", async () => {
    const bomb = gzipSync(Buffer.alloc(4 * MIB));
    const { origin, openAtMost } = await provider((socket) => void socket.write(coded("gzip", bomb)));
    const small = upstream({ maxResponseBytes: MIB });
    await failureOf(bytesOf(await small.stream(get(origin), within())), "RESPONSE_TOO_LARGE");
    await openAtMost(1);
    expect(await bytesOf(await upstream().stream(get(origin), within()))).toHaveLength(4 * MIB);
  });

  it("measures a bomb within a bomb by what was sent", async () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(64 * MIB)));
    const { origin } = await provider((socket) => void socket.write(coded("gzip, gzip", bomb)));
    const client = upstream({ maxResponseBytes: MIB });
    await failureOf(bytesOf(await client.stream(get(origin), within())), "RESPONSE_TOO_LARGE");
  });
});
