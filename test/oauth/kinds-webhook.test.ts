import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAdminClients } from "../admin/admin-bed.js";
import { openBrowser } from "../pages/browser.js";
import { linkTo } from "../pages/flow.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { type RecordingProvider, startRecordingProvider } from "../support/recording-provider.js";
import { startWebhookReceiver, verified, type WebhookReceiver } from "../support/webhook-receiver.js";
import { putEndpoint } from "../webhooks/webhook-bed.js";

const SECRET = "CANARY_of_a_key_connection";
let harness: Harness;
let provider: RecordingProvider;
let receiver: WebhookReceiver;
let application: TestApplication;
let webhookSecret: string;

beforeAll(async () => {
  provider = await startRecordingProvider(({ target }) =>
    target === "/token" ? { statusCode: 401, body: '{"error":"invalid_client"}' } : { body: "{}" },
  );
  const { origin } = provider;
  receiver = await startWebhookReceiver();
  harness = await startHarness({
    providers: [
      { name: "keyed", kind: "api_key", apiOrigins: [origin] },
      { name: "named", kind: "basic", apiOrigins: [origin] },
      {
        ...{ name: "machine", kind: "client_credentials", apiOrigins: [origin] },
        oauth2: { tokenEndpoint: `${origin}/token` },
      },
    ],
  });
  application = await harness.createApplication();
  webhookSecret = await putEndpoint(harness.store, harness.sealer, application.id, receiver.url);
});
afterAll(async () => {
  await harness.close();
  await receiver.close();
  await provider.close();
});

/** The events of one user, as the application reads them, once so many have come. */
async function eventsOf(userId: string, count: number) {
  const all = () => receiver.received.map((event) => verified(webhookSecret, event));
  const own = () => all().filter(({ data }) => data["user_id"] === userId);
  await expect.poll(() => own().length, { timeout: 15_000 }).toBe(count);
  return own();
}

describe.each([
  ["keyed", { secrets: { api_key: SECRET } }, { api_key: SECRET }],
  [
    "named",
    { secrets: { password: SECRET }, originParameters: { username: "ada" } },
    { username: "ada", password: SECRET },
  ],
  [
    "machine",
    { secrets: { client_secret: SECRET }, originParameters: { client_id: "own" } },
    { client_id: "own", client_secret: SECRET },
  ],
] as const)("the webhook of an application, for a connection of %s", (providerName, content, form) => {
  it("tells that one was stored, entered by its user, and deleted, and nothing of its secrets", async () => {
    const userId = `ada at ${providerName}`;
    const { connections } = createAdminClients(harness);
    const key = { publicKey: application.publicKey, userId, providerName };
    await connections.putConnection({ ...key, ...content });
    const browser = openBrowser();
    const asked = await browser.visit(await linkTo(harness, application, userId, { provider_name: providerName }));
    const [, session = ""] = /name="session" value="([\w-]+)"/.exec(asked.body) ?? [];
    const done = await browser.post(`${harness.url}/oauth/connect/${providerName}`, { session, ...form });
    expect(done.status).toBe(200);
    await connections.deleteConnection(key);
    const events = await eventsOf(userId, 3);
    expect(events.map(({ type }) => type)).toEqual(["connection.created", "connection.created", "connection.deleted"]);
    for (const { data } of events)
      expect(data).toEqual({ public_key: application.publicKey, user_id: userId, provider_name: providerName });
    for (const { body, headers } of receiver.received) expect(body + JSON.stringify(headers)).not.toContain("CANARY");
  });
});

describe("the webhook of an application, for a client of a user's own", () => {
  it("tells that the provider refuses it, once", async () => {
    const key = { publicKey: application.publicKey, userId: "eve", providerName: "machine" };
    const content = { secrets: { client_secret: SECRET }, originParameters: { client_id: "own" } };
    await createAdminClients(harness).connections.putConnection({ ...key, ...content });
    const [, call] = createCallers(harness.url)[0] ?? [];
    for (let count = 0; count < 2; count += 1) {
      const row = await call?.({ ...key, call: { url: `${provider.origin}/v1`, method: "GET" } });
      expect(row).toMatchObject({ errorType: "REAUTHORIZATION_REQUIRED" });
    }
    const events = await eventsOf("eve", 2);
    expect(events.map(({ type, data }) => [type, data["reason"]])).toEqual([
      ["connection.created", undefined],
      ["connection.reauthorization_required", "invalid_client"],
    ]);
  });
});
