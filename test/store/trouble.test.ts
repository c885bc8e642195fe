import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { Connection, Lease, RefreshAttempt, RefreshedTokens, RefreshFailure } from "../../src/oauth/connection.js";
import type { Trouble } from "../../src/oauth/verdict.js";
import { Secret } from "../../src/sealing/seal.js";
import type { Store } from "../../src/store/store.js";
import { sealWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { putOAuthClient } from "../support/put-oauth-client.js";
import { STORES, type StoreBed } from "./store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "./store-for-test.js";

const sealer = sealerForTest();
const LEASE_MS = 60_000;
const DAY_MS = 86_400_000;

describe.each(STORES)("$name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let application: Application;
  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    application = applicationForTest(sealer);
    await store.applications.create(application);
    const secret = sealWebhookSecret(sealer, application.id, new Secret("whsec_AAAA"));
    await store.webhooks.putEndpoint({
      applicationId: application.id,
      uri: "https://app.example/hook",
      secret,
      updatedAt: NOW,
    });
  });
  afterEach(() => at.remove());

  const connect = (userId: string, applicationId = application.id, providerName = "github") =>
    store.connections.put(
      connectionForTest(sealer, { applicationId, userId, providerName }, { refresh_token: "r" }),
      NOW,
    );
  const lease = async (connection: Connection, skipsWait?: boolean) =>
    (await store.connections.takeLease(connection, "me", LEASE_MS, skipsWait)) as Lease;
  const fail = async (connection: Connection, trouble: Trouble, patch: Partial<RefreshFailure> = {}) =>
    store.connections.recordFailure(
      await lease(connection, true),
      { errorClass: "server_error", isUnspent: true, waitMs: 1000, trouble, ...patch },
      NOW,
    );
  const refusal = (words: string, lastAt: number): Trouble => ({
    since: NOW,
    refusal: { words, since: NOW, lastAt, countedAt: lastAt, count: 1 },
  });
  const refresh = async (connection: Connection, now: number, patch: Partial<RefreshedTokens> = {}) =>
    store.connections.commitRefresh(
      (await lease(connection, true)).connection,
      {
        accessToken: Buffer.from("a"),
        refreshToken: undefined,
        lateRefreshToken: undefined,
        idToken: undefined,
        scope: undefined,
        obtainedAt: now,
        expiresAt: undefined,
        ...patch,
      },
      now,
    );
  const events = async () =>
    (await at.rows("SELECT payload FROM webhook_events ORDER BY created_at, id"))
      .map(({ payload }) => JSON.parse(String(payload)) as { type: string; data: { reason?: string } })
      .filter(({ type }) => type.includes("refresh_"))
      .map(({ type, data }) => [type, data.reason]);

  it("keeps what is known of a trouble until a refresh succeeds", async () => {
    const made = await connect("u");
    const trouble = { ...refusal("w", NOW), toldAt: NOW, clientUpdatedAt: 7 };
    await fail(made, trouble);
    const failed = (await store.connections.find(made)) as Connection;
    expect(failed).toMatchObject({ trouble, failCount: 1, lastErrorClass: "server_error" });
    const [shown] = await store.connections.scan({
      applicationId: application.id,
      user: { id: "u" },
      after: undefined,
      limit: 2,
    });
    expect(shown?.trouble).toEqual(trouble);
    await refresh(failed, NOW + 5);
    expect(await store.connections.find(made)).toMatchObject({ trouble: undefined, failCount: 0 });
  });

  it("forgets it when the user connects again", async () => {
    await fail(await connect("u"), refusal("w", NOW));
    expect(await connect("u")).toMatchObject({ trouble: undefined, failCount: 0 });
    expect(await at.rows("SELECT id FROM connections WHERE refusal IS NOT NULL OR refused_at IS NOT NULL")).toEqual([]);
  });

  it("tells the application once that refreshing fails, and once that it succeeds again", async () => {
    const made = await connect("u");
    await fail(made, { since: NOW });
    expect(await events()).toEqual([]);
    await fail(made, { since: NOW, toldAt: NOW });
    await fail(made, { since: NOW, toldAt: NOW });
    expect(await events()).toEqual([["connection.refresh_failing", "server_error"]]);
    await refresh((await store.connections.find(made)) as Connection, NOW + 1);
    await refresh((await store.connections.find(made)) as Connection, NOW + 2);
    expect(await events()).toEqual([
      ["connection.refresh_failing", "server_error"],
      ["connection.refresh_recovered", undefined],
    ]);
  });

  it("gives a lease before the time to wait is over only to who skips it, and never one that somebody has", async () => {
    const made = await connect("u");
    await fail(made, { since: NOW }, { waitMs: 200_000 });
    expect(await lease(made)).toBeUndefined();
    expect(await lease(made, true)).toMatchObject({ owner: "me" });
    expect(await store.connections.takeLease(made, "other", LEASE_MS, true)).toBeUndefined();
  });

  it("writes down tokens that were refused outside of a refresh, and not over a row that changed", async () => {
    const made = await connect("u");
    await store.connections.noteTrouble(made, refusal("w", NOW));
    expect((await store.connections.find(made))?.trouble).toEqual(refusal("w", NOW));
    await store.connections.noteTrouble(made, undefined);
    expect((await store.connections.find(made))?.trouble).toBeUndefined();
    await refresh(made, NOW);
    await store.connections.noteTrouble(made, refusal("w", NOW));
    expect((await store.connections.find(made))?.trouble).toBeUndefined();
  });

  it("keeps with an ended connection what ended it", async () => {
    const made = await connect("u");
    await store.connections.requireReauthorization(made, "invalid_grant", NOW, { trouble: refusal("w", NOW) });
    expect(await store.connections.find(made)).toMatchObject({
      state: "REAUTHORIZATION_REQUIRED",
      trouble: refusal("w", NOW),
    });
  });

  describe("refreshesOf()", () => {
    const found = async (key: Connection) => (await store.connections.find(key)) as Connection;
    const attempt = (at: number, patch: Partial<RefreshAttempt> = {}): RefreshAttempt => ({
      ...{ at, outcome: "refreshed", cause: "due", durationMs: 12, answer: "" },
      ...patch,
    });

    it("has what was stored with tokens, with failures and with an end, the newest first", async () => {
      const made = await connect("u");
      const failed = attempt(NOW - 2, { outcome: "failed", cause: "expired", answer: "server_error" });
      await fail(made, { since: NOW }, { attempt: failed });
      const refreshed = attempt(NOW - 1, { cause: "requested", durationMs: 99_000 });
      await refresh(made, NOW, { attempt: refreshed });
      await connect("another");
      const ended = attempt(NOW, { outcome: "ended", cause: "abandoned", answer: "invalid_grant", durationMs: 0 });
      await store.connections.requireReauthorization(await found(made), "invalid_grant", NOW, { attempt: ended });
      expect(await store.connections.refreshesOf(made)).toEqual([ended, refreshed, failed]);
      expect(await store.connections.refreshesOf({ ...made, userId: "another" })).toEqual([]);
      expect(await store.connections.refreshesOf({ ...made, userId: "nobody" })).toEqual([]);
    });

    it("keeps the last twenty, in the row itself, and shows none that is older than ninety days", async () => {
      const made = await connect("u");
      for (let n = 0; n < 21; n++)
        await fail(made, { since: NOW }, { attempt: attempt(NOW + n - 90 * DAY_MS, { answer: "no_answer" }) });
      const shown = await store.connections.refreshesOf(made);
      expect(shown.map(({ at }) => at)).toEqual(Array.from({ length: 20 }, (_, n) => NOW + 20 - n - 90 * DAY_MS));
      expect(await at.rows("SELECT length(refreshes) AS length FROM connections")).toEqual([{ length: 300 }]);
      await at.run("UPDATE connections SET refreshes = NULL");
      await fail(made, { since: NOW }, { attempt: attempt(NOW - 90 * DAY_MS) });
      expect(await store.connections.refreshesOf(made)).toEqual([]);
    });

    it("forgets them when the user connects again, and writes none for what was no refresh", async () => {
      const made = await connect("u");
      await refresh(made, NOW, { attempt: attempt(NOW) });
      await store.connections.requireReauthorization(await found(made), "expired", NOW);
      expect(await store.connections.refreshesOf(made)).toEqual([attempt(NOW)]);
      await connect("u");
      expect(await store.connections.refreshesOf(made)).toEqual([]);
    });

    it("takes an answer or a number that does not fit as the nearest that does", async () => {
      const made = await connect("u");
      const odd = { answer: "CANARY said the provider", durationMs: 1e12 };
      await fail(made, { since: NOW }, { attempt: attempt(NOW, odd) });
      await fail(made, { since: NOW }, { attempt: attempt(NOW, { durationMs: -5 }) });
      expect(await store.connections.refreshesOf(made)).toEqual([
        attempt(NOW, { durationMs: 0 }),
        attempt(NOW, { answer: "unknown_error", durationMs: 36 ** 4 - 1 }),
      ]);
    });
  });

  it("finds what other connections show about a refusal", async () => {
    const other = applicationForTest(sealer, { publicKey: `pk-${randomUUID()}` });
    await store.applications.create(other);
    const made = await connect("u");
    const evidence = (words = "w", since = NOW) => store.connections.findEvidence(made, words, since, NOW + 10);
    const none = { othersRefreshedAt: undefined, othersRefreshed: 0, othersRefused: 0, allRefused: 0 };
    await fail(made, refusal("w", NOW));
    await refresh(await connect("elsewhere", application.id, "slack"), NOW + 5);
    await refresh(await connect("of another", other.id), NOW + 5);
    expect(await evidence()).toEqual(none);
    await fail(await connect("alike"), refusal("w", NOW + 3));
    await fail(await connect("alike", other.id), refusal("w", NOW + 3));
    await fail(await connect("otherwise"), refusal("v", NOW + 3));
    await fail(await connect("long ago"), refusal("w", NOW + 10 - DAY_MS));
    expect(await evidence()).toEqual({ ...none, othersRefused: 1, allRefused: 2 });
    await refresh(await connect("well"), NOW + 2);
    expect(await evidence()).toEqual({
      othersRefreshedAt: NOW + 2,
      othersRefreshed: 1,
      othersRefused: 1,
      allRefused: 2,
    });
    await refresh(await connect("better"), NOW + 4);
    expect(await evidence("w", NOW + 2)).toEqual({
      othersRefreshedAt: NOW + 4,
      othersRefreshed: 1,
      othersRefused: 0,
      allRefused: 2,
    });
    expect(await evidence("x")).toMatchObject({ allRefused: 0 });
  });

  it("keeps since when a client is refused, until it is changed or taken", async () => {
    const client = {
      id: "c",
      applicationId: application.id,
      providerName: "github",
      clientId: "id",
      clientSecret: undefined,
      scope: "",
      originParameters: {},
      updatedAt: 1,
    };
    const since = async () => (await store.oauthClients.find(application.id, "github"))?.refusedSince;
    await putOAuthClient(store.oauthClients, client);
    await store.oauthClients.noteRefused({ ...client, updatedAt: 0 }, 4);
    expect(await since()).toBeUndefined();
    await store.oauthClients.noteRefused(client, 5);
    await store.oauthClients.noteRefused(client, 6);
    expect(await since()).toBe(5);
    await store.oauthClients.noteRefused(client, undefined);
    expect(await since()).toBeUndefined();
    await store.oauthClients.noteRefused(client, 7);
    const changed = { ...client, updatedAt: 2 };
    await putOAuthClient(store.oauthClients, changed);
    expect(await since()).toBeUndefined();
    await store.oauthClients.noteRefused(changed, 8);
    // A late verdict on the client as it was before the change.
    await store.oauthClients.noteRefused(client, undefined);
    expect(await since()).toBe(8);
    await store.oauthClients.noteRefused(changed, undefined);
    expect(await since()).toBeUndefined();
    // A change after the clock has gone back is a later version all the same.
    await putOAuthClient(store.oauthClients, { ...client, clientId: "other" });
    await store.oauthClients.noteRefused(changed, 9);
    expect(await store.oauthClients.find(application.id, "github")).toMatchObject({ clientId: "other", updatedAt: 3 });
    expect(await since()).toBeUndefined();
  });
});
