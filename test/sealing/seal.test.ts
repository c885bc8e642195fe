import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  associatedData,
  createSealer,
  formatSealed,
  parseSealed,
  type SealBinding,
  SealError,
} from "../../src/sealing/seal.js";
import { BINDING, keyForTest, keyringForTest, sealerForTest } from "../oauth/sealer-for-test.js";

const sealer = sealerForTest("k1");
const sealed = sealer.seal("CANARY token", BINDING);

/** The reason of the SealError that opening throws. */
function refusal(value: Uint8Array, binding: SealBinding = BINDING, opener = sealer): string {
  try {
    opener.open(value, binding);
    return "opened";
  } catch (error) {
    expect(error).toBeInstanceOf(SealError);
    expect(String((error as Error).stack)).not.toContain("CANARY");
    return (error as SealError).reason;
  }
}

describe("open()", () => {
  it("refuses a value with any one bit flipped", () => {
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const flipped = Buffer.from(sealed);
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const isKeyId = bit >> 3 === 2 || bit >> 3 === 3;
      expect([bit, refusal(flipped)]).toEqual([
        bit,
        isKeyId ? "unknown_key" : expect.stringMatching(/corrupt|unknown_key/),
      ]);
    }
  });

  it("refuses a value cut at any length, and the empty one", () => {
    for (let length = 0; length < sealed.length; length += 1)
      expect(refusal(sealed.subarray(0, length))).toBe("corrupt");
  });

  it("refuses a value cut at its front", () => {
    for (let from = 1; from <= sealed.length; from += 1) expect(refusal(sealed.subarray(from))).not.toBe("opened");
  });

  it("refuses a value with bytes behind it, or before it", () => {
    for (const count of [1, 12, 16, 1000]) {
      expect(refusal(Buffer.concat([sealed, Buffer.alloc(count)]))).toBe("corrupt");
      expect(refusal(Buffer.concat([Buffer.alloc(count, 1), sealed]))).not.toBe("opened");
    }
  });

  it("refuses any bytes at all", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => refusal(bytes) !== "opened"));
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        (bytes) => refusal(Buffer.concat([Buffer.from("\x01\x02k1"), bytes])) !== "opened",
      ),
    );
  });

  it("refuses unknown versions and a length of the key id that points behind the end", () => {
    for (const version of [0, 2, 255])
      expect(refusal(Buffer.concat([Buffer.from([version]), sealed.subarray(1)]))).toBe("corrupt");
    for (const length of [0, 200, 255]) {
      expect(refusal(Buffer.concat([sealed.subarray(0, 1), Buffer.from([length]), sealed.subarray(2)]))).toBe(
        "corrupt",
      );
    }
  });

  it("refuses a shorter tag, which Node.js 20 to 25 would accept by itself", () => {
    const parts = parseSealed(sealed);
    for (const length of [4, 8, 12, 13, 14, 15]) {
      expect(refusal(formatSealed({ ...parts, tag: parts.tag.subarray(0, length) }))).toBe("corrupt");
    }
  });

  it.each(Object.keys(BINDING) as (keyof SealBinding)[])("refuses a value of another %s", (member) => {
    expect(refusal(sealed, { ...BINDING, [member]: "other" })).toBe("corrupt");
    expect(refusal(sealed, { ...BINDING, [member]: "" })).toBe("corrupt");
    expect(refusal(sealed, { ...BINDING, [member]: `${BINDING[member]}\0` })).toBe("corrupt");
  });

  it("refuses members that only read the same when they are put together", () => {
    const value = sealer.seal("x", { ...BINDING, applicationId: "ab", userId: "c" });
    expect(refusal(value, { ...BINDING, applicationId: "a", userId: "bc" })).toBe("corrupt");
    expect(refusal(value, { ...BINDING, applicationId: "c", userId: "ab" })).toBe("corrupt");
    const zeros = sealer.seal("x", { ...BINDING, applicationId: "a\0\0\0\0b", userId: "c" });
    expect(refusal(zeros, { ...BINDING, applicationId: "a", userId: "b\0\0\0\0c" })).toBe("corrupt");
  });

  it("refuses a value under another key of the same id", () => {
    expect(refusal(sealed, BINDING, sealerForTest("k1"))).toBe("corrupt");
  });

  it("refuses a value whose key id was exchanged for another key of the ring", () => {
    const [a, b] = [keyForTest("ka"), keyForTest("kb")];
    const both = createSealer(keyringForTest(a, b));
    const renamed = formatSealed({ ...parseSealed(both.seal("x", BINDING)), keyId: "kb" });
    expect(refusal(renamed, BINDING, both)).toBe("corrupt");
  });

  it("says unknown_key, with the reason as cause, when the key file cannot be read", () => {
    const fault = new Error("file is away");
    const away = createSealer({
      ...keyringForTest(keyForTest("k2")),
      find: () => {
        throw fault;
      },
    });
    expect(() => away.open(sealed, BINDING)).toThrow(expect.objectContaining({ reason: "unknown_key", cause: fault }));
    expect(refusal(sealed, BINDING, sealerForTest("k2"))).toBe("unknown_key");
  });

  it("opens what was sealed: empty, text, bytes, up to a megabyte", () => {
    for (const plaintext of ["", "a", "É\0😀", "x".repeat(1024 * 1024)]) {
      expect(sealer.open(sealer.seal(plaintext, BINDING), BINDING).toString() === plaintext).toBe(true);
    }
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    expect(Uint8Array.from(sealer.open(sealer.seal(bytes, BINDING), BINDING))).toEqual(bytes);
  });

  it("opens a value that lies inside a larger buffer", () => {
    const larger = Buffer.concat([Buffer.alloc(7, 1), sealed, Buffer.alloc(7)]);
    const view = new Uint8Array(larger.buffer, larger.byteOffset + 7, sealed.length);
    expect(sealer.open(view, BINDING).toString()).toBe("CANARY token");
  });

  it("opens values of every key of the ring", () => {
    const [oldKey, newKey] = [keyForTest("old"), keyForTest("new")];
    const before = createSealer(keyringForTest(oldKey)).seal("x", BINDING);
    const rotated = createSealer(keyringForTest(newKey, oldKey));
    expect(rotated.open(before, BINDING).toString()).toBe("x");
    expect(rotated.currentKeyId).toBe("new");
    expect(rotated.keyIdOf(rotated.seal("x", BINDING))).toBe("new");
  });
});

describe("seal()", () => {
  it("never uses an IV twice", () => {
    const count = 20_000;
    const seen = new Set<string>();
    for (let at = 0; at < count; at += 1) {
      seen.add(Buffer.from(parseSealed(sealer.seal("", BINDING)).iv).toString("latin1"));
    }
    expect(seen.size).toBe(count);
  });

  it("leaves nothing of the text in the value", () => {
    expect(Buffer.from(sealed).includes("CANARY")).toBe(false);
  });
});

describe("associatedData()", () => {
  it("differs for any two bindings", () => {
    const text = fc.string({ maxLength: 4, unit: "binary" });
    const binding = fc.record({ table: text, column: text, applicationId: text, userId: text, providerName: text });
    fc.assert(
      fc.property(binding, binding, text, text, (a, b, keyA, keyB) => {
        const isSame = JSON.stringify([a, keyA]) === JSON.stringify([b, keyB]);
        return associatedData(a, keyA).equals(associatedData(b, keyB)) === isSame;
      }),
      { numRuns: 2000 },
    );
  });
});

describe("keyIdOf()", () => {
  it("refuses what is no sealed value", () => {
    expect(() => sealer.keyIdOf(new Uint8Array(0))).toThrow(SealError);
    expect(sealer.keyIdOf(sealed)).toBe("k1");
  });
});
