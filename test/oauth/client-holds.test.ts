import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClientHolds } from "../../src/oauth/breaker.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";

let harness: Harness;
let provider: RecordingProvider;
let application: TestApplication;

beforeAll(async () => {
  provider = await startRecordingProvider(({ target }) => {
    if (target.startsWith("/good")) return { body: '{"access_token":"CANARY_new","expires_in":3600}' };
    return target.endsWith("/token") ? { statusCode: 401, body: '{"error":"invalid_client"}' } : { body: "{}" };
  });
  harness = await startHarness({
    providers: [
      {
        ...{ name: "tenants", apiOrigins: [provider.origin], connectionValues: [{ name: "tenant" }] },
        oauth2: { tokenEndpoint: `${provider.origin}/{tenant}/token` },
      },
    ],
  });
  application = await harness.createApplication();
  await harness.putClient(application, "tenants");
});
afterAll(async () => {
  await harness.close();
  await provider.close();
});

async function callAs(userId: string, tenant: string) {
  const tokens = { refreshToken: `CANARY_refresh_of_${userId}`, expiresAt: 1 };
  await harness.connect(application, userId, { providerName: "tenants", originParameters: { tenant }, ...tokens });
  const [, call] = createCallers(harness.url)[0] ?? [];
  const key = { publicKey: application.publicKey, userId, providerName: "tenants" };
  return call?.({ ...key, call: { url: `${provider.origin}/api`, method: "GET" } });
}
const refusedSince = async () => (await harness.store.oauthClients.find(application.id, "tenants"))?.refusedSince;

describe("the application's client, refused at an address that a user has chosen a part of", () => {
  it("is held there alone, and other users' tokens are refreshed", async () => {
    const refused = { errorType: "PROVIDER_MISCONFIGURED" };
    expect(await callAs("eve", "evil")).toMatchObject(refused);
    expect(await callAs("ada", "good")).toMatchObject({ statusCode: 200 });
    const sent = provider.requests.length;
    expect(await callAs("mallory", "evil")).toMatchObject(refused);
    expect(provider.requests.length).toBe(sent);
    expect(await callAs("bob", "good")).toMatchObject({ statusCode: 200 });
  });

  it("is not shown to operators as refused while another address takes it", async () => {
    await expect.poll(refusedSince).toBeUndefined();
    expect(await callAs("trudy", "worse")).toMatchObject({ errorType: "PROVIDER_MISCONFIGURED" });
    expect(await refusedSince()).toBeUndefined();
  });
});

describe("a late verdict on a client that the operator has replaced", () => {
  const placeOf = (updatedAt: number, id = "c") => ({
    endpoint: "e",
    client: { id, applicationId: "a", providerName: "p", updatedAt },
  });
  const [older, newer] = [placeOf(1), placeOf(2)];

  it("does not end the hold of the new client when it was accepted", () => {
    const holds = createClientHolds();
    expect(holds.recordRefused(newer, "ada", 0)).toBe(true);
    holds.recordTaken(older);
    expect(holds.peekMs(newer, 1)).toBe(29_999);
  });

  it("holds neither client when it was refused, and counts for neither", () => {
    const holds = createClientHolds();
    holds.recordTaken(newer);
    expect(holds.recordRefused(older, "ada", 0)).toBe(false);
    expect([holds.peekMs(older, 1), holds.peekMs(newer, 1)]).toEqual([0, 0]);
    // The new client is still known as accepted: one connection's refusal does not hold it, a second one's does.
    expect([holds.recordRefused(newer, "bob", 2), holds.recordRefused(newer, "eve", 3)]).toEqual([false, true]);
  });

  it("is told from one on a client made anew after the clock has gone back", () => {
    const holds = createClientHolds();
    holds.recordTaken(newer);
    expect(holds.recordRefused(placeOf(1, "d"), "ada", 0)).toBe(true);
    expect(holds.peekMs(newer, 1)).toBe(0);
  });
});
