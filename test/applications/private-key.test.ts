import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  createPrivateKey,
  createPublicKey,
  hashPrivateKey,
  openPrivateKeyHash,
  parsePublicKey,
  sealPrivateKeyHash,
  signText,
} from "../../src/applications/application.js";
import { RelayError } from "../../src/model/errors.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";

describe("createPrivateKey()", () => {
  it("is longer than the block of SHA-256, so that its hash signs as it does", () => {
    const key = createPrivateKey();
    expect(key).toMatch(/^relay_sk_[A-Za-z0-9_-]{64}$/);
    expect(Buffer.byteLength(key)).toBeGreaterThan(64);
    for (const userId of ["", "user", "É\0", "x".repeat(256)]) {
      const byKey = createHmac("sha256", key).update(userId).digest("hex");
      expect(signText(hashPrivateKey(key), userId).toString("hex")).toBe(byKey);
    }
  });

  it("would not work with a key of 64 bytes: the reason for its length", () => {
    const short = "k".repeat(64);
    const byKey = createHmac("sha256", short).update("user").digest();
    expect(signText(createHash("sha256").update(short).digest(), "user").equals(byKey)).toBe(false);
  });

  it("never gives a key twice", () => {
    expect(new Set(Array.from({ length: 1000 }, createPrivateKey)).size).toBe(1000);
    expect(new Set(Array.from({ length: 1000 }, createPublicKey)).size).toBe(1000);
  });
});

describe("openPrivateKeyHash()", () => {
  const sealer = sealerForTest();

  it("refuses the hash of another application, or a damaged one", () => {
    const sealed = sealPrivateKeyHash(sealer, "app-a", createPrivateKey());
    for (const row of [
      { id: "app-b", privateKeyHash: sealed },
      { id: "app-a", privateKeyHash: sealed.subarray(1) },
    ]) {
      expect(() => openPrivateKeyHash(sealer, row)).toThrow(RelayError);
      expect(() => openPrivateKeyHash(sealer, row)).toThrow(expect.objectContaining({ reason: "STORE_UNAVAILABLE" }));
    }
  });

  it("opens what was sealed, which holds neither the key nor its hash", () => {
    const key = createPrivateKey();
    const sealed = Buffer.from(sealPrivateKeyHash(sealer, "app-a", key));
    expect(openPrivateKeyHash(sealer, { id: "app-a", privateKeyHash: sealed })).toEqual(hashPrivateKey(key));
    expect([sealed.includes(key), sealed.includes(hashPrivateKey(key))]).toEqual([false, false]);
  });
});

describe("parsePublicKey()", () => {
  it.each(["", "short", "has space", "tab\tinside", "nul\0inside", "é".repeat(8), "x".repeat(257)])(
    "refuses %j",
    (text) => expect(parsePublicKey(text)).toHaveProperty("problem"),
  );

  it.each(["12345678", "my.key.with-dots", createPublicKey(), "x".repeat(256)])("takes %j", (text) =>
    expect(parsePublicKey(text)).toEqual({ value: text }),
  );
});
