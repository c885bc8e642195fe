import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Connection, ConnectionKey } from "../../src/oauth/connection.js";
import { Secret } from "../../src/sealing/seal.js";
import { sealWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { putOAuthClient } from "../support/put-oauth-client.js";
import { answerJson, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.js";

const PROVIDER = "refreshed";
/** Nobody is connected there but whom a test connects. */
const QUIET_PROVIDER = "quiet";
let harness: Harness;
let endpoint: TestTokenEndpoint;
let application: TestApplication;
let peerUrl: string;
let receiver: WebhookReceiver;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    env: { RELAY_DEADLINE_MS: "10000" },
    definitionsFor: (sandbox) => [definition(sandbox), { ...definition(sandbox), name: QUIET_PROVIDER }],
  });
  application = await harness.createApplication();
  await harness.putClient(application, PROVIDER);
  receiver = await startWebhookReceiver();
  await harness.store.webhooks.putEndpoint({
    applicationId: application.id,
    uri: receiver.url,
    secret: sealWebhookSecret(harness.sealer, application.id, new Secret("whsec_AAAA")),
    updatedAt: 1,
  });
  peerUrl = await harness.startPeer();
});

beforeEach(() => {
  endpoint.play = (_body, _response, pass) => pass();
  endpoint.received.length = 0;
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
  await receiver.close();
});

function definition(sandboxOrigin: string) {
  return {
    name: PROVIDER,
    apiOrigins: [sandboxOrigin],
    oauth2: { tokenEndpoint: endpoint.url, clientAuthentication: "client_secret_basic" },
    expirySignals: [
      { statusCode: 403, member: "status", values: ["403"] },
      { statusCode: 404, pastLifetime: true },
    ],
  };
}

/** A user whose access token ended long ago, or has no lifetime of its own. */
async function connectUser({ isEnded = true, refreshToken = harness.sandbox.issueToken().refresh_token } = {}) {
  return connectUntil(isEnded ? 1 : undefined, refreshToken);
}

async function connectUntil(expiresAt: number | undefined, refreshToken = harness.sandbox.issueToken().refresh_token) {
  const userId = randomUUID();
  const options = { providerName: PROVIDER, refreshToken, ...(expiresAt !== undefined && { expiresAt }) };
  const accessToken = await harness.connect(application, userId, options);
  const key: ConnectionKey = { applicationId: application.id, userId, providerName: PROVIDER };
  const { connections } = harness.store;
  return { userId, accessToken, key, row: () => connections.find(key), attempts: () => connections.refreshesOf(key) };
}

/** A user without a refresh token. */
async function connectWithoutRefresh(providerName = PROVIDER) {
  const userId = randomUUID();
  const accessToken = await harness.connect(application, userId, { providerName });
  const key: ConnectionKey = { applicationId: application.id, userId, providerName };
  const row = async () => (await harness.store.connections.find(key)) as Connection;
  return {
    userId,
    accessToken,
    row,
    call: (path?: string) => call(userId, path, harness.url, "GET", providerName),
    /** Lets what was noted of refusals be so many milliseconds older. */
    async age(ms: number) {
      const { trouble, ...rest } = await row();
      const refusal = trouble?.refusal;
      if (trouble === undefined || refusal === undefined) throw new Error("no refusal was noted");
      const { since, lastAt, countedAt } = refusal;
      const older = { ...refusal, since: since - ms, lastAt: lastAt - ms, countedAt: countedAt - ms };
      await harness.store.connections.noteTrouble({ trouble, ...rest }, { since: trouble.since - ms, refusal: older });
    },
  };
}

async function call(userId: string, path = "/me", url = harness.url, method = "GET", providerName = PROVIDER) {
  const call = { url: harness.sandbox.origin + path, method };
  const { text } = await postRest(url, { providerName, userId, publicKey: application.publicKey, call });
  expect(text).not.toMatch(/sandbox_[ar]t_|CANARY/);
  return JSON.parse(text).rows[0] as {
    pincStatus: string;
    errorType?: string;
    statusCode: number;
    inernalError?: string;
  };
}

/** Why the user must connect again, as the application was told. */
async function toldReasonOf(userId: string): Promise<string> {
  for (let count = 1; ; count++) {
    const told = (await receiver.arrived(count)).map(({ body }) => JSON.parse(body));
    const found = told.find(
      ({ type, data }) => type === "connection.reauthorization_required" && data.user_id === userId,
    );
    if (found !== undefined) return found.data.reason;
  }
}

describe("a token that has ended", () => {
  it("is refreshed before the call, with the client's credentials and the stored refresh token, once", async () => {
    const user = await connectUser();
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
    expect(endpoint.received[0]?.get("grant_type")).toBe("refresh_token");
    expect(await user.row()).toMatchObject({ version: 2, state: "ACTIVE", failCount: 0, leaseUntil: undefined });
    expect(await user.attempts()).toMatchObject([{ outcome: "refreshed", cause: "expired", answer: "" }]);
  });

  it("is refreshed once for all callers of two relays that share the store", async () => {
    endpoint.play = async (_body, _response, pass) => {
      await new Promise((resolve) => setImmediate(resolve));
      await pass();
    };
    const users = await Promise.all(Array.from({ length: 5 }, () => connectUser()));
    const calls = users.flatMap(({ userId }) =>
      Array.from({ length: 20 }, (_, at) => call(userId, "/me", at % 2 ? peerUrl : harness.url)),
    );
    for (const row of await Promise.all(calls)) expect(row).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(users.length);
  });

  it("keeps its refresh token when none comes back", async () => {
    const user = await connectUser();
    endpoint.play = (_body, response) =>
      answerJson(response, 200, { access_token: user.accessToken, expires_in: 3600, refresh_token: "" });
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    const row = await user.row();
    if (row === undefined) throw new Error("the connection is gone");
    await harness.store.connections.put({ ...row, expiresAt: 1 }, Date.now());
    endpoint.play = (_body, _response, pass) => pass();
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    const sent = endpoint.received.map((form) => form.get("refresh_token"));
    expect(sent[1]).toBe(sent[0]);
  });

  it("answers REAUTHORIZATION_REQUIRED from then on when the provider ends the connection", async () => {
    const user = await connectUser({ refreshToken: "unknown-refresh-token" });
    expect(await call(user.userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED", statusCode: 401 });
    expect(await call(user.userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(endpoint.received).toHaveLength(1);
    expect(await user.row()).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", stateReason: "invalid_grant" });
    expect(await user.attempts()).toMatchObject([{ outcome: "ended", cause: "expired", answer: "invalid_grant" }]);
  });

  it("answers PROVIDER_MISCONFIGURED when the provider refuses the client, and keeps the user's tokens", async () => {
    const other = await harness.createApplication();
    await putOAuthClient(harness.store.oauthClients, {
      id: randomUUID(),
      applicationId: other.id,
      providerName: PROVIDER,
      clientId: "nobody",
      clientSecret: undefined,
      scope: "",
      originParameters: {},
      updatedAt: 1,
    });
    const refreshToken = harness.sandbox.issueToken().refresh_token;
    await harness.connect(other, "u", { providerName: PROVIDER, refreshToken, expiresAt: 1 });
    const request = {
      providerName: PROVIDER,
      userId: "u",
      publicKey: other.publicKey,
      call: { url: `${harness.sandbox.origin}/me`, method: "GET" },
    };
    for (const _ of [1, 2]) {
      const { text } = await postRest(harness.url, request);
      expect(JSON.parse(text).rows[0]).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED", statusCode: 500 });
    }
    expect(endpoint.received).toHaveLength(1);
    const row = await harness.store.connections.find({ applicationId: other.id, userId: "u", providerName: PROVIDER });
    expect(row).toMatchObject({ state: "ACTIVE", version: 1, lastErrorClass: "invalid_client", leaseUntil: undefined });
    expect(await harness.store.oauthClients.find(other.id, PROVIDER)).toHaveProperty(
      "refusedSince",
      expect.any(Number),
    );
  });

  it.each([
    ["500", "server_error", (response: never) => answerJson(response, 500, {})],
    ["a reset", "no_answer", (response: { destroy(): void }) => response.destroy()],
    ["HTML", "unreadable", (response: { end(text: string): void }) => response.end("<html>")],
    [
      "a redirect",
      "unreadable",
      (response: { writeHead(status: number, fields: object): { end(): void } }) =>
        response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
    ],
  ])(
    "answers REFRESH_UNAVAILABLE at once after %s, without asking again before its time",
    async (_what, answer, play) => {
      const user = await connectUser();
      endpoint.play = (_body, response) => play(response as never);
      expect(await call(user.userId)).toMatchObject({ errorType: "REFRESH_UNAVAILABLE", statusCode: 503 });
      expect(await call(user.userId)).toMatchObject({
        errorType: "REFRESH_UNAVAILABLE",
        inernalError: expect.stringMatching(/in \d s\./),
      });
      expect(endpoint.received).toHaveLength(1);
      expect(await user.row()).toMatchObject({
        state: "ACTIVE",
        version: 1,
        failCount: 1,
        lastErrorClass: answer,
        leaseUntil: undefined,
      });
    },
  );

  it("goes on being refreshed when the caller leaves, and the next caller has the new token", async () => {
    const user = await connectUser();
    const abort = new AbortController();
    let release: () => void = () => {};
    const asked = new Promise<void>((resolve) => {
      endpoint.play = async (_body, _response, pass) => {
        resolve();
        await new Promise<void>((go) => (release = go));
        await pass();
      };
    });
    const left = fetch(
      `${harness.url}/oauth/method/${PROVIDER}/call?user_id=${user.userId}&public_key=${application.publicKey}`,
      {
        method: "POST",
        body: JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" }),
        signal: abort.signal,
      },
    );
    await asked;
    abort.abort();
    await expect(left).rejects.toThrow();
    release();
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
  });

  it("does not come back when the user disconnects while it is refreshed", async () => {
    const user = await connectUser();
    endpoint.play = async (_body, _response, pass) => {
      await harness.store.connections.delete(user.key, 1);
      await pass();
    };
    expect(await call(user.userId)).toHaveProperty("errorType");
    expect(await user.row()).toBeUndefined();
  });

  it("is not overwritten by a late answer when the user connected again meanwhile", async () => {
    const user = await connectUser();
    endpoint.play = async (_body, _response, pass) => {
      await harness.connect(application, user.userId, { providerName: PROVIDER });
      await pass();
    };
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(await user.row()).toMatchObject({ version: 2, refreshToken: undefined });
  });
});

describe("a token that the provider refuses", () => {
  it("is refreshed once, and the call sent again with its body", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    expect(await call(user.userId, "/echo", harness.url, "POST")).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
    expect(await user.attempts()).toMatchObject([{ outcome: "refreshed", cause: "refused" }]);
  });

  it("is refreshed once for many calls that are refused at the same time", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    const rows = await Promise.all(
      Array.from({ length: 50 }, (_, at) => call(user.userId, "/me", at % 2 ? peerUrl : harness.url)),
    );
    for (const row of rows) expect(row).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
  });

  it("is refreshed on the provider's own signal", async () => {
    const user = await connectUser({ isEnded: false });
    const row = await call(user.userId, "/status/403");
    expect(row).toMatchObject({ errorType: "API_ERROR", statusCode: 403 });
    expect(endpoint.received.length).toBeLessThanOrEqual(1);
  });

  it("is refreshed on a status that means other things too while its lifetime is not known", async () => {
    const user = await connectUser({ isEnded: false });
    expect(await call(user.userId, "/status/404")).toMatchObject({ errorType: "API_ERROR", statusCode: 404 });
    expect(endpoint.received).toHaveLength(1);
  });

  it("is not refreshed on such a status before its lifetime is over", async () => {
    const user = await connectUntil(Date.now() + 3_600_000);
    expect(await call(user.userId, "/status/404")).toMatchObject({ errorType: "API_ERROR", statusCode: 404 });
    expect(endpoint.received).toHaveLength(0);
  });

  it("gives the provider's own answer when it is refused again, and is not refreshed by force for a while", async () => {
    const user = await connectUser({ isEnded: false });
    for (const _ of [1, 2, 3])
      expect(await call(user.userId, "/status/401")).toMatchObject({ errorType: "API_ERROR", statusCode: 401 });
    expect(endpoint.received).toHaveLength(1);
  });

  it("is not refreshed a second time when it was refreshed for this call, nor for a while after it", async () => {
    const user = await connectUser();
    for (const _ of [1, 2])
      expect(await call(user.userId, "/status/401")).toMatchObject({ errorType: "API_ERROR", statusCode: 401 });
    expect(endpoint.received).toHaveLength(1);
  });

  it("gives the provider's own answer when it cannot be refreshed", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    endpoint.play = (_body, response) => answerJson(response, 503, {});
    expect(await call(user.userId)).toMatchObject({ errorType: "API_ERROR", statusCode: 401 });
  });
});

describe("a token that the provider refuses and that cannot be refreshed", () => {
  const MINUTES_MS = 60_000;
  const DAY_MS = 24 * 60 * MINUTES_MS;
  const REFUSED = { errorType: "API_ERROR", statusCode: 401 };

  it("ends its connection the third time in ten minutes, when another connection is answered", async () => {
    const user = await connectWithoutRefresh();
    const other = await connectWithoutRefresh();
    harness.sandbox.revoke(user.accessToken);
    for (const _ of [1, 2]) {
      for (const __ of [1, 2, 3]) expect(await user.call()).toMatchObject(REFUSED);
      await user.age(5 * MINUTES_MS);
      expect(await other.call()).toMatchObject({ pincStatus: "success" });
    }
    expect(await user.row()).toMatchObject({ state: "ACTIVE", trouble: { refusal: { count: 2 } } });
    expect(await user.call()).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await user.row()).toMatchObject({ state: "REAUTHORIZATION_REQUIRED", stateReason: "token_refused" });
    expect(await toldReasonOf(user.userId)).toBe("token_refused");
    expect(await other.row()).toMatchObject({ state: "ACTIVE", trouble: undefined });
  });

  it("counts no sooner than five minutes after the last time", async () => {
    const user = await connectWithoutRefresh();
    harness.sandbox.revoke(user.accessToken);
    await user.call();
    await user.age(5 * MINUTES_MS - 5000);
    await user.call();
    expect(await user.row()).toHaveProperty("trouble.refusal.count", 1);
  });

  it("counts the definition's own signal, and anew after the provider has taken the token", async () => {
    const user = await connectWithoutRefresh();
    const other = await connectWithoutRefresh();
    for (const _ of [1, 2]) {
      expect(await user.call("/status/403")).toMatchObject({ errorType: "API_ERROR", statusCode: 403 });
      await user.age(5 * MINUTES_MS);
      await other.call();
    }
    expect(await user.row()).toHaveProperty("trouble.refusal.count", 2);
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    expect(await user.row()).toHaveProperty("trouble", undefined);
    expect(await user.call("/status/403")).toMatchObject({ errorType: "API_ERROR", statusCode: 403 });
    expect(await user.row()).toMatchObject({ state: "ACTIVE", trouble: { refusal: { count: 1 } } });
  });

  it("is not said to be refused by a 401 that does not name it", async () => {
    const user = await connectWithoutRefresh();
    for (const _ of [1, 2, 3]) expect(await user.call("/status/401")).toMatchObject(REFUSED);
    expect(await user.row()).toMatchObject({ state: "ACTIVE", trouble: undefined });
  });

  it("ends its connection after a day where no other is answered", async () => {
    const user = await connectWithoutRefresh(QUIET_PROVIDER);
    expect(await user.call()).toMatchObject({ pincStatus: "success" });
    harness.sandbox.revoke(user.accessToken);
    for (const _ of [1, 2, 3]) {
      expect(await user.call()).toMatchObject(REFUSED);
      await user.age(5 * MINUTES_MS);
    }
    await user.age(DAY_MS - 15 * MINUTES_MS - 5000);
    expect(await user.call()).toMatchObject(REFUSED);
    await user.age(5 * MINUTES_MS);
    expect(await user.call()).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
  });
});

describe("what is logged", () => {
  it("never holds a secret", () => {
    expect(harness.logLines.some((line) => line.includes("refresh"))).toBe(true);
    expect(harness.logLines.join("")).not.toMatch(/sandbox_[ar]t_|CANARY|unknown-refresh-token/);
    expect(harness.logLines.join("")).not.toContain(harness.sandbox.client.client_secret);
  });
});
