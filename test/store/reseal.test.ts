import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Application, openPrivateKeyHash } from "../../src/applications/application.js";
import { addKey, loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer, type Sealer } from "../../src/sealing/seal.js";
import type { SealedRows } from "../../src/store/sealed-rows.js";
import type { Store } from "../../src/store/store.js";
import { resealAll, verifyKeys } from "../../src/store/verify-keys.js";
import { keyForTest, keyringForTest } from "../oauth/sealer-for-test.js";
import { tokenSourceForTest } from "../oauth/token-source-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const K1 = keyForTest("k1");
const K2 = keyForTest("k2");
const before = createSealer(keyringForTest(K1));
const after = createSealer(keyringForTest(K2, K1));
const newOnly = createSealer(keyringForTest(K2));

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
  });
  afterEach(() => at.remove());

  const keyOf = (userId: string) => ({ applicationId: application.id, userId, providerName: "github" });

  async function fill(sealer: Sealer, count: number): Promise<void> {
    application = applicationForTest(sealer);
    await store.applications.create(application);
    for (let user = 0; user < count; user += 1) await put(sealer, `u${user}`, `token-u${user}`);
  }

  async function put(sealer: Sealer, userId: string, token: string) {
    const members = { access_token: token, refresh_token: "refresh", id_token: "id" };
    return store.connections.put(connectionForTest(sealer, keyOf(userId), members), NOW);
  }

  async function tokenOf(userId: string, sealer: Sealer): Promise<string | undefined> {
    const connection = await store.connections.find(keyOf(userId));
    return connection && (await tokenSourceForTest({ sealer, now: () => NOW }).accessToken(connection)).reveal();
  }

  describe("resealAll()", () => {
    it("seals every value under the new key and changes nothing else", async () => {
      await fill(before, 250);
      const previous = before.seal("previous", {
        table: "connections",
        column: "previous_refresh_token",
        ...keyOf("u7"),
      });
      await at.run("UPDATE connections SET previous_refresh_token = ? WHERE user_id = 'u7'", previous);
      const rest = () =>
        at.rows("SELECT user_id, version, state, created_at, updated_at, token_type FROM connections ORDER BY id");
      const unchanged = await rest();
      expect(await resealAll(store, after)).toEqual({ resealed: 251, left: 0 });
      expect(await rest()).toEqual(unchanged);
      for (const userId of ["u0", "u7", "u249"]) expect(await tokenOf(userId, newOnly)).toBe(`token-${userId}`);
      const found = await store.connections.find(keyOf("u7"));
      expect([found?.refreshToken, found?.idToken].map((value) => newOnly.keyIdOf(value ?? new Uint8Array()))).toEqual([
        "k2",
        "k2",
      ]);
      const [row] = await at.rows("SELECT previous_refresh_token AS value FROM connections WHERE user_id = 'u7'");
      expect(newOnly.keyIdOf(row?.["value"] as Uint8Array)).toBe("k2");
      const owner = await store.applications.findByPublicKey(application.publicKey);
      expect(openPrivateKeyHash(newOnly, owner ?? application)).toHaveLength(32);
      await verifyKeys(store, newOnly);
    });

    it("does nothing the second time", async () => {
      await fill(before, 3);
      await resealAll(store, after);
      expect(await resealAll(store, after)).toEqual({ resealed: 0, left: 0 });
    });

    it("writes the check of the new key before it seals anything under it", async () => {
      await fill(before, 1);
      const broken = {
        ...store,
        sealedRows: store.sealedRows.map((rows) => ({ ...rows, page: () => Promise.reject(new Error("stop")) })),
      };
      await expect(resealAll(broken, after)).rejects.toThrow("stop");
      expect((await store.keyChecks.list()).map(({ keyId }) => keyId)).toEqual(["k2"]);
    });

    it("never puts an old token back over one that was stored meanwhile", async () => {
      await fill(before, 5);
      const meddling = store.sealedRows.map((rows): SealedRows => {
        let isFirst = true;
        return {
          ...rows,
          async replace(resealed) {
            if (isFirst && rows.table === "connections") await put(before, "u3", "newer");
            isFirst = false;
            return rows.replace(resealed);
          },
        };
      });
      expect(await resealAll({ ...store, sealedRows: meddling }, after)).toEqual({ resealed: 6, left: 0 });
      expect(await tokenOf("u3", newOnly)).toBe("newer");
      expect((await store.connections.find(keyOf("u3")))?.version).toBe(2);
    });

    it("does not bring a deleted row back", async () => {
      await fill(before, 3);
      const meddling = store.sealedRows.map(
        (rows): SealedRows => ({
          ...rows,
          async replace(resealed) {
            await store.connections.delete(keyOf("u1"), 1);
            return rows.replace(resealed);
          },
        }),
      );
      await resealAll({ ...store, sealedRows: meddling }, after);
      expect(await store.connections.find(keyOf("u1"))).toBeUndefined();
    });

    it("leaves values that do not open as they are, seals the row's others, and counts the row", async () => {
      await fill(before, 3);
      const damaged = Buffer.from("damaged");
      await at.run("UPDATE connections SET refresh_token = ? WHERE user_id = 'u1'", damaged);
      expect(await resealAll(store, after)).toEqual({ resealed: 4, left: 1 });
      expect((await store.connections.find(keyOf("u1")))?.refreshToken).toEqual(damaged);
      expect(await tokenOf("u1", newOnly)).toBe("token-u1");
      expect(await resealAll(store, after)).toEqual({ resealed: 0, left: 1 });
    });

    it("gives up on a row that changes all the time, and says so", async () => {
      await fill(before, 1);
      const restless = store.sealedRows.map(
        (rows): SealedRows => ({
          ...rows,
          async replace(resealed) {
            if (rows.table === "connections") await put(before, "u0", randomUUID());
            return rows.replace(resealed);
          },
        }),
      );
      const { resealed, left } = await resealAll({ ...store, sealedRows: restless }, after);
      expect(resealed).toBe(1);
      expect(left).toBeGreaterThan(0);
    });
  });

  describe("a rotation beside a running relay", () => {
    let folder: string;
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), "relay-reseal-"));
    });
    afterEach(() => rmSync(folder, { recursive: true, force: true }));

    it("fails no call, loses no token, and lets the old key be removed afterwards", async () => {
      const keyFile = join(folder, "relay.key");
      const running = createSealer(await loadKeyring(keyFile, { mustExist: false }));
      await verifyKeys(store, running);
      await fill(running, 300);
      let isDone = false;
      let calls = 0;
      const relay = (async () => {
        for (; !isDone; calls += 1) {
          const userId = `u${calls % 300}`;
          expect(await tokenOf(userId, running)).toMatch(`token-${userId}`);
          if (calls % 7 === 0) await put(running, userId, `token-${userId}-${calls}`);
          await nextTurn();
        }
      })();
      const operator = await at.open();
      const id = await addKey(keyFile);
      const rotated = createSealer(await loadKeyring(keyFile, { mustExist: true }));
      const report = await resealAll(operator, rotated);
      isDone = true;
      await relay;
      expect(report.left).toBe(0);
      expect(calls).toBeGreaterThan(10);
      expect([running.currentKeyId, rotated.currentKeyId]).toEqual([id, id]);
      await resealAll(operator, rotated);
      const values = await store.connections.list({ applicationId: application.id, limit: 1000 });
      expect(
        new Set(
          values
            .flatMap((c) => [c.accessToken, c.refreshToken])
            .map((value) => rotated.keyIdOf(value ?? new Uint8Array())),
        ),
      ).toEqual(new Set([id]));
    });
  });
});
