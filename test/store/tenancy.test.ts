import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const keyIn = (applicationId: string) => ({ applicationId, userId: "u", providerName: "github" });

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    for (const id of ["first", "second"]) {
      await store.applications.create(applicationForTest(sealer, { id }));
      await store.connections.put(connectionForTest(sealer, keyIn(id)), NOW);
    }
  });
  afterEach(() => at.remove());

  describe("the same user at the same provider in two applications", () => {
    it("has two connections: what is done to one is not done to the other", async () => {
      const other = await store.connections.find(keyIn("second"));
      await store.connections.put(connectionForTest(sealer, keyIn("first")), NOW + 1);
      expect(await store.connections.find(keyIn("second"))).toEqual(other);
      expect(await store.connections.delete(keyIn("first"), 1)).toMatchObject(keyIn("first"));
      expect(await store.connections.find(keyIn("first"))).toBeUndefined();
      expect(await store.connections.find(keyIn("second"))).toEqual(other);
      expect(await store.connections.delete(keyIn("first"), 1)).toBe(undefined);
    });
  });
});
