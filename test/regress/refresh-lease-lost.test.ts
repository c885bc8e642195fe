import { afterEach, beforeEach, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { createBreaker } from "../../src/oauth/breaker.js";
import { createClientHolds } from "../../src/oauth/client-holds.js";
import type { Connection, ConnectionStore } from "../../src/oauth/connection.js";
import { createRenewer, type Renewer } from "../../src/oauth/renewer.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { renewalTargetForTest } from "../oauth/renewal-target-for-test.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";

// Of a COMMIT whose answer was lost nobody knows whether it was done. The lease that it had taken belonged to nobody
// then: callers of every process were told REFRESH_UNAVAILABLE until it ended, minutes later.

const sealer = sealerForTest();
const target = renewalTargetForTest({
  connectionId: "c",
  tokenEndpoint: "https://provider.test/token",
  client: { clientId: "c", clientSecret: undefined },
});
let at: StoreFolder;
let store: SqliteStore;
let row: Connection;
let renewer: Renewer;

beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const key = { applicationId: application.id, userId: "u", providerName: "github" };
  row = await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
});
afterEach(async () => {
  await renewer.close(0);
  at.remove();
});

/** Asks a provider that refreshes, through a store that says nothing of the first lease that it gives. */
function startRenewer(given: () => void): Renewer {
  let isFirst = true;
  const connections: ConnectionStore = {
    ...store.connections,
    async takeLease(...values) {
      const lease = await store.connections.takeLease(...values);
      if (!isFirst) return lease;
      isFirst = false;
      throw new RelayError("STORE_UNAVAILABLE", "The connection ended during COMMIT.");
    },
    async releaseLease(lease) {
      await store.connections.releaseLease(lease);
      given();
    },
  };
  return createRenewer({
    connections,
    sealer,
    breaker: createBreaker(),
    clients: createClientHolds(),
    noteClientRefused: async () => {},
    spool: {
      owner: "0123456789abcdef",
      keep: () => expect.fail("the store takes everything"),
      drop: () => {},
      knows: () => true,
      settleGone: async () => {},
      close: async () => {},
    },
    requestTimeoutMs: 1000,
    now: Date.now,
    random: Math.random,
    onFault: () => {},
    onRenewal: () => {},
    onRevocation: () => {},
    placeFor: async () => ({ endpoint: target.tokenEndpoint, client: target.registration }),
    targetFor: async () => target,
    send: async () => ({ statusCode: 200, body: Buffer.from('{"access_token":"a"}'), retryAfter: "" }),
  });
}

it("a lease whose taking was not confirmed is given back, and leaves no doubt about the refresh token", async () => {
  const given = new Promise<void>((resolve) => {
    renewer = startRenewer(resolve);
  });
  await expect(renewer.renew(row)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  await given;
  expect(await store.connections.find(row)).toMatchObject({ leaseUntil: undefined, unansweredSince: undefined });
  await expect.poll(() => renewer.renew(row).catch(() => "not yet")).toBeUndefined();
  expect(await store.connections.find(row)).toMatchObject({ version: 2, state: "ACTIVE" });
});
