import { afterEach, beforeEach, expect, it } from "vitest";
import { RelayError, UnconfirmedWriteError } from "../../src/model/errors.js";
import { createBreaker, createClientHolds } from "../../src/oauth/breaker.js";
import type { Connection, ConnectionStore } from "../../src/oauth/connection.js";
import { createRefresher, type Refresher } from "../../src/oauth/refresher.js";
import { connectionBinding } from "../../src/oauth/store-answer.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { refreshTargetForTest } from "../oauth/refresh-target-for-test.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import {
  applicationForTest,
  connectionForTest,
  createStoreFolder,
  NOW,
  type StoreFolder,
} from "../store/store-for-test.js";

// Of a COMMIT whose answer was lost nobody knows whether it was done. The lease that it had taken belonged to nobody
// then: callers of every process were told REFRESH_UNAVAILABLE until it ended, minutes later. So it was after a fault of
// the relay's own. And where a refresh token that had come too late was taken, and no new one came, the spent one stayed.

const sealer = sealerForTest();
const target = refreshTargetForTest({
  connectionId: "c",
  tokenEndpoint: "https://provider.test/token",
  client: { clientId: "c", clientSecret: undefined },
});
let at: StoreFolder;
let store: SqliteStore;
let row: Connection;
let refresher: Refresher;

beforeEach(async () => {
  at = createStoreFolder();
  store = at.open();
  const application = applicationForTest(sealer);
  await store.applications.create(application);
  const key = { applicationId: application.id, userId: "u", providerName: "github" };
  row = await store.connections.put(connectionForTest(sealer, key, { refresh_token: "r" }), NOW);
});
afterEach(async () => {
  await refresher.close(0);
  at.remove();
});

/** What differs from a provider that gives no further refresh token, and a store that confirms every lease. */
interface World {
  /** Called when the lease that was not confirmed is given back. */
  readonly given?: () => void;
  readonly body?: string;
  readonly refusesToExtend?: boolean;
  readonly sent?: string[];
}

function startRefresher({
  given,
  body = '{"access_token":"a"}',
  sent = [],
  refusesToExtend = false,
}: World): Refresher {
  let isFirst = given !== undefined && !refusesToExtend;
  const connections: ConnectionStore = {
    ...store.connections,
    async takeLease(...values) {
      const lease = await store.connections.takeLease(...values);
      if (!isFirst) return lease;
      isFirst = false;
      throw new UnconfirmedWriteError("The connection ended during COMMIT.");
    },
    extendLease: (lease, leaseMs) =>
      refusesToExtend
        ? Promise.reject(new RelayError("STORE_UNAVAILABLE", "The database is locked."))
        : store.connections.extendLease(lease, leaseMs),
    async releaseLease(lease) {
      await store.connections.releaseLease(lease);
      given?.();
    },
  };
  return createRefresher({
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
    onRefresh: () => {},
    onRevocation: () => {},
    placeFor: async () => ({ endpoint: target.tokenEndpoint, client: target.registration }),
    targetFor: async () => target,
    async send(_target, request) {
      sent.push(new URLSearchParams(String(request.body)).get("refresh_token") ?? "");
      return { statusCode: 200, body: Buffer.from(body), retryAfter: "" };
    },
  });
}

it("a lease whose taking was not confirmed is given back, and leaves no doubt about the refresh token", async () => {
  const given = new Promise<void>((resolve) => {
    refresher = startRefresher({ given: resolve });
  });
  await expect(refresher.refresh(row)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  await given;
  expect(await store.connections.find(row)).toMatchObject({ leaseUntil: undefined, unansweredSince: undefined });
  await expect.poll(() => refresher.refresh(row).catch(() => "not yet")).toBeUndefined();
  expect(await store.connections.find(row)).toMatchObject({ version: 2, state: "ACTIVE" });
});

it("a refresh token that came late and is taken, without a new one in the answer, is the row's from then on", async () => {
  const seal = (column: "access_token" | "refresh_token" | "previous_refresh_token", token: string) =>
    sealer.seal(token, connectionBinding(row, column));
  await store.connections.requireReauthorization(row, "rotation_lost_suspected", NOW);
  const late = {
    accessToken: seal("access_token", "a"),
    refreshToken: seal("refresh_token", "late"),
    lateRefreshToken: seal("previous_refresh_token", "late"),
    idToken: undefined,
    scope: undefined,
    obtainedAt: NOW,
    expiresAt: undefined,
  };
  expect(await store.connections.commitRefresh(row, late, NOW)).toBe("superseded");
  const sent: string[] = [];
  refresher = startRefresher({ sent });
  await refresher.refresh((await store.connections.find(row)) as Connection);
  const again = (await store.connections.find(row)) as Connection;
  expect(again).toMatchObject({ state: "ACTIVE" });
  await refresher.refresh(again);
  expect(sent).toEqual(["late", "late"]);
});

it("an answer that trips the relay leaves no lease, and is shown as a failure", async () => {
  refresher = startRefresher({});
  const seal = sealer.seal;
  sealer.seal = () => {
    throw new Error("a fault of the relay's own");
  };
  await expect(refresher.refresh(row)).rejects.toThrow();
  sealer.seal = seal;
  expect(await store.connections.find(row)).toMatchObject({
    leaseUntil: undefined,
    failCount: 1,
    lastErrorClass: "internal_error",
    unansweredSince: expect.any(Number),
  });
});

it("a lease that the store does not extend for the second refresh token is given back", async () => {
  const late = {
    accessToken: sealer.seal("late", connectionBinding(row, "access_token")),
    refreshToken: undefined,
    lateRefreshToken: sealer.seal("late", connectionBinding(row, "previous_refresh_token")),
    idToken: undefined,
    scope: undefined,
    obtainedAt: NOW,
    expiresAt: undefined,
  };
  expect(await store.connections.commitRefresh(row, { ...late, lateRefreshToken: undefined }, NOW)).toBe("stored");
  expect(await store.connections.commitRefresh(row, { ...late, accessToken: new Uint8Array(1) }, NOW)).toBe(
    "superseded",
  );
  const current = (await store.connections.find(row)) as Connection;
  const given = new Promise<void>((resolve) => {
    refresher = startRefresher({ given: resolve, body: '{"error":"invalid_grant"}', refusesToExtend: true });
  });
  await expect(refresher.refresh(current)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE" });
  await given;
  expect(await store.connections.find(row)).toMatchObject({ leaseUntil: undefined, state: "ACTIVE", failCount: 0 });
});
