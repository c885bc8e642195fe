import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Connection } from "../../src/oauth/connection.js";
import { type Sweep, startSweep } from "../../src/oauth/sweep.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";
import { sealerForTest } from "./sealer-for-test.js";

const sealer = sealerForTest();
let at: StoreFolder;
let store: SqliteStore;
let sweep: Sweep | undefined;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  at = createStoreFolder();
  store = at.open();
});
afterEach(() => {
  void sweep?.close();
  vi.useRealTimers();
  at.remove();
});

/** Connections whose renewals a process began that is gone since. */
async function abandon(count: number): Promise<Connection[]> {
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const made: Connection[] = [];
  for (let user = 0; user < count; user++) {
    const key = { applicationId: application.id, userId: `u${user}`, providerName: "github" };
    const read = await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
    await store.connections.takeLease(read, "gone", -1);
    made.push(read);
  }
  return made.sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Renews nothing: each renewal is one that cannot be begun. */
function startRecorded() {
  const renewed: string[] = [];
  const renew = async ({ id }: Connection) => {
    renewed.push(id);
    throw new Error("no client is stored");
  };
  const onFault = (error: unknown) => expect.fail(String(error));
  const { connections } = store;
  const peers = [{ settleGone: async () => {} }];
  const onReplayed = () => expect.fail("nobody left an answer");
  const storeLeft = onReplayed;
  sweep = startSweep({ connections, peers, renewer: { renew, storeLeft }, onReplayed, onFault });
  return renewed;
}

it("renews what a process that is gone was renewing, without a caller", async () => {
  const [abandoned] = await abandon(1);
  const renewed = startRecorded();
  await vi.advanceTimersByTimeAsync(2000);
  expect(renewed).toEqual([abandoned?.id]);
});

it("comes to each one, also when those before it cannot be renewed", async () => {
  const ids = (await abandon(120)).map(({ id }) => id);
  const renewed = startRecorded();
  await vi.advanceTimersByTimeAsync(6_000);
  expect(renewed).toEqual(ids);
  await vi.advanceTimersByTimeAsync(2000);
  expect(renewed.slice(ids.length)).toEqual(ids.slice(0, 50));
});
