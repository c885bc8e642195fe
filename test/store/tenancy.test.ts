import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { sealerForTest } from "../tokens/sealer-for-test.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW, type StoreFolder } from "./store-for-test.js";

const sealer = sealerForTest();
const keyIn = (applicationId: string) => ({ applicationId, userId: "u", providerName: "github" });

let at: StoreFolder;
let store: SqliteStore;
beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
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
