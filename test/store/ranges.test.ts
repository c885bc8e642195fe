import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { ConnectionRange } from "../../src/oauth/connection.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();

/** In the order of their UTF-8 bytes. */
const TEXTS = [
  "a",
  "a\0",
  "a!",
  "aa",
  "a\u{7f}",
  "aé",
  "a\u{ffff}",
  "a\u{10ffff}",
  "a\u{10ffff}z",
  "b",
  "é",
  "\u{10ffff}",
];

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
  });
  afterEach(() => at.remove());

  describe("applications.page()", () => {
    const page = async (prefix: string, after: string | undefined, limit: number) =>
      (await store.applications.page({ prefix, after, limit })).map(({ publicKey }) => publicKey);

    it("reads by public key, byte for byte, from behind any one", async () => {
      for (const publicKey of TEXTS.toReversed())
        await store.applications.create(applicationForTest(sealer, { publicKey }));
      expect(await page("", undefined, 100)).toEqual(TEXTS);
      for (const [index, after] of TEXTS.entries())
        expect(await page("", after, 3)).toEqual(TEXTS.slice(index + 1, index + 4));
      expect(await page("a", undefined, 100)).toEqual(TEXTS.slice(0, 9));
      expect(await page("a", "aé", 100)).toEqual(TEXTS.slice(6, 9));
      expect(await page("a\u{10ffff}", undefined, 100)).toEqual(TEXTS.slice(7, 9));
      expect(await page("c", undefined, 100)).toEqual([]);
    });
  });

  describe("connections.scan()", () => {
    let application: Application;
    beforeEach(async () => {
      application = applicationForTest(sealer, { id: "m" });
      await store.applications.create(application);
    });

    const scan = async (range: Partial<ConnectionRange>) =>
      (
        await store.connections.scan({
          applicationId: application.id,
          user: { prefix: "" },
          after: undefined,
          limit: 100,
          ...range,
        })
      ).map(({ applicationId, userId, providerName }) => ({ applicationId, userId, providerName }));
    const put = (userId: string, providerName: string, applicationId = application.id, members = {}) =>
      store.connections.put(connectionForTest(sealer, { applicationId, userId, providerName }, members), NOW);

    it("reads by user and provider, byte for byte, from behind any one", async () => {
      const keys = TEXTS.flatMap((userId) =>
        ["p", "q"].map((providerName) => ({ applicationId: "m", userId, providerName })),
      );
      for (const { userId, providerName } of keys.toReversed()) await put(userId, providerName);
      expect(await scan({})).toEqual(keys);
      for (const [index, after] of keys.entries()) {
        expect(await scan({ after, limit: 3 })).toEqual(keys.slice(index + 1, index + 4));
        const own = keys.filter(({ userId }) => userId === after.userId);
        expect(await scan({ user: { id: after.userId } })).toEqual(own);
        expect(await scan({ user: { id: after.userId }, after })).toEqual(
          own.slice(after.providerName === "p" ? 1 : 2),
        );
      }
      expect(await scan({ user: { prefix: "a" } })).toEqual(keys.slice(0, 18));
      expect(await scan({ user: { prefix: "a" }, after: keys[16], limit: 9 })).toEqual(keys.slice(17, 18));
      expect(await scan({ user: { id: "" } })).toEqual([]);
    });

    it("reads over applications in the order of their ids, with their public keys", async () => {
      for (const id of ["z", "a"]) {
        await store.applications.create(applicationForTest(sealer, { id }));
        for (const userId of ["v", "u"]) await put(userId, "p", id);
      }
      await put("w", "p");
      const all = await scan({ applicationId: undefined });
      expect(all.map(({ applicationId, userId }) => applicationId + userId)).toEqual(["au", "av", "mw", "zu", "zv"]);
      for (const [index, after] of all.entries()) {
        expect(await scan({ applicationId: undefined, after })).toEqual(all.slice(index + 1));
      }
      const [first] = await store.connections.scan({
        applicationId: undefined,
        user: { prefix: "" },
        after: undefined,
        limit: 1,
      });
      expect(first?.publicKey).toBe("pk-a");
    });

    it("shows everything but the tokens", async () => {
      const members = { refresh_token: "r", id_token: "i", scope: "x y", expires_in: 60 };
      const { accessToken, refreshToken, idToken, leaseUntil, unansweredSince, version, ...shown } = await put(
        "u",
        "p",
        "m",
        members,
      );
      await put("v", "p");
      const [first, second] = await store.connections.scan({
        applicationId: "m",
        user: { prefix: "" },
        after: undefined,
        limit: 9,
      });
      expect(first).toEqual({ ...shown, publicKey: application.publicKey, hasRefreshToken: true });
      expect(second?.hasRefreshToken).toBe(false);
      expect([accessToken, refreshToken, idToken, leaseUntil, unansweredSince, version].length).toBe(6);
    });
  });
});
