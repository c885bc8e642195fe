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

/** Connections whose refreshes a process began that is gone since. */
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

/** Refreshes nothing: each refresh is one that cannot be begun. */
function startRecorded(settleGone = async () => {}) {
  const refreshed: string[] = [];
  const refreshBeside = ({ id }: Connection) => void refreshed.push(id);
  const onFault = (error: unknown) => expect.fail(String(error));
  const { connections } = store;
  const peers = [{ settleGone }];
  const onReplayed = () => expect.fail("nobody left an answer");
  const storeLeft = onReplayed;
  sweep = startSweep({ connections, peers, refresher: { refreshBeside, storeLeft }, onReplayed, onFault });
  return refreshed;
}

it("refreshes what a process that is gone was refreshing, without a caller", async () => {
  const [abandoned] = await abandon(1);
  const refreshed = startRecorded();
  await vi.advanceTimersByTimeAsync(2000);
  expect(refreshed).toEqual([abandoned?.id]);
});

it("settles one at a time, also while the first time takes long", async () => {
  let settled = 0;
  let end = () => {};
  startRecorded(async () => {
    settled += 1;
    await new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  const first = sweep?.settle();
  await vi.advanceTimersByTimeAsync(6000);
  expect(settled).toBe(1);
  end();
  await first;
  await vi.advanceTimersByTimeAsync(2000);
  expect(settled).toBe(2);
  end();
});

it("comes to each one, also when those before it cannot be refreshed", async () => {
  const ids = (await abandon(120)).map(({ id }) => id);
  const refreshed = startRecorded();
  await vi.advanceTimersByTimeAsync(6_000);
  expect(refreshed).toEqual(ids);
  await vi.advanceTimersByTimeAsync(2000);
  expect(refreshed.slice(ids.length)).toEqual(ids.slice(0, 50));
});
