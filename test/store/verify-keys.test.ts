import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { KeyMismatchError, verifyKeys } from "../../src/store/verify-keys.js";
import type { SealKey } from "../../src/tokens/key-file.js";
import { createSealer, type Sealer } from "../../src/tokens/seal.js";
import { keyForTest, keyringForTest } from "../tokens/sealer-for-test.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW, type StoreFolder } from "./store-for-test.js";

const K1 = keyForTest("k1");
const K2 = keyForTest("k2");
const sealerOf = (...keys: [SealKey, ...SealKey[]]) => createSealer(keyringForTest(...keys));

let at: StoreFolder;
let store: SqliteStore;
beforeEach(() => {
  at = createStoreFolder();
  store = at.open();
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
  store.close();
  const before = at.files();
  store = at.open();
  try {
    await verifyKeys(store, sealerOf(...keys));
    return "started";
  } catch (error) {
    expect(error).toBeInstanceOf(KeyMismatchError);
    store.close();
    expect(at.files()).toEqual(before);
    store = at.open();
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
    expect(await start(K2)).toContain('sealed under key "k1", which the key file does not have');
    expect(await start(K2)).toContain("Put that line back into the key file. Check RELAY_KEY_FILE");
    expect(await checkedKeys()).toEqual(["k1"]);
  });

  it("refuses a key file that lacks the key of one value only", async () => {
    await start(K2, K1);
    await fill(sealerOf(K2, K1));
    await start(K1, K2);
    at.change((db) =>
      db
        .prepare("UPDATE connections SET id_token = ? WHERE user_id = 'u2'")
        .run(Buffer.concat([Buffer.from("\x01\x02k1"), Buffer.alloc(30)])),
    );
    expect(await start(K2)).toContain('sealed under key "k1"');
  });

  it("refuses a damaged check", async () => {
    await start(K1);
    at.change((db) => db.exec("UPDATE key_checks SET sealed = x'00'"));
    expect(await start(K1)).toContain('Key "k1"');
  });

  it("refuses a key that does not open the values of a store that lost its checks", async () => {
    await fill(sealerOf(K1));
    expect(await start(K2)).toContain('sealed under key "k1"');
    expect(await start(keyForTest("k1"))).toContain(
      'sealed under key "k1", which the key file does not have or has otherwise',
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

  it("starts although single values are damaged: they concern one user each", async () => {
    await start(K1);
    await fill(sealerOf(K1));
    at.change((db) =>
      db.exec("UPDATE connections SET access_token = x'' WHERE user_id = 'u1'; DELETE FROM key_checks"),
    );
    expect(await start(K1)).toBe("started");
    at.change((db) => db.exec("UPDATE connections SET access_token = zeroblob(60)"));
    expect(await start(K1)).toBe("started");
  });
});
