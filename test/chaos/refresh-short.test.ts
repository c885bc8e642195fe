import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { createBreaker, createClientHolds } from "../../src/oauth/breaker.js";
import type { Connection, ConnectionKey, Lease } from "../../src/oauth/connection.js";
import { type RefreshOptions, type RefreshOutcome, refreshLeased } from "../../src/oauth/refresh.js";
import { persistFor } from "../../src/oauth/store-answer.js";
import { refreshTargetForTest } from "../oauth/refresh-target-for-test.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

let harness: Harness;
afterEach(() => harness.close());

/** What the provider gives, or does with a refresh token that comes twice. */
interface Abandonment {
  readonly graceMs?: number;
  /** Whether it is known already that the owner is gone. */
  readonly isKnown?: boolean;
  readonly rotates?: boolean;
  readonly endsReusedGrants?: boolean;
}

/** A user whose token has ended, and a lease on it whose owner is gone; `npm run chaos` makes such owners by the hundred. */
async function abandon({ graceMs = 0, isKnown = true, rotates = true, endsReusedGrants = true }: Abandonment) {
  harness = await startHarness({ sandbox: { refreshGraceMs: graceMs, endsReusedGrants } });
  const application = await harness.createApplication();
  await harness.putClient(application);
  const userId = randomUUID();
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
  const key: ConnectionKey = { applicationId: application.id, userId, providerName: "sandbox" };
  const row = (await harness.store.connections.find(key)) as Connection;
  const lease = (await harness.store.connections.takeLease(row, "gone", 60_000)) as Lease;
  if (isKnown) await harness.store.connections.freeLeases("gone");
  if (rotates) expect((await refresh(refreshToken)).status).toBe(200);
  return { application, userId, key, row, lease, refreshToken };
}

/** What an owner asks. */
async function refresh(refreshToken: string): Promise<Response> {
  const { client_id, client_secret = "" } = harness.sandbox.client;
  const body = new URLSearchParams({
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    client_id,
    client_secret,
  });
  return fetch(`${harness.sandbox.origin}/oauth/token`, { method: "POST", body });
}

/**
 * The owner of the lease as a process that stands still once the provider has answered it: it goes on, and reads its
 * answer, after `meanwhile`. Resolves to how its refresh ended.
 */
async function refreshHalted({ lease }: { lease: Lease }, meanwhile: () => Promise<void>): Promise<RefreshOutcome> {
  let outcome: RefreshOutcome | undefined;
  let isFirst = true;
  const options: RefreshOptions = {
    ...harness,
    connections: harness.store.connections,
    breaker: createBreaker(),
    clients: createClientHolds(),
    noteClientRefused: async () => {},
    now: Date.now,
    random: Math.random,
    async send(_target, request) {
      const answer = await refresh(new URLSearchParams(request.body.toString()).get("refresh_token") ?? "");
      const body = Buffer.from(await answer.arrayBuffer());
      if (isFirst) await meanwhile();
      isFirst = false;
      return { statusCode: answer.status, body, retryAfter: "" };
    },
    onRefresh: (_connection, how) => (outcome = how),
    onRevocation: () => expect.fail("nothing was deleted"),
    track: (work) => void work,
    spool: { keep: () => expect.fail("the store takes everything"), drop: () => {} },
    persistence: persistFor(0, (error) => expect.fail(String(error))),
    leaseMs: 60_000,
    watchAge: () => expect.fail("there is one refresh token alone"),
    targetFor: () => expect.fail("nothing was left"),
    ending: new AbortController().signal,
  };
  const target = refreshTargetForTest({
    connectionId: lease.connection.id,
    tokenEndpoint: `${harness.sandbox.origin}/oauth/token`,
    client: { clientId: harness.sandbox.client.client_id, clientSecret: undefined },
  });
  await refreshLeased(options, { ...lease, isFresh: () => true, cause: "due", askedAt: Date.now() }, target);
  return outcome as RefreshOutcome;
}

async function call({ application, userId }: { application: TestApplication; userId: string }) {
  const { publicKey } = application;
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const { text } = await postRest(harness.url, { providerName: "sandbox", userId, publicKey, call });
  return JSON.parse(text).rows[0] as unknown;
}

/** The row as the service has it after its next look at what was left. */
async function rowOf({ key }: { readonly key: ConnectionKey }, expected: object): Promise<void> {
  await expect.poll(() => harness.store.connections.find(key), { timeout: 20_000 }).toMatchObject(expected);
}

describe("a lease whose owner is gone", () => {
  it("costs nothing at a provider with a grace window: the same refresh token is used again", async () => {
    const abandoned = await abandon({ graceMs: 30_000 });
    expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
    const row = await harness.store.connections.find(abandoned.key);
    expect(row).toMatchObject({ version: 2, state: "ACTIVE", leaseUntil: undefined });
  });

  it("costs the connection at a strict provider, and says why", async () => {
    const abandoned = await abandon({});
    expect(await call(abandoned)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    const row = await harness.store.connections.find(abandoned.key);
    expect(row).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", stateReason: "rotation_lost_suspected" });
  });

  it("brings the connection back when the owner only stood still, and its answer is the rotation that seemed lost", async () => {
    const abandoned = await abandon({ rotates: false, endsReusedGrants: false });
    const outcome = await refreshHalted(abandoned, async () => {
      expect(await call(abandoned)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    });
    expect(outcome).toBe("lost");
    await rowOf(abandoned, { state: "ACTIVE", stateReason: undefined, version: 3 });
    expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
  });

  it("stays lost when the provider has ended what the owner that stood still was given", async () => {
    const abandoned = await abandon({ rotates: false });
    const outcome = await refreshHalted(abandoned, async () => {
      expect(await call(abandoned)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    });
    expect(outcome).toBe("lost");
    // Tried, and refused.
    await rowOf(abandoned, {
      state: "REAUTHORIZATION_REQUIRED",
      stateReason: "rotation_lost_suspected",
      version: 3,
    });
  });

  it("leaves the tokens of the one who took over as they are when the owner only stood still", async () => {
    const abandoned = await abandon({ rotates: false, graceMs: 30_000 });
    const outcome = await refreshHalted(abandoned, async () => {
      expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
    });
    expect(outcome).toBe("lost");
    expect(await harness.store.connections.find(abandoned.key)).toMatchObject({ version: 2, state: "ACTIVE" });
  });

  it("does not come back to a user who has connected again", async () => {
    const abandoned = await abandon({ rotates: false, endsReusedGrants: false });
    const outcome = await refreshHalted(abandoned, async () => {
      await call(abandoned);
      await harness.connect(abandoned.application, abandoned.userId, { refreshToken: "of-the-new-connection" });
    });
    expect(outcome).toBe("lost");
    expect(await harness.store.connections.find(abandoned.key)).toMatchObject({ version: 3, state: "ACTIVE" });
    expect(await call(abandoned)).toMatchObject({ pincStatus: "success" });
  });

  it("is waited for until it is known that its owner is gone", async () => {
    const abandoned = await abandon({ isKnown: false, rotates: false });
    const calling = call(abandoned);
    expect(await Promise.race([calling, delay(300)])).toBeUndefined();
    await harness.store.connections.freeLeases("gone");
    expect(await calling).toMatchObject({ pincStatus: "success" });
  });

  it("stores nothing over the tokens of the one who took over, and loses none", async () => {
    const abandoned = await abandon({ graceMs: 30_000 });
    await call(abandoned);
    const { connections } = harness.store;
    const newer = await connections.find(abandoned.key);
    const { row } = abandoned;
    const late = { ...row, refreshToken: row.accessToken, lateRefreshToken: row.accessToken, scope: "late" };
    expect(await connections.commitRefresh(row, late, Date.now())).toBe("superseded");
    expect(await connections.find(abandoned.key)).toEqual(newer);
  });
});
