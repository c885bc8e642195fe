import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answerJson, startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";

const PROVIDER = "cut";
let harness: Harness;
let endpoint: TestTokenEndpoint;
let application: TestApplication;

beforeAll(async () => {
  endpoint = await startTokenEndpoint(() => harness.sandbox.origin);
  harness = await startHarness({
    definitionsFor: (origin) => [
      {
        name: PROVIDER,
        apiOrigins: [origin],
        oauth2: { tokenEndpoint: endpoint.url, clientAuthentication: "client_secret_basic" },
      },
      { name: "nowhere", apiOrigins: [origin], oauth2: { tokenEndpoint: "http://127.0.0.1:1/token" } },
    ],
  });
  application = await harness.createApplication();
  for (const name of [PROVIDER, "nowhere"]) await harness.putClient(application, name);
});
beforeEach(() => {
  endpoint.play = (_body, _response, pass) => pass();
});
afterAll(async () => {
  await harness.close();
  await endpoint.close();
});

async function connectUser(providerName = PROVIDER) {
  const userId = randomUUID();
  const { refresh_token: refreshToken } = harness.sandbox.issueToken();
  await harness.connect(application, userId, { providerName, refreshToken, expiresAt: 1 });
  return { userId, row: () => harness.store.connections.find({ applicationId: application.id, userId, providerName }) };
}

async function call(userId: string, providerName = PROVIDER) {
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const { text } = await postRest(harness.url, { providerName, userId, publicKey: application.publicKey, call });
  return JSON.parse(text).rows[0] as { pincStatus: string; errorType?: string };
}

/** Calls again when the pause after a failure is over. */
async function callUntilAsked(userId: string) {
  const known = endpoint.received.length;
  let row = await call(userId);
  while (endpoint.received.length === known) row = await call(userId);
  return row;
}

describe("a refresh token that the provider refuses after a request whose answer is not known", () => {
  it.each([
    ["that was cut", (response: { destroy(): void }) => response.destroy()],
    ["that a gateway replaced", (response: never) => answerJson(response, 502, {})],
  ])("is told as a suspected loss, after an answer %s", async (_what, cut) => {
    const { userId, row } = await connectUser();
    endpoint.play = async (body, response) => {
      const { client_id, client_secret = "" } = harness.sandbox.client;
      const credentials = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
      const headers = {
        authorization: `Basic ${credentials}`,
        "content-type": "application/x-www-form-urlencoded",
      };
      // The provider rotates, and nobody hears of it.
      const rotated = await fetch(`${harness.sandbox.origin}/oauth/token`, { method: "POST", headers, body });
      expect(rotated.status).toBe(200);
      cut(response as never);
    };
    expect(await call(userId)).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    expect(await row()).toMatchObject({ state: "ACTIVE", unansweredSince: expect.any(Number) });
    endpoint.play = (_body, _response, pass) => pass();
    expect(await callUntilAsked(userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await row()).toMatchObject({ stateReason: "rotation_lost_suspected" });
  });

  it("is told as ended by the provider where the answer was known", async () => {
    const { userId, row } = await connectUser();
    endpoint.play = (_body, response) => answerJson(response, 429, {});
    await call(userId);
    expect(await row()).toMatchObject({ state: "ACTIVE", unansweredSince: undefined });
    endpoint.play = (_body, response) => answerJson(response, 400, { error: "invalid_grant" });
    expect(await callUntilAsked(userId)).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    expect(await row()).toMatchObject({ stateReason: "invalid_grant" });
  });

  it("is no longer in doubt once an answer is stored, nor where the request never left", async () => {
    const { userId, row } = await connectUser();
    endpoint.play = (_body, response) => void response.destroy();
    await call(userId);
    endpoint.play = (_body, _response, pass) => pass();
    expect(await callUntilAsked(userId)).toMatchObject({ pincStatus: "success" });
    expect(await row()).toMatchObject({ unansweredSince: undefined });
    const unreachable = await connectUser("nowhere");
    expect(await call(unreachable.userId, "nowhere")).toMatchObject({ errorType: "REFRESH_UNAVAILABLE" });
    expect(await unreachable.row()).toMatchObject({ failCount: 1, unansweredSince: undefined });
  });
});
