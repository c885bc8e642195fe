import { setImmediate as nextTurn } from "node:timers/promises";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Application, ApplicationExistsError } from "../../src/applications/application.js";
import { ChangedMeanwhileError } from "../../src/model/audit.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
  });
  afterEach(() => at.remove());

  describe("findByPublicKey()", () => {
    it("finds by exact bytes only", async () => {
      await store.applications.create(applicationForTest(sealer, { publicKey: "Key-É" }));
      for (const key of [
        "",
        "key-É",
        "KEY-É",
        "Key-E\u0301",
        "Key-É ",
        " Key-É",
        "Key-É\0",
        "Key-_",
        "Key-%",
        "' OR 1=1--",
      ]) {
        expect([key, await store.applications.findByPublicKey(key)]).toEqual([key, undefined]);
      }
      expect((await store.applications.findByPublicKey("Key-É"))?.publicKey).toBe("Key-É");
    });

    it("gives back what was created", async () => {
      const application = applicationForTest(sealer, {
        name: "É \0 '\"",
        callerAuth: "SIGNED_USER",
        allowedOrigins: ["https://a.example", 'https://"quoted"'],
        allowedAddresses: ["10.0.0.0/8"],
        state: "DISABLED",
        createdAt: NOW + 1,
        updatedAt: NOW + 2,
      });
      await store.applications.create(application);
      const found = await store.applications.findByPublicKey(application.publicKey);
      expect(found).toEqual({ ...application, privateKeyHash: Buffer.from(application.privateKeyHash) });
    });
  });

  describe("create()", () => {
    it("refuses a public key that is taken and keeps the first", async () => {
      const first = applicationForTest(sealer, { publicKey: "taken", name: "first" });
      await store.applications.create(first);
      const second = applicationForTest(sealer, { publicKey: "taken", name: "second" });
      await expect(store.applications.create(second)).rejects.toThrow(ApplicationExistsError);
      expect((await store.applications.list()).map(({ name }) => name)).toEqual(["first"]);
    });

    it("refuses values that no version of the relay writes, without quoting a sealed value", async () => {
      const bad = applicationForTest(sealer, { callerAuth: "NONE" as never });
      const error = await store.applications.create(bad).catch((e) => e);
      expect(error.code).toMatch(/^(SQLITE_CONSTRAINT_CHECK|23514)$/);
      expect(inspect(error)).not.toContain(Buffer.from(bad.privateKeyHash).toString("hex").slice(0, 20));
      expect(await store.applications.list()).toEqual([]);
    });
  });

  describe("iconOf()", () => {
    it("has the icon that an application was made with or given, which no look-up and no list carries", async () => {
      const application = applicationForTest(sealer);
      const { id, publicKey } = application;
      await store.applications.create({ ...application, icon: Buffer.from([0, 255]) });
      expect(Buffer.from(await store.applications.iconOf(id))).toEqual(Buffer.from([0, 255]));
      await store.applications.update(publicKey, { name: "x" }, NOW + 1);
      expect(await store.applications.iconOf(id)).toHaveLength(2);
      const updated = await store.applications.update(publicKey, { icon: Buffer.from("new") }, NOW + 2);
      expect(String(Buffer.from(await store.applications.iconOf(id)))).toBe("new");
      const seen = [updated, await store.applications.findByPublicKey(publicKey), ...(await store.applications.list())];
      expect(seen.map((each) => Object.keys(each ?? {}).includes("icon"))).toEqual([false, false, false]);
      await store.applications.update(publicKey, { icon: new Uint8Array(0) }, NOW + 3);
      expect(await store.applications.iconOf(id)).toHaveLength(0);
      expect(await store.applications.iconOf("nobody")).toHaveLength(0);
    });
  });

  describe("update()", () => {
    it("ends whatever was begun with the old private key, in short transactions", async () => {
      const [one, other] = [applicationForTest(sealer), applicationForTest(sealer)];
      for (const application of [one, other]) await store.applications.create(application);
      const rows = 1000;
      await at.run(`INSERT INTO tickets (id, kind, browser, application_id, user_id, payload, expires_at)
        WITH RECURSIVE row(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM row WHERE number < ${rows})
        SELECT 'row ' || number, 'STATE', '', applications.id, '', private_key_hash, 0 FROM row JOIN applications
          ON applications.id = CASE number WHEN 0 THEN '${other.id}' ELSE '${one.id}' END`);
      const operations: string[] = [];
      const rotating = await at.open({ onOperation: (kind) => void operations.push(kind) });
      const isCurrent = () => false;
      const privateKeyHash = Buffer.from("new");
      await expect(rotating.applications.update(one.publicKey, { privateKeyHash }, NOW, { isCurrent })).rejects.toThrow(
        ChangedMeanwhileError,
      );
      expect(await at.rows("SELECT id FROM tickets")).toHaveLength(rows + 1);
      await rotating.applications.update(one.publicKey, { privateKeyHash }, NOW);
      expect(await at.rows("SELECT id FROM tickets")).toEqual([{ id: "row 0" }]);
      expect(operations.filter((kind) => kind === "write").length).toBeGreaterThan(rows / 200);
    });

    it("changes only what the patch names", async () => {
      const application = applicationForTest(sealer, {
        allowedOrigins: ["https://a.example"],
        allowedAddresses: ["::1"],
      });
      await store.applications.create(application);
      const { publicKey } = application;
      expect(await store.applications.update("other", { name: "x" }, NOW + 1)).toBeUndefined();
      const renamed = await store.applications.update(publicKey, { name: "x" }, NOW + 1);
      expect(renamed).toMatchObject({
        ...application,
        privateKeyHash: expect.anything(),
        name: "x",
        updatedAt: NOW + 1,
      });
      const changed = await store.applications.update(
        publicKey,
        {
          callerAuth: "PRIVATE_KEY",
          allowedOrigins: [],
          allowedAddresses: ["10.0.0.0/8"],
          state: "DISABLED",
          privateKeyHash: Buffer.from("new"),
        },
        NOW + 2,
      );
      expect(changed).toMatchObject({
        name: "x",
        callerAuth: "PRIVATE_KEY",
        allowedOrigins: [],
        allowedAddresses: ["10.0.0.0/8"],
        state: "DISABLED",
      });
      expect(Buffer.from(changed?.privateKeyHash ?? []).toString()).toBe("new");
      expect(await store.applications.findByPublicKey(publicKey)).toEqual(changed);
    });

    it("loses none of two changes at once", async () => {
      const application = applicationForTest(sealer);
      await store.applications.create(application);
      const other = await at.open();
      await Promise.all([
        store.applications.update(application.publicKey, { name: "x" }, NOW),
        other.applications.update(application.publicKey, { state: "DISABLED" }, NOW),
      ]);
      expect(await store.applications.findByPublicKey(application.publicKey)).toMatchObject({
        name: "x",
        state: "DISABLED",
      });
    });
  });

  describe("listsOrigin()", () => {
    it("knows the origins of active applications, exactly", async () => {
      const origins = { allowedOrigins: ["https://a.example", "https://b.example"] };
      await store.applications.create(applicationForTest(sealer, origins));
      await store.applications.create(
        applicationForTest(sealer, { allowedOrigins: ["https://off.example"], state: "DISABLED" }),
      );
      const listed = async (origin: string) => store.applications.listsOrigin(origin);
      for (const origin of ["https://a.example", "https://b.example"]) expect(await listed(origin)).toBe(true);
      for (const origin of [
        "",
        "https://off.example",
        "https://A.example",
        "https://a.example.",
        "null",
        "[]",
        "https://%",
        "' OR 1=1--",
      ]) {
        expect([origin, await listed(origin)]).toEqual([origin, false]);
      }
    });
  });

  describe("listsOrigin(), of a change", () => {
    const listed = (origin: string) => store.applications.listsOrigin(origin);

    it("follows the list of an application, and its end", async () => {
      const one = applicationForTest(sealer, { allowedOrigins: ["https://a.example", "https://a.example"] });
      const other = applicationForTest(sealer, { allowedOrigins: ["https://a.example"] });
      for (const created of [one, other]) await store.applications.create(created);
      await store.applications.update(one.publicKey, { allowedOrigins: ["https://b.example"] }, NOW);
      expect([await listed("https://a.example"), await listed("https://b.example")]).toEqual([true, true]);
      await store.applications.update(other.publicKey, { allowedOrigins: [] }, NOW);
      expect(await listed("https://a.example")).toBe(false);
      await store.applications.update(one.publicKey, { name: "renamed", state: "DISABLED" }, NOW);
      expect(await listed("https://b.example")).toBe(false);
      await store.applications.update(one.publicKey, { state: "ACTIVE" }, NOW);
      expect(await listed("https://b.example")).toBe(true);
      await store.applications.delete(one.publicKey);
      expect(await listed("https://b.example")).toBe(false);
    });
  });

  describe("list()", () => {
    it("lists in order of creation", async () => {
      for (const [name, createdAt] of [
        ["c", 3],
        ["a", 1],
        ["b", 2],
      ] as const) {
        await store.applications.create(applicationForTest(sealer, { name, createdAt }));
      }
      expect((await store.applications.list()).map(({ name }) => name)).toEqual(["a", "b", "c"]);
    });
  });

  describe("delete()", () => {
    it("deletes the application's connections, and no other's", async () => {
      const [a, b] = [applicationForTest(sealer), applicationForTest(sealer)];
      const put = (application: Application, userId: string) =>
        store.connections.put(
          connectionForTest(sealer, { applicationId: application.id, userId, providerName: "github" }),
          NOW,
        );
      for (const application of [a, b]) await store.applications.create(application);
      await put(b, "u");
      // More than one transaction deletes at a time.
      await Promise.all(Array.from({ length: 450 }, (_, user) => put(a, `u${user}`)));
      expect(await store.applications.delete("other")).toBe(false);
      expect(await store.applications.delete(a.publicKey)).toBe(true);
      expect(await store.applications.delete(a.publicKey)).toBe(false);
      expect(await store.applications.findByPublicKey(a.publicKey)).toBeUndefined();
      const rest = await at.rows("SELECT application_id AS id FROM connections");
      expect(rest).toEqual([{ id: b.id }]);
    });

    it("takes connections with it that were put at the last moment", async () => {
      const application = applicationForTest(sealer);
      await store.applications.create(application);
      const key = { applicationId: application.id, userId: "u", providerName: "github" };
      await store.connections.put(connectionForTest(sealer, key), NOW);
      await at.run("DELETE FROM applications");
      expect(await store.connections.find(key)).toBeUndefined();
    });

    it("refuses calls from before the first connection goes", async () => {
      const application = applicationForTest(sealer);
      await store.applications.create(application);
      const { id: applicationId, publicKey } = application;
      // They go in three transactions.
      const users = Array.from({ length: 450 }, (_, user) => ({ applicationId, userId: `${user}`, providerName: "p" }));
      for (const key of users) await store.connections.put(connectionForTest(sealer, key), NOW);
      const look = async () => {
        const [row] = await at.rows("SELECT count(*) AS connections FROM connections");
        const state = (await store.applications.findByPublicKey(publicKey))?.state;
        return { isBegun: Number(row?.["connections"]) < users.length, state };
      };
      // Connections to the database are made here, not while it counts.
      await Promise.all([look(), look(), look()]);
      let isOver = false;
      const deleted = store.applications.delete(publicKey).finally(() => {
        isOver = true;
      });
      while (!isOver) {
        const { isBegun, state } = await look();
        if (isBegun) expect(state).not.toBe("ACTIVE");
        await nextTurn();
      }
      expect(await deleted).toBe(true);
    });
  });
});
