import type { Socket } from "node:net";
import * as zlib from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";

const { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } = zlib;
const A = "the first body";
const B = "and a second one behind it";
const [ZEROS, JUNK] = [Buffer.alloc(3), Buffer.from("JUNK")];

/** Where Node.js has a decoder that is used: not on 20, nor on 22, whose takes half a body for a whole one. */
const zstd =
  Number.parseInt(process.versions.node, 10) < 24
    ? undefined
    : (zlib as unknown as { zstdCompressSync: (body: string, options?: object) => Buffer }).zstdCompressSync;

/** A frame whose last bytes are those: of its checksum. */
function frameEndingIn(pattern: RegExp): Buffer {
  const { ZSTD_c_checksumFlag } = zlib.constants as unknown as { ZSTD_c_checksumFlag: number };
  for (let at = 0; ; at += 1) {
    const frame = zstd?.(`${A} ${at}`, { params: { [ZSTD_c_checksumFlag]: 1 } }) ?? Buffer.alloc(0);
    if (pattern.test(frame.toString("latin1"))) return frame;
  }
}

type Case = readonly [name: string, coding: string, parts: readonly Buffer[], text?: string];

/** Bodies that have an end within them, by their codings; those with a text are whole. */
const CASES: readonly Case[] = [
  ["two members of gzip", "gzip", [gzipSync(A), gzipSync(B)], A + B],
  ["gzip padded with zeros", "gzip", [gzipSync(A), ZEROS, ZEROS], A],
  ["gzip within padded gzip within br", "gzip, gzip, br", [brotliCompressSync(twice(A))], A],
  ["an empty body in gzip in gzip", "gzip, gzip", [gzipSync("")], ""],
  ["gzip and other bytes", "gzip", [gzipSync(A), JUNK]],
  ["gzip, zeros and gzip", "gzip", [gzipSync(A), ZEROS, gzipSync(B)]],
  ["gzip, zeros and other bytes", "gzip", [gzipSync(A), ZEROS, JUNK]],
  ["gzip and gzip cut short", "gzip", [gzipSync(A), gzipSync(B).subarray(0, 1)]],
  ["two streams of br", "br", [brotliCompressSync(A), brotliCompressSync(B)]],
  ["br and other bytes", "br", [brotliCompressSync(A), JUNK]],
  ["br and zeros", "br", [brotliCompressSync(A), ZEROS]],
  ["two streams of deflate", "deflate", [deflateSync(A), deflateSync(B)]],
  ["two streams of bare deflate", "deflate", [deflateRawSync(A), deflateRawSync(B)]],
  ["deflate and a byte", "deflate", [deflateSync(A), ZEROS.subarray(0, 1)]],
  [
    "two streams of br within gzip",
    "br, gzip",
    [gzipSync(Buffer.concat([A, B].map((text) => brotliCompressSync(text))))],
  ],
  ...(zstd === undefined ? [] : zstdCases(zstd)),
];

function twice(text: string): Buffer {
  return gzipSync(Buffer.concat([gzipSync(text), ZEROS]));
}

function zstdCases(encode: (text: string) => Buffer): readonly Case[] {
  const skipped = Buffer.from("5a2a4d1802000000abcd", "hex");
  const textOf = (frame: Buffer) =>
    (zlib as unknown as { zstdDecompressSync: (body: Buffer) => Buffer }).zstdDecompressSync(frame).toString();
  const [likeFrame, likeSkipped] = [frameEndingIn(/\($/), frameEndingIn(/[P-_]$/)];
  return [
    ["two frames of zstd", "zstd", [encode(A), encode(B)], A + B],
    ["a frame of zstd and one to be skipped", "zstd", [encode(A), skipped], A],
    ["a frame of zstd that ends as one begins", "zstd", [likeFrame], textOf(likeFrame)],
    ["a frame of zstd that ends as a skipped one begins", "zstd", [likeSkipped], textOf(likeSkipped)],
    ["zstd and other bytes", "zstd", [encode(A), JUNK]],
    ["zstd and a byte", "zstd", [encode(A), JUNK.subarray(0, 1)]],
    ...[1, 2, 3, 4, 9].flatMap((length): Case[] => [
      [`zstd and ${length} bytes of zstd`, "zstd", [encode(A), encode(B).subarray(0, length)]],
      [`zstd and ${length} bytes to be skipped`, "zstd", [encode(A), skipped.subarray(0, length)]],
    ]),
  ];
}

/** How the body comes. */
const WAYS = {
  length: (socket, head, parts) => {
    const body = Buffer.concat(parts);
    socket.write(Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]));
  },
  close: (socket, head, parts) => {
    socket.end(Buffer.concat([Buffer.from(`${head}\r\n`), ...parts]));
  },
  chunks: async (socket, head, parts) => {
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
    for (const part of parts) await written(socket, chunkOf(part));
    socket.write("0\r\n\r\n");
  },
  bytes: async (socket, head, parts) => {
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
    for (const byte of Buffer.concat(parts)) await written(socket, chunkOf(Buffer.of(byte)));
    socket.write("0\r\n\r\n");
  },
} satisfies Record<string, (socket: Socket, head: string, parts: readonly Buffer[]) => unknown>;

function chunkOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
}

function written(socket: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => void socket.write(bytes, () => setImmediate(resolve)));
}

let provider: RawProvider;
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    const [, way, index] = /^GET \/(\w+)\/(\d+)/.exec(head) as unknown as [string, keyof typeof WAYS, string];
    const [, coding, parts] = CASES[Number(index)] as Case;
    void WAYS[way](socket, `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: ${coding}\r\n`, parts);
  });
  harness = await startHarness({ providers: [{ name: "raw", apiOrigins: [provider.origin] }] });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const callTo = (path: string) => ({
  providerName: "raw",
  userId: "u",
  publicKey: application.publicKey,
  call: { url: provider.origin + path, method: "GET" },
});

describe("a coded body", () => {
  it.each(CASES.map(([name, coding, , text], index) => [name, coding, index, text] as const))(
    "ends where its coding ends: %s (%s)",
    async (_name, _coding, index, text) => {
      const [, caller] = createCallers(harness.url)[0] as ReturnType<typeof createCallers>[0];
      const [, streamCaller] = createStreamCallers(harness.url)[0] as ReturnType<typeof createStreamCallers>[0];
      for (const way of Object.keys(WAYS)) {
        const call = callTo(`/${way}/${index}`);
        const row = await caller(call);
        const streamed = await streamCaller(call).then(
          ({ body }) => body.toString(),
          () => "cut",
        );
        if (text === undefined) {
          expect({ way, ...row }).toMatchObject({ way, statusCode: 502, errorType: "PROVIDER_RESPONSE_INVALID" });
          expect({ way, streamed }).toEqual({ way, streamed: "cut" });
        } else {
          expect({ way, ...row }).toMatchObject({ way, statusCode: 200, data: text === "" ? {} : text });
          expect({ way, streamed }).toEqual({ way, streamed: text });
        }
      }
    },
  );
});
