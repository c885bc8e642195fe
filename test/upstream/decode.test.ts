import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodeBody, parseContentCoding } from "../../src/upstream/decode.js";
import { failureOf } from "./upstream-for-test.js";

const MIB = 1024 * 1024;
const TEXT = Buffer.from(`{"text":"${"grüezi ".repeat(500)}"}`);
const ENCODERS = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  [" GZip ", gzipSync],
  ["br", brotliCompressSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
] as const;

describe("parseContentCoding()", () => {
  it.each([
    ["", "identity"],
    [" Identity ", "identity"],
    ["X-GZIP", "gzip"],
    ["deflate", "deflate"],
    ["br", "br"],
    ["zstd", undefined],
    ["compress", undefined],
    ["gzip, gzip", undefined],
    ["identity, gzip", undefined],
    ["gzip;q=1", undefined],
    ["__proto__", undefined],
  ])("reads %j as %s", (value, coding) => expect(parseContentCoding(value)).toBe(coding));
});

describe("decodeBody()", () => {
  it.each(ENCODERS)("decodes %s", async (coding, encode) => {
    expect(await decodeBody(encode(TEXT), coding, MIB)).toEqual(TEXT);
  });

  it("gives an identity body back without copying it", async () => {
    expect(await decodeBody(TEXT, "identity", MIB)).toBe(TEXT);
  });

  it.each(ENCODERS)("stops a bomb in %s at the limit", async (coding, encode) => {
    const bomb = encode(Buffer.alloc(32 * MIB));
    await failureOf(decodeBody(bomb, coding, MIB), "RESPONSE_TOO_LARGE");
  });

  it.each(ENCODERS)("allows exactly the limit in %s, and not one byte more", async (coding, encode) => {
    const body = encode(Buffer.alloc(100_000, "x"));
    expect(await decodeBody(body, coding, 100_000)).toHaveLength(100_000);
    await failureOf(decodeBody(body, coding, 99_999), "RESPONSE_TOO_LARGE");
  });

  it.each(ENCODERS)("refuses a truncated body in %s", async (coding, encode) => {
    const whole = encode(TEXT);
    for (const length of [1, 2, whole.length >> 1, whole.length - 1]) {
      await failureOf(decodeBody(whole.subarray(0, length), coding, MIB), "PROVIDER_RESPONSE_INVALID");
    }
  });

  it.each(["gzip", "br", "deflate"])("refuses bytes that are not %s", async (coding) => {
    await failureOf(
      decodeBody(Buffer.from("<html>this is not compressed</html>"), coding, MIB),
      "PROVIDER_RESPONSE_INVALID",
    );
  });

  it("refuses a gzip body whose checksum is wrong", async () => {
    const body = gzipSync(TEXT);
    body[body.length - 6] = (body[body.length - 6] as number) ^ 0xff;
    await failureOf(decodeBody(body, "gzip", MIB), "PROVIDER_RESPONSE_INVALID");
  });

  it("joins the members of a gzip body, ignores zeros after them and refuses anything else there", async () => {
    const members = Buffer.concat([gzipSync("one "), gzipSync("two")]);
    expect((await decodeBody(members, "gzip", MIB)).toString()).toBe("one two");
    expect((await decodeBody(Buffer.concat([members, Buffer.alloc(9)]), "gzip", MIB)).toString()).toBe("one two");
    await failureOf(
      decodeBody(Buffer.concat([members, Buffer.from("junk")]), "gzip", MIB),
      "PROVIDER_RESPONSE_INVALID",
    );
  });

  it.each(["zstd", "compress", "gzip, gzip", Array(6).fill("gzip").join(", "), Array(5000).fill("gzip").join(", ")])(
    "refuses the coding %.30s",
    async (coding) => {
      await failureOf(decodeBody(gzipSync(TEXT), coding, MIB), "PROVIDER_RESPONSE_INVALID");
    },
  );
});
