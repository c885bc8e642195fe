import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SealKey } from "../../src/sealing/keyring.js";
import { createSealer, type Sealer } from "../../src/sealing/seal.js";
import type { Store } from "../../src/store/store.js";
import { KeyMismatchError, probeKeys, verifyKeys } from "../../src/store/verify-keys.js";
import { keyForTest, keyringForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const K1 = keyForTest("k1");
const K2 = keyForTest("k2");
const sealerOf = (...keys: [SealKey, ...SealKey[]]) => createSealer(keyringForTest(...keys));

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
  });
  afterEach(() => at.remove());

  async function fill(sealer: Sealer): Promise<void> {
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    for (const userId of ["u1", "u2"]) {
      const key = { applicationId: application.id, userId, providerName: "github" };
      await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
    }
  }

  const checkedKeys = async () => (await store.keyChecks.list()).map(({ keyId }) => keyId);

  /** Starts like a relay with these keys; the database must be as before, byte for byte, when that fails. */
  async function start(...keys: [SealKey, ...SealKey[]]): Promise<string> {
    await store.close();
    const before = await at.contents();
    store = await at.open();
    try {
      await verifyKeys(store, sealerOf(...keys));
      return "started";
    } catch (error) {
      expect(error).toBeInstanceOf(KeyMismatchError);
      await store.close();
      expect(await at.contents()).toEqual(before);
      store = await at.open();
      return (error as Error).message;
    }
  }

  describe("verifyKeys()", () => {
    it("refuses another key of the same id", async () => {
      expect(await start(K1)).toBe("started");
      await fill(sealerOf(K1));
      expect(await start(keyForTest("k1"))).toContain(
        'Key "k1" of the key file is not the key this store was sealed with',
      );
      expect(await start(K2, keyForTest("k1"))).toContain('Key "k1"');
      expect(await start(K1)).toBe("started");
    });

    it("refuses a key file that lacks a key that values are sealed under", async () => {
      await start(K1);
      await fill(sealerOf(K1));
      expect(await start(K2)).toContain('sealed under key "k1", which is missing from the key file');
      expect(await start(K2)).toContain("Put that line back into the key file. Check RELAY_KEY_FILE");
      expect(await checkedKeys()).toEqual(["k1"]);
    });

    it("refuses a key file that lacks the key of one value only", async () => {
      await start(K2, K1);
      await fill(sealerOf(K2, K1));
      await start(K1, K2);
      const value = Buffer.concat([Buffer.from("\x01\x02k1"), Buffer.alloc(30)]);
      await at.run("UPDATE connections SET id_token = ? WHERE user_id = 'u2'", value);
      expect(await start(K2)).toContain('sealed under key "k1"');
    });

    it("refuses a damaged check", async () => {
      await start(K1);
      await at.run("UPDATE key_checks SET sealed = ?", Buffer.alloc(1));
      expect(await start(K1)).toContain('Key "k1"');
    });

    it("refuses a key that does not open the values of a store that lost its checks", async () => {
      await fill(sealerOf(K1));
      expect(await start(K2)).toContain('sealed under key "k1"');
      expect(await start(keyForTest("k1"))).toContain(
        'sealed under key "k1", which is missing from the key file or has a different value there',
      );
      expect(await checkedKeys()).toEqual([]);
      expect(await start(K1)).toBe("started");
      expect(await checkedKeys()).toEqual(["k1"]);
    });

    it("starts an empty store and remembers its key, once", async () => {
      expect(await start(K1)).toBe("started");
      const checks = await store.keyChecks.list();
      expect(await start(K1)).toBe("started");
      expect(await store.keyChecks.list()).toEqual(checks);
    });

    it("starts with a new key in front of the old one, and with the order changed back", async () => {
      await start(K1);
      await fill(sealerOf(K1));
      expect([await start(K2, K1), await checkedKeys()]).toEqual(["started", ["k1", "k2"]]);
      expect([await start(K1, K2), await checkedKeys()]).toEqual(["started", ["k1", "k2"]]);
    });

    it("lets an old key go that nothing is sealed under any more", async () => {
      await start(K1);
      expect([await start(K2), await checkedKeys()]).toEqual(["started", ["k2"]]);
      await fill(sealerOf(K2));
      expect(await start(K1)).toContain('sealed under key "k2"');
    });

    it("keeps the check of a newer key, which another process begins to rotate to, for a day", async () => {
      await start(K1);
      await fill(sealerOf(K1));
      await start(K2, K1);
      await at.run("UPDATE key_checks SET created_at = created_at - 1 WHERE key_id = 'k1'");
      expect([await start(K1), await checkedKeys()]).toEqual(["started", ["k1", "k2"]]);
      await expect(probeKeys(store, sealerOf(K1))).rejects.toThrow('Key "k2" does not open the store');
      await at.run("UPDATE key_checks SET created_at = created_at - ?", 86_400_001);
      expect([await start(K1), await checkedKeys()]).toEqual(["started", ["k1"]]);
      await probeKeys(store, sealerOf(K1));
    });

    it("starts although single values are damaged: they concern one user each", async () => {
      await start(K1);
      await fill(sealerOf(K1));
      await at.run("UPDATE connections SET access_token = ? WHERE user_id = 'u1'", Buffer.alloc(0));
      await at.run("DELETE FROM key_checks");
      expect(await start(K1)).toBe("started");
      await at.run("UPDATE connections SET access_token = ?", Buffer.alloc(60));
      expect(await start(K1)).toBe("started");
    });
  });
});
