import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Connection } from "../../src/oauth/connection.js";
import { startExpirySweep } from "../../src/oauth/sweep.js";
import { Secret } from "../../src/sealing/seal.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { sealWebhookSecret } from "../../src/webhooks/webhook-store.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";
import { sealerForTest } from "./sealer-for-test.js";

const MINUTE_MS = 60_000;
const sealer = sealerForTest();
let at: StoreFolder;
let store: SqliteStore;
let sweeps: Array<{ close(): void }>;
/** What the wall clock is off. */
let offMs: number;
const now = () => NOW + performance.now() + offMs;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"], now: 0 });
  at = createStoreFolder();
  store = at.open();
  sweeps = [];
  offMs = 0;
});
afterEach(() => {
  for (const sweep of sweeps) sweep.close();
  vi.useRealTimers();
  at.remove();
});

/** A connection of an application that is told of its connections. */
async function connect({ endsInMs = 0, refreshToken }: { endsInMs?: number; refreshToken?: string } = {}) {
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const secret = sealWebhookSecret(sealer, application.id, new Secret("whsec_AAAA"));
  await store.webhooks.putEndpoint({
    applicationId: application.id,
    uri: "https://app.example/hook",
    secret,
    updatedAt: NOW,
  });
  const key = { applicationId: application.id, userId: "ada", providerName: "github" };
  const response = refreshToken === undefined ? {} : { refresh_token: refreshToken };
  const made = connectionForTest(sealer, key, response);
  await store.connections.put({ ...made, expiresAt: now() + endsInMs }, now());
  return {
    state: async () => (await store.connections.find(key))?.state,
    told: async () => (await store.webhooks.backlog(application.id)).waiting - 1,
  };
}

function start(): string[] {
  const ended: string[] = [];
  const onEnded = ({ id }: Connection) => void ended.push(id);
  const onFault = (error: unknown) => expect.fail(String(error));
  sweeps.push(startExpirySweep({ connections: store.connections, now, onEnded, onFault }));
  return ended;
}

const wait = (minutes: number) => vi.advanceTimersByTimeAsync(minutes * MINUTE_MS + 10_000);

describe("a connection whose token has ended without a refresh token", () => {
  it("is ended some minutes later, and told once, whoever looks", async () => {
    const { state, told } = await connect({ endsInMs: 10 * MINUTE_MS });
    const ended = [start(), start()];
    await wait(14);
    expect([await state(), await told()]).toEqual(["ACTIVE", 0]);
    await wait(2);
    expect([await state(), await told()]).toEqual(["REAUTHORIZATION_REQUIRED", 1]);
    await wait(10);
    expect([await told(), ended.flat().length]).toEqual([1, 1]);
  });

  it("is not ended by a process that has not watched its clock for long", async () => {
    const { state } = await connect({ endsInMs: -60 * MINUTE_MS });
    start();
    await wait(4);
    expect(await state()).toBe("ACTIVE");
    await wait(1);
    expect(await state()).toBe("REAUTHORIZATION_REQUIRED");
  });

  it("is not ended by a clock that goes wrong for a moment", async () => {
    const { state } = await connect({ endsInMs: 60 * MINUTE_MS });
    start();
    await wait(10);
    offMs = 24 * 60 * MINUTE_MS;
    await wait(4);
    offMs = 0;
    await wait(4);
    expect(await state()).toBe("ACTIVE");
  });

  it("is ended in batches where there are many", async () => {
    for (let made = 0; made < 60; made++) await connect({ endsInMs: -60 * MINUTE_MS });
    const ended = start();
    await vi.advanceTimersByTimeAsync(5 * MINUTE_MS);
    expect(ended).toHaveLength(50);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(ended).toHaveLength(60);
  });
});

it("leaves a connection alone that can be refreshed", async () => {
  const { state } = await connect({ endsInMs: -60 * MINUTE_MS, refreshToken: "r" });
  start();
  await wait(20);
  expect(await state()).toBe("ACTIVE");
});
