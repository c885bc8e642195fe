import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ticket } from "../../src/oauth/tickets.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let applicationId: string;

  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    applicationId = await newApplication();
  });

  afterEach(() => at.remove());

  async function newApplication(): Promise<string> {
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    return application.id;
  }

  const ticket = (patch: Partial<Ticket> = {}): Ticket => ({
    id: "id",
    kind: "STATE",
    browser: "b",
    applicationId,
    userId: "e\u0301\u0000",
    payload: Buffer.from([0, 1, 255]),
    expiresAt: NOW + 1,
    ...patch,
  });

  const idsLeft = async () => (await at.rows("SELECT id FROM tickets ORDER BY id")).map(({ id }) => id);

  describe("the store of tickets", () => {
    it("keeps a ticket as it is", async () => {
      expect(await store.tickets.add(ticket(), 1, NOW)).toBe(true);
      expect(await store.tickets.find(ticket(), NOW)).toEqual(ticket());
      expect(await store.tickets.take(ticket(), NOW)).toEqual(ticket());
      expect(await idsLeft()).toEqual([]);
    });

    it.each<Partial<Ticket>>([{ id: "ID" }, { id: "" }, { kind: "LINK" }, { browser: "" }, { browser: "B" }])(
      "finds none that differs: %j",
      async (patch) => {
        await store.tickets.add(ticket(), 1, NOW);
        expect(await store.tickets.find(ticket(patch), NOW)).toBeUndefined();
        expect(await store.tickets.take(ticket(patch), NOW)).toBeUndefined();
        expect(await idsLeft()).toEqual(["id"]);
      },
    );

    it("finds none that has ended", async () => {
      await store.tickets.add(ticket(), 1, NOW);
      expect(await store.tickets.find(ticket(), NOW + 1)).toBeUndefined();
      expect(await store.tickets.take(ticket(), NOW + 1)).toBeUndefined();
    });

    it("uses up a link with the session that it becomes, once, and keeps it when the session cannot be stored", async () => {
      const link = ticket({ id: "link", kind: "LINK", browser: "" });
      const session = (id: string) => ticket({ id, kind: "SESSION" });
      await store.tickets.add(link, 1, NOW);
      await store.tickets.add(session("taken"), 9, NOW);
      await expect(store.tickets.add(session("taken"), 9, NOW, link)).rejects.toThrow();
      expect(await idsLeft()).toEqual(["link", "taken"]);
      const ids = Array.from({ length: 8 }, (_, at) => `session ${at}`);
      const added = await Promise.all(ids.map((id) => store.tickets.add(session(id), 9, NOW, link)));
      expect(added.filter(Boolean)).toHaveLength(1);
      expect(await idsLeft()).toEqual([ids[added.indexOf(true)], "taken"]);
    });

    it("adds no more than the most of one application and kind", async () => {
      const add = (patch: Partial<Ticket>) => store.tickets.add(ticket({ kind: "LINK", ...patch }), 2, NOW);
      expect(await add({ id: "1" })).toBe(true);
      expect(await add({ id: "2" })).toBe(true);
      expect(await add({ id: "3" })).toBe(false);
      expect(await add({ id: "4", kind: "STATE" })).toBe(true);
      expect(await add({ id: "5", applicationId: await newApplication() })).toBe(true);
      expect(await idsLeft()).toEqual(["1", "2", "4", "5"]);
    });

    it.each(["SESSION", "STATE"] as const)("removes the oldest for a new %s beyond the most", async (kind) => {
      const other = kind === "STATE" ? "SESSION" : "STATE";
      const add = (patch: Partial<Ticket>) => store.tickets.add(ticket({ kind, ...patch }), 2, NOW);
      await add({ id: "of another kind", kind: other });
      await add({ id: "of another application", applicationId: await newApplication() });
      for (const second of [1, 2, 3, 4]) {
        expect(await add({ id: `${second}`, expiresAt: NOW + second * 1000 })).toBe(true);
      }
      expect(await idsLeft()).toEqual(["3", "4", "of another application", "of another kind"]);
    });

    it("sweeps what has ended, of every application", async () => {
      await store.tickets.add(ticket({ id: "old", applicationId: await newApplication() }), 9, NOW);
      await store.tickets.add(ticket({ id: "new", expiresAt: NOW + 9 }), 9, NOW + 1);
      expect(await idsLeft()).toEqual(["new"]);
    });

    it("takes what only a clock far ahead can have issued for expired, and sweeps it", async () => {
      const ahead = ticket({ id: "ahead", expiresAt: NOW + 365 * 24 * 3_600_000 });
      const valid = ticket({ id: "valid", expiresAt: NOW + 35 * 60_000 });
      await store.tickets.add(ahead, 1, ahead.expiresAt - 1);
      expect(await store.tickets.find(ahead, NOW)).toBeUndefined();
      expect(await store.tickets.take(ahead, NOW)).toBeUndefined();
      expect(await idsLeft()).toEqual(["ahead"]);
      expect(await store.tickets.add(valid, 1, NOW)).toBe(true);
      expect(await idsLeft()).toEqual(["valid"]);
      expect(await store.tickets.find(valid, NOW)).toEqual(valid);
    });

    it("adds none of an application that is gone", async () => {
      const gone = store.tickets.add(ticket({ applicationId: "gone" }), 1, NOW);
      await expect(gone).rejects.toMatchObject({ reason: "INVALID_PUBLIC_KEY" });
    });

    it("says when it cannot be used", async () => {
      await store.close();
      await expect(store.tickets.take(ticket(), NOW)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
    });
  });

  describe("a change of the application", () => {
    const publicKey = () => `pk-${applicationId}`;

    it("ends its tickets when it is a new private key, and no other's", async () => {
      await store.tickets.add(ticket(), 1, NOW);
      await store.tickets.add(ticket({ id: "other", applicationId: await newApplication() }), 1, NOW);
      await store.applications.update(publicKey(), { privateKeyHash: Buffer.from("new") }, NOW);
      expect(await idsLeft()).toEqual(["other"]);
    });

    it("leaves them when it is anything else", async () => {
      await store.tickets.add(ticket(), 1, NOW);
      await store.applications.update(publicKey(), { name: "New" }, NOW);
      expect(await idsLeft()).toEqual(["id"]);
    });

    it("takes them with it when it is deleted, however many", async () => {
      for (let count = 0; count < 450; count += 1) await store.tickets.add(ticket({ id: `${count}` }), 1000, NOW);
      await store.applications.delete(publicKey());
      expect(await idsLeft()).toEqual([]);
    });
  });
});
