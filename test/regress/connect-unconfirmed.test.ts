import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UnconfirmedWriteError } from "../../src/model/errors.js";
import type { Connection, NewConnection } from "../../src/oauth/connection.js";
import { connectionBinding, storeConnection } from "../../src/oauth/store-answer.js";
import { Secret } from "../../src/sealing/seal.js";
import type { Store } from "../../src/store/store.js";
import { sealWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "../store/store-beds.js";
import { applicationForTest, connectionForTest, NOW } from "../store/store-for-test.js";

// When the answer to the COMMIT of a new connection was lost, the callback wrote the connection again half a second
// later. Meanwhile another relay could have refreshed the tokens: the spent refresh token was back, and the provider
// ended the grant over it. Or the user had disconnected: the connection was back, with tokens that had been revoked.

const sealer = sealerForTest();

describe.each(STORES)("a new connection in $name whose COMMIT was not confirmed", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let peer: Store;
  let made: NewConnection;
  let revoked: number;
  beforeEach(async () => {
    revoked = 0;
    at = await createBed();
    store = await at.open();
    peer = await at.open();
    const application = applicationForTest(sealer);
    await store.applications.create(application);
    const secret = sealWebhookSecret(sealer, application.id, new Secret("whsec_AAAA"));
    const endpoint = { applicationId: application.id, uri: "https://app.example/hook", secret, updatedAt: NOW };
    await store.webhooks.putEndpoint(endpoint);
    const key = { applicationId: application.id, userId: "u", providerName: "github" };
    made = connectionForTest(sealer, key, { refresh_token: "one" });
  });
  afterEach(() => at.remove());

  /** Stores the connection. @param isDone whether the first write is done, @param meanwhile happens before the second. */
  function storeIt(isDone: boolean, meanwhile: () => Promise<unknown>) {
    let isFirst = true;
    const put: typeof store.connections.put = async (...values) => {
      const isLost = isFirst;
      isFirst = false;
      if (isLost && !isDone) throw new UnconfirmedWriteError("The connection ended during COMMIT.");
      const stored = await store.connections.put(...values);
      if (isLost) throw new UnconfirmedWriteError("The connection ended during COMMIT.");
      return stored;
    };
    const revoke = async () => {
      revoked += 1;
    };
    const pause = async () => void (await meanwhile());
    const persistence = { pause, mustGiveUp: () => false, onRefused: () => {} };
    return storeConnection({ connections: { ...store.connections, put }, persistence, now: () => NOW, revoke }, made);
  }

  const found = () => store.connections.find(made);
  const countEvents = async () => (await at.rows("SELECT id FROM webhook_events")).length;

  it("is found stored, and told once", async () => {
    expect(await storeIt(true, async () => {})).toBe("stored");
    expect(await found()).toMatchObject({ id: made.id, version: 1 });
    expect(await countEvents()).toBe(1);
    expect(revoked).toBe(0);
  });

  it("keeps the tokens of a refresh by another relay", async () => {
    const seal = (column: "access_token" | "refresh_token") => sealer.seal("two", connectionBinding(made, column));
    const tokens = { accessToken: seal("access_token"), refreshToken: seal("refresh_token") };
    const others = { lateRefreshToken: undefined, idToken: undefined, scope: undefined };
    const times = { obtainedAt: NOW, expiresAt: undefined };
    const refresh = async () => {
      const row = (await peer.connections.find(made)) as Connection;
      await peer.connections.commitRefresh(row, { ...tokens, ...others, ...times }, NOW);
    };
    expect(await storeIt(true, refresh)).toBe("stored");
    expect(await found()).toMatchObject({ id: made.id, version: 2, refreshToken: Buffer.from(tokens.refreshToken) });
    expect(await countEvents()).toBe(1);
    expect(revoked).toBe(0);
  });

  it("stays deleted when the user has disconnected", async () => {
    expect(await storeIt(true, () => peer.connections.delete(made, NOW))).toBe("gone");
    expect(await found()).toBeUndefined();
    expect(await countEvents()).toBe(2);
    expect(revoked).toBe(1);
  });

  it("leaves a newer connection of the user alone", async () => {
    const newer = { ...made, id: randomUUID() };
    expect(await storeIt(true, () => peer.connections.put(newer, NOW))).toBe("superseded");
    expect(await found()).toMatchObject({ id: newer.id });
    expect(revoked).toBe(0);
  });

  it("is not written later when it was not done: a user may have disconnected it", async () => {
    expect(await storeIt(false, async () => {})).toBe("gone");
    expect(await found()).toBeUndefined();
    expect(revoked).toBe(1);
  });

  it("is not revoked while the store cannot say whether it is there", async () => {
    const put = () => Promise.reject(new UnconfirmedWriteError("The connection ended during COMMIT."));
    const persistence = { pause: async () => {}, mustGiveUp: () => true, onRefused: () => {} };
    const options = { connections: { ...store.connections, put }, persistence, now: () => NOW, revoke: expect.fail };
    await expect(storeConnection(options, made)).rejects.toBeInstanceOf(UnconfirmedWriteError);
  });
});
