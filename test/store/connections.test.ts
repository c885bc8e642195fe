import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { ConnectionKey } from "../../src/oauth/connection.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { tokenSourceForTest } from "../oauth/token-source-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const tokens = tokenSourceForTest({ sealer, now: () => NOW });

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    application = applicationForTest(sealer);
    await store.applications.create(application);
  });
  afterEach(() => at.remove());

  const keyOf = (userId: string, patch: Partial<ConnectionKey> = {}): ConnectionKey => ({
    applicationId: application.id,
    userId,
    providerName: "github",
    ...patch,
  });

  async function tokenOf(key: ConnectionKey): Promise<string | undefined> {
    const connection = await store.connections.find(key);
    return connection && (await tokens.accessToken(connection)).reveal();
  }

  /** All distinct, and all too easily taken for another (threats T02, D10). */
  const USER_IDS = [
    "1",
    "01",
    " 1",
    "1 ",
    "\t1",
    "１",
    "1\0",
    "1\0x",
    "\0",
    "",
    "a",
    "A",
    "a/b",
    "a%2Fb",
    "a%b",
    "a_b",
    "É",
    "E\u0301",
    "é",
    "ß",
    "ss",
    "i",
    "ı",
    "İ",
    "😀",
    "\u200b1",
    "' OR 1=1--",
    '";DROP TABLE connections;--',
    "x".repeat(256),
    "x".repeat(257),
    "1e0",
    "1.0",
    "0x1",
    "null",
    "undefined",
  ];

  describe("find()", () => {
    it("tells user ids apart byte by byte", async () => {
      for (const [index, userId] of USER_IDS.entries()) {
        expect([userId, await tokenOf(keyOf(userId))]).toEqual([userId, undefined]);
        await store.connections.put(connectionForTest(sealer, keyOf(userId), { access_token: `token-${index}` }), NOW);
      }
      for (const [index, userId] of USER_IDS.entries()) {
        expect([userId, await tokenOf(keyOf(userId))]).toEqual([userId, `token-${index}`]);
        expect((await store.connections.find(keyOf(userId)))?.userId).toBe(userId);
      }
    });

    it("never finds a connection of another application, user or provider", async () => {
      const applications = [application, applicationForTest(sealer), applicationForTest(sealer)];
      for (const other of applications.slice(1)) await store.applications.create(other);
      const keys = applications.flatMap(({ id }) =>
        ["u1", "u2", "u3"].flatMap((userId) =>
          ["github", "google"].map((providerName) => ({ applicationId: id, userId, providerName })),
        ),
      );
      const isStored = (index: number) => index % 3 !== 0;
      for (const [index, key] of keys.entries()) {
        if (isStored(index))
          await store.connections.put(connectionForTest(sealer, key, { access_token: `t${index}` }), NOW);
      }
      const found = await Promise.all(keys.map((key) => tokenOf(key)));
      expect(found).toEqual(keys.map((_, index) => (isStored(index) ? `t${index}` : undefined)));
      for (const wild of ["%", "_", "*", "", "' OR '1'='1", "u1' --"]) {
        expect(await store.connections.find(keyOf(wild))).toBeUndefined();
        expect(await store.connections.find(keyOf("u2", { applicationId: wild }))).toBeUndefined();
        expect(await store.connections.find(keyOf("u2", { providerName: wild }))).toBeUndefined();
      }
    });

    it("opens no token that was moved to another row or column of the database", async () => {
      await store.connections.put(
        connectionForTest(sealer, keyOf("u1"), { access_token: "t1", refresh_token: "r1" }),
        NOW,
      );
      await store.connections.put(connectionForTest(sealer, keyOf("u2"), { access_token: "t2" }), NOW);
      await at.run(
        "UPDATE connections SET access_token = (SELECT access_token FROM connections WHERE user_id = 'u1') WHERE user_id = 'u2'",
      );
      await expect(tokenOf(keyOf("u2"))).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
      expect(await tokenOf(keyOf("u1"))).toBe("t1");
      await at.run("UPDATE connections SET access_token = refresh_token WHERE user_id = 'u1'");
      // A change of another process is seen in the next turn.
      await nextTurn();
      await expect(tokenOf(keyOf("u1"))).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    });
  });

  describe("put()", () => {
    it("gives back what was put", async () => {
      const members = { refresh_token: "r", id_token: "i", expires_in: 60, scope: "a b", token_type: "bearer" };
      const connection = { ...connectionForTest(sealer, keyOf("u"), members), originParameters: { subdomain: 'É"' } };
      const put = await store.connections.put(connection, NOW + 5);
      expect(put).toEqual({
        ...connection,
        accessToken: Buffer.from(connection.accessToken),
        refreshToken: Buffer.from(connection.refreshToken ?? []),
        idToken: Buffer.from(connection.idToken ?? []),
        stateReason: undefined,
        failCount: 0,
        lastFailedAt: undefined,
        lastErrorClass: undefined,
        nextTryAt: undefined,
        leaseUntil: undefined,
        trouble: undefined,
        version: 1,
        createdAt: NOW + 5,
        updatedAt: NOW + 5,
      });
      expect(await store.connections.find(keyOf("u"))).toEqual(put);
    });

    it("replaces the token set, forgets what was known of the old one, keeps its creation, and is another row to late writes", async () => {
      const first = await store.connections.put(
        connectionForTest(sealer, keyOf("u"), { access_token: "old", refresh_token: "r", id_token: "i" }),
        NOW,
      );
      await at.run(
        `UPDATE connections SET state = 'REAUTHORIZATION_REQUIRED', state_reason = 'invalid_grant',
      previous_refresh_token = ?, lease_owner = 'me', lease_until = 1, fail_count = 3, next_try_at = 1, last_error_class = 'x'`,
        Buffer.from([1]),
      );
      const second = await store.connections.put(
        connectionForTest(sealer, keyOf("u"), { access_token: "new" }),
        NOW + 9,
      );
      expect(second.id).not.toBe(first.id);
      expect(second).toMatchObject({ createdAt: NOW, updatedAt: NOW + 9, version: 2, state: "ACTIVE" });
      expect([second.refreshToken, second.idToken, await tokenOf(keyOf("u"))]).toEqual([undefined, undefined, "new"]);
      const [rest = {}] = await at.rows(
        "SELECT state_reason, previous_refresh_token, lease_owner, lease_until, next_try_at, last_error_class FROM connections",
      );
      expect(Object.values(rest)).toEqual(Array.from({ length: 6 }, () => null));
      expect(second.failCount).toBe(0);
    });

    it("refuses a connection of an application that is gone", async () => {
      const key = keyOf("u", { applicationId: "gone" });
      await expect(store.connections.put(connectionForTest(sealer, key), NOW)).rejects.toMatchObject({
        reason: "INVALID_PUBLIC_KEY",
      });
      expect(await store.connections.find(key)).toBeUndefined();
    });

    it("counts the version up for each of many at once", async () => {
      const other = await at.open();
      const puts = Array.from({ length: 20 }, (_, index) =>
        (index % 2 ? store : other).connections.put(
          connectionForTest(sealer, keyOf("u"), { access_token: `t${index}` }),
          NOW,
        ),
      );
      const versions = (await Promise.all(puts)).map(({ version }) => version);
      expect(versions.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    });
  });

  describe("list()", () => {
    it("lists one application's, by user and provider, at most so many", async () => {
      for (const [userId, providerName] of [
        ["b", "github"],
        ["a", "slack"],
        ["a", "github"],
        ["B", "github"],
      ] as const) {
        await store.connections.put(connectionForTest(sealer, keyOf(userId, { providerName })), NOW);
      }
      const list = async (patch: object) =>
        (await store.connections.list({ applicationId: application.id, limit: 10, ...patch })).map(
          (c) => `${c.userId} ${c.providerName}`,
        );
      expect(await list({})).toEqual(["B github", "a github", "a slack", "b github"]);
      expect(await list({ limit: 2 })).toEqual(["B github", "a github"]);
      expect(await list({ userId: "a" })).toEqual(["a github", "a slack"]);
      expect(await list({ userId: "a", limit: 1 })).toEqual(["a github"]);
      expect([await list({ userId: "A" }), await list({ userId: "" }), await list({ applicationId: "other" })]).toEqual(
        [[], [], []],
      );
    });
  });

  describe("delete()", () => {
    it("deletes exactly one, once", async () => {
      for (const userId of ["a", "a "]) await store.connections.put(connectionForTest(sealer, keyOf(userId)), NOW);
      expect(await store.connections.delete(keyOf("A"), 1)).toBe(undefined);
      expect(await store.connections.delete(keyOf("a"), 1)).toMatchObject(keyOf("a"));
      expect(await store.connections.delete(keyOf("a"), 1)).toBe(undefined);
      expect((await store.connections.find(keyOf("a ")))?.userId).toBe("a ");
    });
  });
});
