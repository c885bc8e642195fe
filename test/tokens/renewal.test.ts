import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ConnectionKey } from "../../src/tokens/connection.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answerJson, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";

const PROVIDER = "renewed";
let harness: Harness;
let endpoint: TestTokenEndpoint;
let application: TestApplication;
let peerUrl: string;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    env: { RELAY_DEADLINE_MS: "10000" },
    definitionsFor: (sandbox) => [definition(sandbox)],
  });
  application = await harness.createApplication();
  await harness.putClient(application, PROVIDER);
  peerUrl = await harness.startPeer();
});

beforeEach(() => {
  endpoint.play = (_body, _response, pass) => pass();
  endpoint.received.length = 0;
});

afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

function definition(sandboxOrigin: string) {
  return {
    name: PROVIDER,
    apiOrigins: [sandboxOrigin],
    oauth2: { tokenEndpoint: endpoint.url, clientAuthentication: "client_secret_basic" },
    expirySignals: [{ statusCode: 403, member: "status", values: ["403"] }],
  };
}

/** A user whose access token ended long ago, or, `alive`, is good for another hour by its own account. */
async function connectUser({ isEnded = true, refreshToken = harness.sandbox.issueToken().refresh_token } = {}) {
  const userId = randomUUID();
  const options = { providerName: PROVIDER, refreshToken, ...(isEnded ? { expiresAt: 1 } : {}) };
  const accessToken = await harness.connect(application, userId, options);
  const key: ConnectionKey = { applicationId: application.id, userId, providerName: PROVIDER };
  return { userId, accessToken, key, row: () => harness.store.connections.find(key) };
}

async function call(userId: string, path = "/me", url = harness.url, method = "GET") {
  const call = { url: harness.sandbox.origin + path, method };
  const { text } = await postRest(url, { providerName: PROVIDER, userId, publicKey: application.publicKey, call });
  expect(text).not.toMatch(/sandbox_[ar]t_|CANARY/);
  return JSON.parse(text).rows[0] as {
    pincStatus: string;
    errorType?: string;
    statusCode: number;
    inernalError?: string;
  };
}

describe("a token that has ended", () => {
  it("is renewed before the call, with the client's credentials and the stored refresh token, once", async () => {
    const user = await connectUser();
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(await call(user.userId)).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
    expect(endpoint.received[0]?.get("grant_type")).toBe("refresh_token");
    expect(await user.row()).toMatchObject({ version: 2, state: "ACTIVE", failCount: 0, leaseUntil: undefined });
  });

  it("is renewed once for all callers of two relays that share the store", async () => {
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
  });

  it("answers PROVIDER_MISCONFIGURED when the provider refuses the client, and keeps the user's tokens", async () => {
    const other = await harness.createApplication();
    await harness.store.oauthClients.put({
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
        inernalError: expect.stringMatching(/in \d seconds?/),
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

  it("goes on being renewed when the caller leaves, and the next caller has the new token", async () => {
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

  it("does not come back when the user disconnects while it is renewed", async () => {
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
  it("is renewed once, and the call sent again with its body", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    expect(await call(user.userId, "/echo", harness.url, "POST")).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
  });

  it("is renewed once for many calls that are refused at the same time", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    const rows = await Promise.all(
      Array.from({ length: 50 }, (_, at) => call(user.userId, "/me", at % 2 ? peerUrl : harness.url)),
    );
    for (const row of rows) expect(row).toMatchObject({ pincStatus: "success" });
    expect(endpoint.received).toHaveLength(1);
  });

  it("is renewed on the provider's own signal", async () => {
    const user = await connectUser({ isEnded: false });
    const row = await call(user.userId, "/status/403");
    expect(row).toMatchObject({ errorType: "API_ERROR", statusCode: 403 });
    expect(endpoint.received.length).toBeLessThanOrEqual(1);
  });

  it("gives the provider's own answer when it is refused again, and is not renewed by force for a while", async () => {
    const user = await connectUser({ isEnded: false });
    for (const _ of [1, 2, 3])
      expect(await call(user.userId, "/status/401")).toMatchObject({ errorType: "API_ERROR", statusCode: 401 });
    expect(endpoint.received).toHaveLength(1);
  });

  it("gives the provider's own answer when it cannot be renewed", async () => {
    const user = await connectUser({ isEnded: false });
    harness.sandbox.revoke(user.accessToken);
    endpoint.play = (_body, response) => answerJson(response, 503, {});
    expect(await call(user.userId)).toMatchObject({ errorType: "API_ERROR", statusCode: 401 });
  });

  it("never lets a secret into a log line", () => {
    expect(harness.logLines.some((line) => line.includes("renewal"))).toBe(true);
    expect(harness.logLines.join("")).not.toMatch(/sandbox_[ar]t_|CANARY|unknown-refresh-token/);
    expect(harness.logLines.join("")).not.toContain(harness.sandbox.client.client_secret);
  });
});
