import type { Socket } from "node:net";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Reason } from "../../src/model/errors.js";
import { answer, type Play } from "../support/raw-provider.js";
import { failureOf, get, provider, textOf, upstream, within } from "./upstream-for-test.js";

const OK = "HTTP/1.1 200 OK\r\n";
const write =
  (...pieces: readonly (string | Buffer)[]): Play =>
  (socket) => {
    for (const piece of pieces) socket.write(piece as string, "latin1");
  };
const thenEnd =
  (...pieces: readonly string[]): Play =>
  (socket) =>
    socket.end(pieces.join(""), "latin1");

/** One byte a turn of the event loop. */
const dripped =
  (text: string): Play =>
  async (socket) => {
    for (const byte of Buffer.from(text, "latin1")) {
      socket.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

/** Plays the bytes for the path /bad and answers every other path, so that a test can see what is left behind. */
async function badProvider(play: Play) {
  return provider((socket, request) => {
    if (request.head.startsWith("GET /bad ") || request.head.startsWith("HEAD /bad ")) play(socket, request);
    else socket.write(answer("fine"));
  });
}

/** The call fails for the reason, its socket is gone, and the next call of the same client is fine. */
async function expectFailure(play: Play, reason: Reason, timeoutMs?: number) {
  const peer = await badProvider(play);
  const client = upstream({ maxResponseBytes: 100_000 });
  const error = await failureOf(client.send(get(peer.origin, { path: "/bad" }), within(timeoutMs)), reason);
  await peer.openAtMost(0);
  expect(peer.requests).toHaveLength(1);
  expect(await textOf(client.send(get(peer.origin), within()))).toBe("fine");
  expect(peer.accepted).toBe(2);
  return error;
}

/** The call succeeds with this body, and so does the next one. */
async function expectBody(play: Play, body: string, method = "GET") {
  const peer = await badProvider(play);
  const client = upstream({ maxResponseBytes: 100_000 });
  const received = await client.send(get(peer.origin, { path: "/bad", method }), within());
  expect(received.body.concat().toString()).toBe(body);
  expect(await textOf(client.send(get(peer.origin), within()))).toBe("fine");
  return { received, peer };
}

describe("an answer", () => {
  it("comes back with its status, its field lines as received and its body", async () => {
    const lines = [
      "X-Mixed-Case: a",
      "x-empty:",
      "Set-Cookie: 1",
      "set-cookie: 2",
      "X-Latin: \xe9",
      "__proto__: p",
      "constructor: c",
    ];
    const { received } = await expectBody(
      write(`HTTP/1.1 418 I'm a teapot\r\n${lines.join("\r\n")}\r\nContent-Length: 4\r\n\r\nbody`),
      "body",
    );
    expect(received.statusCode).toBe(418);
    expect(received.rawHeaders).toEqual(
      ["X-Mixed-Case", "a", "x-empty", "", "Set-Cookie", "1", "set-cookie", "2", "X-Latin", "\xe9"].concat([
        "__proto__",
        "p",
        "constructor",
        "c",
        "Content-Length",
        "4",
      ]),
    );
    expect(({} as Record<string, unknown>)["p"]).toBeUndefined();
  });

  it.each<[string, Play, string]>([
    ["in chunks", write(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n`), "abcde"],
    [
      "in chunks with trailers, which are ignored",
      write(`${OK}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nAuthorization: x\r\n\r\n`),
      "a",
    ],
    ["until the connection ends", thenEnd(`${OK}Connection: close\r\n\r\nuntil the end`), "until the end"],
    ["behind empty lines, byte by byte", dripped(`\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`), "ok"],
    ["with the largest status", write("HTTP/1.1 599 Own\r\nContent-Length: 2\r\n\r\nok"), "ok"],
    ["of HTTP/1.0", thenEnd("HTTP/1.0 200 OK\r\n\r\nold"), "old"],
    ["with no reason phrase", write("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"), "ok"],
    ["that is empty", write(`${OK}Content-Length: 0\r\n\r\n`), ""],
    ["204", write("HTTP/1.1 204 No Content\r\n\r\n"), ""],
    ["304", write("HTTP/1.1 304 Not Modified\r\n\r\n"), ""],
    [
      "304 that tells the length of what it stands for",
      write("HTTP/1.1 304 Not Modified\r\nContent-Length: 5000000\r\n\r\n"),
      "",
    ],
    [
      "204 with an encoding and nothing to decode",
      write("HTTP/1.1 204 No Content\r\nContent-Encoding: zstd\r\n\r\n"),
      "",
    ],
    ["204 with a body it must not have", write("HTTP/1.1 204 No Content\r\n\r\nbody"), ""],
    [
      "304 with a body it must not have",
      write("HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"),
      "",
    ],
    ["after a 103", write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", `${OK}Content-Length: 2\r\n\r\nok`), "ok"],
    ["after a 102", write("HTTP/1.1 102 Processing\r\n\r\n", `${OK}Content-Length: 2\r\n\r\nok`), "ok"],
    ["after 16 interim ones", write("HTTP/1.1 103 x\r\n\r\n".repeat(16), `${OK}Content-Length: 2\r\n\r\nok`), "ok"],
    ["in TE: chunked of another case", write(`${OK}Transfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`), "ok"],
  ])("is read: %s", async (_name, play, body) => {
    await expectBody(play, body);
  });

  it("to HEAD has the length of a body, an encoding, and no body", async () => {
    const fields = "Content-Length: 99999999\r\nContent-Encoding: gzip\r\n\r\n";
    const { received } = await expectBody(write(OK + fields), "", "HEAD");
    expect(received.rawHeaders).toContain("99999999");
  });

  it("in one piece is not copied", async () => {
    const peer = await provider(write(answer("one piece")));
    const body = (await upstream().send(get(peer.origin), within())).body.concat();
    expect(body.toString()).toBe("one piece");
    expect(body.byteOffset).toBeGreaterThan(0);
    expect(Buffer.from(body.buffer, 0, 15).toString()).toBe("HTTP/1.1 200 OK");
  });

  it("in many pieces is put together", async () => {
    const body = Buffer.alloc(3_000_000, "0123456789");
    const peer = await provider(write(answer(body)));
    const received = await upstream().send(get(peer.origin), within());
    expect(received.body.concat().equals(body)).toBe(true);
  });
});

describe("an answer that is not HTTP", () => {
  it.each<[string, Play]>([
    ["two lengths that differ", write(`${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!`)],
    ["a list of lengths", write(`${OK}Content-Length: 2, 3\r\n\r\nok!`)],
    ["length and chunks", write(`${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`)],
    ["chunks and length", write(`${OK}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n`)],
    ["a negative length", write(`${OK}Content-Length: -1\r\n\r\n`)],
    ["a length with a sign", write(`${OK}Content-Length: +2\r\n\r\nok`)],
    ["a length of 2^64", write(`${OK}Content-Length: 18446744073709551616\r\n\r\n`)],
    ["a bad chunk size", write(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n`)],
    ["a chunk size of 2^64", write(`${OK}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\nok\r\n`)],
    ["a chunk longer than its size", write(`${OK}Transfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n`)],
    ["a transfer coding of its own", thenEnd(`${OK}Transfer-Encoding: gzip\r\n\r\nxx`)],
    ["a transfer coding before chunked", write(`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`)],
    ["a folded field", write(`${OK}X-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok`)],
    ["a space before the colon", write(`${OK}Content-Length : 2\r\n\r\nok`)],
    ["a bare line feed between fields", write(`${OK}X-A: 1\nContent-Length: 2\r\n\r\nok`)],
    ["NUL in a value", write(`${OK}X-A: a\0b\r\nContent-Length: 2\r\n\r\nok`)],
    ["NUL in a name", write(`${OK}X\0A: b\r\nContent-Length: 2\r\n\r\nok`)],
    ["a bare carriage return", write(`${OK}X-A: a\rb\r\nContent-Length: 2\r\n\r\nok`)],
    ["garbage", write("SSH-2.0-OpenSSH_9.6\r\n")],
    ["TLS", write(Buffer.from("15030300020228", "hex"))],
    ["HTTP/2", write(Buffer.from("000012040000000000000300000064000400100000", "hex"))],
    ["another version", write("HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\nok")],
    ["HTTP/2.0 in text", write("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok")],
    ["HTTP/2.0 byte by byte", dripped("\r\nHTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok")],
    ["HTTP/0.9", write("HTTP/0.9 200 OK\r\nContent-Length: 2\r\n\r\nok")],
    ["RTSP", write("RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")],
    ["status 600", write("HTTP/1.1 600 Own\r\nContent-Length: 2\r\n\r\nok")],
    ["status 999", write("HTTP/1.1 999 Own\r\nContent-Length: 2\r\n\r\nok")],
    ["a status of four digits", write("HTTP/1.1 2000 OK\r\n\r\n")],
    ["100, which nobody asked for", write("HTTP/1.1 100 Continue\r\n\r\n", `${OK}Content-Length: 2\r\n\r\nok`)],
    [
      "101 with Upgrade",
      write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw"),
    ],
    ["101 without Upgrade", write("HTTP/1.1 101 Switching Protocols\r\n\r\n")],
    ["17 interim answers", write("HTTP/1.1 103 x\r\n\r\n".repeat(17), `${OK}Content-Length: 2\r\n\r\nok`)],
    ["204 with a length", write("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nbody")],
    ["17 KB in one field", write(`${OK}X-A: ${"a".repeat(17_000)}\r\n\r\n`)],
    ["17 KB in many fields", write(`${OK}${`X-A: ${"a".repeat(1000)}\r\n`.repeat(17)}\r\n`)],
    ["101 fields", write(`${OK}${"A: b\r\n".repeat(100)}Content-Length: 0\r\n\r\n`)],
    ["2,000 fields", write(`${OK}${"A: b\r\n".repeat(2000)}Content-Length: 0\r\n\r\n`)],
    ["a name without end", write(`${OK}${"a".repeat(70_000)}`)],
    [
      "20 KB of trailers",
      write(`${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${`X: ${"a".repeat(1000)}\r\n`.repeat(20)}\r\n`),
    ],
  ])("is refused and its socket closed: %s", async (_name, play) => {
    await expectFailure(play, "PROVIDER_RESPONSE_INVALID");
  });

  it("may have exactly 100 fields", async () => {
    await expectBody(write(`${OK}${"A: b\r\n".repeat(99)}Content-Length: 2\r\n\r\nok`), "ok");
  });
});

describe("an answer that is cut short", () => {
  const reset: Play = (socket) => socket.resetAndDestroy();
  /** Resets once the text has been read: a reset that comes together with data looks like a plain end to Node.js. */
  const resetAfter =
    (text: string): Play =>
    (socket) => {
      socket.write(text);
      setTimeout(() => socket.resetAndDestroy(), 20);
    };

  it.each<[string, Play]>([
    ["closed without a byte", (socket) => socket.end()],
    ["reset without a byte", reset],
  ])("counts as no answer: %s", async (_name, play) => {
    await expectFailure(play, "PROVIDER_UNREACHABLE");
  });

  it.each<[string, Play]>([
    ["in the status line", thenEnd("HTTP/1.1 20")],
    ["in the fields", thenEnd(`${OK}Content-Le`)],
    ["before the body", thenEnd(`${OK}Content-Length: 9\r\n\r\n`)],
    ["in the body", thenEnd(`${OK}Content-Length: 9\r\n\r\nabc`)],
    ["in a body that closes", thenEnd(`${OK}Connection: close\r\nContent-Length: 9\r\n\r\nabc`)],
    ["in the chunks", thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n9\r\nabc`)],
    ["before the last chunk", thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`)],
    ["in the trailers", thenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: `)],
    ["after an interim answer", thenEnd("HTTP/1.1 103 Early Hints\r\n\r\n")],
    ["by a reset in the body", resetAfter(`${OK}Content-Length: 9\r\n\r\nabc`)],
    ["by a reset in a body without a length", resetAfter(`${OK}Connection: close\r\n\r\nabc`)],
  ])("is refused: %s", async (_name, play) => {
    await expectFailure(play, "PROVIDER_RESPONSE_INVALID");
  });
});

describe("an answer that is slow or endless", () => {
  /** Writes a piece now and again until the socket is gone. */
  const drip =
    (first: string, piece: string): Play =>
    (socket) => {
      socket.write(first);
      const timer = setInterval(() => socket.write(piece), 5);
      socket.on("close", () => clearInterval(timer));
    };

  it.each<[string, Play]>([
    ["silence", () => {}],
    ["half a status line", write("HTTP/1.1 2")],
    ["drip of fields", drip(OK, "X: y\r\n")],
    ["drip of body", drip(`${OK}Content-Length: 99999\r\n\r\n`, "x")],
    ["drip of chunks", drip(`${OK}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n")],
    ["body that stops", write(`${OK}Content-Length: 9\r\n\r\nabc`)],
  ])("ends with the deadline: %s", async (_name, play) => {
    await expectFailure(play, "PROVIDER_TIMEOUT", 250);
  });

  it("ends with the 17th interim answer, long before the deadline", async () => {
    await expectFailure(drip("", "HTTP/1.1 103 Early Hints\r\n\r\n"), "PROVIDER_RESPONSE_INVALID");
  });
});

describe("an answer that is too large", () => {
  /** Writes as fast as the peer reads, and remembers how much that was. */
  function flood(head: string): { play: Play; written: () => number } {
    let written = 0;
    const piece = Buffer.alloc(64 * 1024, "x");
    const fill = (socket: Socket) => {
      while (!socket.destroyed && socket.write(piece)) written += piece.length;
      written += piece.length;
    };
    return {
      written: () => written,
      play: (socket) => {
        socket.write(head);
        socket.on("drain", () => fill(socket));
        fill(socket);
      },
    };
  }

  it.each([
    ["without a length", `${OK}\r\n`],
    ["of one endless chunk", `${OK}Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n`],
    ["of a length it admits", `${OK}Content-Length: 100001\r\n\r\n`],
  ])("is cut off: %s", async (_name, head) => {
    const { play, written } = flood(head);
    await expectFailure(play, "RESPONSE_TOO_LARGE");
    // What fits in the socket buffers of both sides; nothing is downloaded after the limit.
    expect(written()).toBeLessThan(16 * 1024 * 1024);
  });

  it("is refused by its length alone, before the body", async () => {
    await expectFailure(write(`${OK}Content-Length: 100001\r\n\r\n`), "RESPONSE_TOO_LARGE");
  });

  it("may have exactly the size of the limit", async () => {
    await expectBody(write(`${OK}Content-Length: 100000\r\n\r\n`, "x".repeat(100_000)), "x".repeat(100_000));
  });
});

describe("an encoded answer", () => {
  const encoded = (coding: string, body: Buffer) => write(answer(body, `Content-Encoding: ${coding}`));

  it.each([
    ["gzip", gzipSync],
    ["X-GZIP", gzipSync],
    ["br", brotliCompressSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
    ["gzip, br", (body: Buffer) => brotliCompressSync(gzipSync(body))],
    ...["identity", "identity, identity", "UTF-8", "none", "binary", "aws-chunked"].map(asItIs),
  ])("is decoded: %s", async (coding, encode) => {
    await expectBody(encoded(coding, encode(Buffer.from('{"a":1}'))), '{"a":1}');
  });

  it.each([
    ["gzip", gzipSync],
    ["br", (bytes: Buffer) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ["deflate", deflateSync],
  ])("is not inflated past the limit: %s", async (coding, encode) => {
    const peer = await badProvider(encoded(coding, encode(Buffer.alloc(5_000_000))));
    const client = upstream({ maxResponseBytes: 100_000 });
    await failureOf(client.send(get(peer.origin, { path: "/bad" }), within()), "RESPONSE_TOO_LARGE");
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("fine");
  });

  it.each([
    ["corrupt", "gzip", Buffer.from("this is not gzip")],
    ["truncated", "gzip", gzipSync("some text").subarray(0, 20)],
    ["unknown", "compress", Buffer.from("xx")],
    ["applied once only", "gzip, gzip", gzipSync("x")],
    ["applied four times", "gzip, gzip, gzip, gzip", gzipSync("x")],
  ])("is refused when %s", async (_name, coding, body) => {
    const peer = await badProvider(encoded(coding, body));
    const client = upstream();
    await failureOf(client.send(get(peer.origin, { path: "/bad" }), within()), "PROVIDER_RESPONSE_INVALID");
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("fine");
  });

  it("is decoded by each of two lines", async () => {
    const body = brotliCompressSync(gzipSync("twice"));
    await expectBody(write(answer(body, "Content-Encoding: gzip", "Content-Encoding: br")), "twice");
  });
});

function asItIs(coding: string): [string, (body: Buffer) => Buffer] {
  return [coding, (body) => body];
}

describe("an answer that comes early", () => {
  it("is read although the provider does not take the rest of the request", async () => {
    const peer = await provider(() => {}, {
      onConnection: (socket) => {
        socket.pause();
        socket.end("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
      },
    });
    const request = get(peer.origin, { method: "POST", body: Buffer.alloc(8_000_000) });
    const received = await upstream().send(request, within());
    expect(received.statusCode).toBe(413);
    expect(received.body.concat().toString()).toBe("big");
  });

  it("does not leave a half-sent request on a socket that is used again", async () => {
    let paused: Socket | undefined;
    const peer = await provider((socket) => socket.write(answer("second")), {
      onConnection: (socket) => {
        if (paused !== undefined) return;
        paused = socket;
        socket.pause();
        socket.write("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
      },
    });
    const client = upstream();
    const first = await client.send(get(peer.origin, { method: "POST", body: Buffer.alloc(8_000_000) }), within());
    expect(first.statusCode).toBe(413);
    expect(await textOf(client.send(get(peer.origin), within()))).toBe("second");
    expect(peer.accepted).toBe(2);
  });
});
