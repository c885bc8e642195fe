import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { bytesOf } from "../../src/lib/chunks.js";
import { type ContentCoding, decodeBody, parseContentCodings } from "../../src/upstream/decode.js";
import { answer } from "../support/raw-provider.js";
import { failureOf, get, provider, upstream, within } from "./upstream-for-test.js";

const { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } = zlib;
/** Undefined where Node.js has none, and on 22, whose decoder takes half a body for a whole one. */
const zstdCompressSync =
  Number.parseInt(process.versions.node, 10) < 24
    ? undefined
    : (zlib as unknown as { zstdCompressSync: (body: Buffer) => Buffer }).zstdCompressSync;
const MIB = 1024 * 1024;
/** Its best quality takes a hundred times as long, and is decoded no other way. */
const brotli = (body: Buffer) => brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } });
const TEXT = Buffer.from(`{"text":"${"grüezi ".repeat(500)}"}`);
const ENCODERS: ReadonlyArray<readonly [readonly ContentCoding[], (body: Buffer) => Buffer]> = [
  [["gzip"], gzipSync],
  [["br"], brotli],
  [["deflate"], deflateSync],
  [["deflate"], deflateRawSync],
  [["br", "gzip"], (body) => brotli(gzipSync(body))],
  [["deflate", "deflate", "gzip"], (body) => deflateSync(deflateRawSync(gzipSync(body)))],
  ...(zstdCompressSync === undefined ? [] : ([[["zstd"], zstdCompressSync]] as const)),
];

describe("parseContentCodings()", () => {
  it.each<[string, readonly string[] | undefined]>([
    ...["", " Identity ", "identity, identity", "UTF-8", "utf8", "iso-8859-1", "us-ascii"].map(withoutCoding),
    ...["none", "binary", "aws-chunked", "8bit", " , ,", "none, UTF-8, identity, binary, 7bit"].map(withoutCoding),
    ["X-GZIP", ["gzip"]],
    ["deflate", ["deflate"]],
    ["br", ["br"]],
    ["gzip, br", ["br", "gzip"]],
    ["identity, gzip", ["gzip"]],
    ["aws-chunked,gzip,", ["gzip"]],
    ["gzip, gzip, gzip", ["gzip", "gzip", "gzip"]],
    ["gzip, gzip, gzip, gzip", undefined],
    ["zstd", zstdCompressSync === undefined ? undefined : ["zstd"]],
    ["compress", undefined],
    ["gzip, compress", undefined],
    ["x-own", undefined],
    ["gzip;q=1", undefined],
    ["__proto__", undefined],
    [Array(5000).fill("gzip").join(", "), undefined],
  ])("reads %.40j as %s", (value, codings) => expect(parseContentCodings(value)).toEqual(codings));
});

/** In one piece. */
async function decoded(body: Buffer, codings: readonly ContentCoding[], maxBytes: number): Promise<Buffer> {
  return (await decodeBody(bytesOf(body), codings, maxBytes, () => true)).concat();
}

function withoutCoding(value: string): [string, readonly string[]] {
  return [value, []];
}

describe("decodeBody()", () => {
  it.each(ENCODERS)("decodes %s", async (coding, encode) => {
    expect(await decoded(encode(TEXT), coding, MIB)).toEqual(TEXT);
  });

  it("stops a bomb within a bomb before it is decoded again", async () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(16 * MIB), { level: 0 }));
    await failureOf(decoded(bomb, ["gzip", "gzip"], MIB), "RESPONSE_TOO_LARGE");
  });

  it.each(ENCODERS)("stops a bomb in %s at the limit", async (coding, encode) => {
    const bomb = encode(Buffer.alloc(8 * MIB));
    await failureOf(decoded(bomb, coding, MIB), "RESPONSE_TOO_LARGE");
  });

  it.each(ENCODERS)("allows exactly the limit in %s, and not one byte more", async (coding, encode) => {
    const body = encode(Buffer.alloc(100_000, "x"));
    expect(await decoded(body, coding, 100_000)).toHaveLength(100_000);
    await failureOf(decoded(body, coding, 99_999), "RESPONSE_TOO_LARGE");
  });

  it.each(ENCODERS)("decodes %s no further than it may grow", async (coding, encode) => {
    const asked: number[] = [];
    const mayGrowTo = (length: number) => asked.push(length) > 0 && length < 100_000;
    await failureOf(decodeBody(bytesOf(encode(Buffer.alloc(8 * MIB))), coding, 8 * MIB, mayGrowTo), "OVERLOADED");
    expect(Math.max(...asked)).toBeLessThan(MIB);
  });

  it("can be ended before each piece of a body that decodes to nothing", async () => {
    let asked = 0;
    const members = bytesOf(Buffer.concat(Array(20_000).fill(gzipSync(""))));
    const decoding = decodeBody(members, ["gzip"], MIB, () => ++asked < 3);
    await failureOf(decoding, "OVERLOADED");
    expect(asked).toBe(3);
  });

  it.each(ENCODERS)("refuses a truncated body in %s", async (coding, encode) => {
    const whole = encode(TEXT);
    for (const length of [1, 2, whole.length >> 1, whole.length - 1]) {
      await failureOf(decoded(whole.subarray(0, length), coding, MIB), "PROVIDER_RESPONSE_INVALID");
    }
  });

  it.each<ContentCoding>(["gzip", "br", "deflate"])("refuses bytes that are not %s", async (coding) => {
    await failureOf(
      decoded(Buffer.from("<html>this is not compressed</html>"), [coding], MIB),
      "PROVIDER_RESPONSE_INVALID",
    );
  });

  it("refuses a gzip body whose checksum is wrong", async () => {
    const body = gzipSync(TEXT);
    body[body.length - 6] = (body[body.length - 6] as number) ^ 0xff;
    await failureOf(decoded(body, ["gzip"], MIB), "PROVIDER_RESPONSE_INVALID");
  });

  it("joins the members of a gzip body, ignores zeros after them and refuses anything else there", async () => {
    const members = Buffer.concat([gzipSync("one "), gzipSync("two")]);
    expect((await decoded(members, ["gzip"], MIB)).toString()).toBe("one two");
    expect((await decoded(Buffer.concat([members, Buffer.alloc(9)]), ["gzip"], MIB)).toString()).toBe("one two");
    await failureOf(decoded(Buffer.concat([members, Buffer.from("junk")]), ["gzip"], MIB), "PROVIDER_RESPONSE_INVALID");
  });
});

describe("the memory of a coded answer", () => {
  it("is charged as it is decoded, and decoding ends where there is no room", async () => {
    const coded = brotli(Buffer.alloc(4 * MIB));
    const peer = await provider((socket) => socket.write(answer(coded, "Content-Encoding: br")));
    const client = upstream();
    let held = 0;
    const memoryOf = (bytes: number) => ({
      reserve(more: number) {
        if (held + more > bytes) return false;
        held += more;
        return true;
      },
      giveBack(less: number) {
        held -= less;
      },
    });
    await failureOf(client.send(get(peer.origin), { ...within(), memory: memoryOf(8 * MIB) }), "OVERLOADED");
    held = 0;
    await client.send(get(peer.origin), { ...within(), memory: memoryOf(16 * MIB) });
    expect(held).toBe(2 * (coded.length + 4 * MIB));
  });
});
