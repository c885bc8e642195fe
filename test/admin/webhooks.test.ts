import { join } from "node:path";
import Database from "better-sqlite3";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { WebhookDelivery_Outcome as Outcome } from "../../gen/relay/admin/v1/webhook_pb.js";
import { openWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { ADMIN_TOKENS, type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startWebhookReceiver } from "../support/webhook-receiver.js";
import { type AdminClients, createAdminClients } from "./admin-bed.js";
import { failure } from "./failure.js";

const URI = "https://app.example.com/hook";

let harness: Harness;
let application: TestApplication;
beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication();
});
afterAll(() => harness.close());

describe.each(["connect", "grpc"] as const)("WebhookService over %s", (protocol) => {
  let webhooks: AdminClients["webhooks"];
  beforeAll(() => {
    ({ webhooks } = createAdminClients(harness, protocol));
  });

  it("sets a webhook with a secret that is shown this once, shows what waits, and deletes it", async () => {
    const { publicKey, id } = application;
    const { webhook, secret } = await webhooks.putWebhook({ webhook: { publicKey, uri: URI } });
    expect(webhook).toMatchObject({ publicKey, uri: URI, waitingEventCount: 0n });
    const stored = await harness.store.webhooks.findEndpoint(id);
    expect(stored && openWebhookSecret(harness.sealer, stored).reveal()).toBe(secret);
    expect((await webhooks.putWebhook({ webhook: { publicKey, uri: URI } })).secret).not.toBe(secret);
    // Nothing is delivered while the application is disabled.
    await harness.store.applications.update(publicKey, { state: "DISABLED" }, Date.now());
    await harness.connect(application, `ada-${protocol}`);
    expect(await webhooks.getWebhook({ publicKey })).toMatchObject({
      uri: URI,
      waitingEventCount: 1n,
      waitingSinceTime: expect.anything(),
    });
    await webhooks.deleteWebhook({ publicKey });
    await harness.store.applications.update(publicKey, { state: "ACTIVE" }, Date.now());
    for (const told of await Promise.all(
      [webhooks.getWebhook({ publicKey }), webhooks.deleteWebhook({ publicKey })].map(failure),
    ))
      expect(told).toMatchObject({ code: "NotFound" });
  });

  it("keeps the secret when the answer with a new one cannot be given", async () => {
    const { publicKey, id } = application;
    const { secret } = await webhooks.putWebhook({ webhook: { publicKey, uri: URI } });
    const database = new Database(join(harness.folder, "relay.db"));
    database.exec("ALTER TABLE webhook_events RENAME TO hidden");
    const refused = await failure(webhooks.putWebhook({ webhook: { publicKey, uri: URI } }));
    database.exec("ALTER TABLE hidden RENAME TO webhook_events");
    database.close();
    expect(refused).toMatchObject({ code: "Internal" });
    const stored = await harness.store.webhooks.findEndpoint(id);
    expect(stored && openWebhookSecret(harness.sealer, stored).reveal()).toBe(secret);
  });

  it.each([
    [{ uri: "" }, "InvalidArgument", "webhook.uri"],
    [{ uri: "http://app.example.com/" }, "InvalidArgument", "webhook.uri"],
    [{ uri: "https://10.0.0.1/" }, "InvalidArgument", "webhook.uri"],
    [{ publicKey: "" }, "InvalidArgument", "webhook.public_key"],
    [{ publicKey: "nobody's" }, "NotFound", undefined],
  ])("refuses %o", async (patch, code, field) => {
    const call = webhooks.putWebhook({ webhook: { publicKey: application.publicKey, uri: URI, ...patch } });
    expect(await failure(call)).toMatchObject({ code, field });
  });
});

describe("events of a webhook", () => {
  /** An application whose events arrive at a receiver. */
  async function told() {
    const receiver = await startWebhookReceiver();
    onTestFinished(() => receiver.close());
    const { publicKey, id } = await harness.createApplication();
    const { webhooks, audit } = createAdminClients(harness);
    const { secret } = await webhooks.putWebhook({ webhook: { publicKey, uri: receiver.url } });
    const deliveries = (more: object = {}) => webhooks.listWebhookDeliveries({ publicKey, ...more });
    return { receiver, publicKey, id, webhooks, audit, secret, deliveries };
  }

  it("sends a signed test, about no connection, writes down who asked for it, and says how it went", async () => {
    const { receiver, publicKey, webhooks, audit, secret, deliveries } = await told();
    const { eventId } = await webhooks.sendTestEvent({ publicKey });
    const [event] = await receiver.arrived(1);
    expect([event?.id, JSON.parse(event?.body ?? "")]).toEqual([
      eventId,
      { type: "webhook.test", timestamp: expect.any(String), data: { public_key: publicKey } },
    ]);
    new Webhook(secret).verify(event?.body ?? "", event?.headers as Record<string, string>);
    await vi.waitFor(async () => {
      const { webhookDeliveries } = await deliveries();
      expect(webhookDeliveries).toMatchObject([
        { eventId, type: "webhook.test", userId: "", outcome: Outcome.DELIVERED, attemptCount: 1, statusCode: 204 },
      ]);
    });
    const { auditRecords } = await audit.listAuditRecords({ publicKey, pageSize: 1 });
    expect(auditRecords).toMatchObject([{ method: "relay.admin.v1.WebhookService.SendTestEvent", actor: "alice" }]);
  });

  it("lists what became of events about one connection, the newest first, page by page", async () => {
    const { receiver, publicKey, id, deliveries } = await told();
    receiver.play = (response, { body }) => response.writeHead(body.includes("deleted") ? 410 : 204).end();
    const application = { id, publicKey, privateKey: "" };
    for (const userId of ["ada", "bea"]) await harness.connect(application, userId);
    await harness.store.connections.delete({ applicationId: id, userId: "ada", providerName: "sandbox" }, Date.now());
    await receiver.arrived(3);
    await vi.waitFor(async () => expect((await deliveries()).webhookDeliveries).toHaveLength(3));
    const ofAda = await deliveries({ userId: "ada", providerName: "sandbox" });
    expect(ofAda.webhookDeliveries).toMatchObject([
      { type: "connection.deleted", userId: "ada", outcome: Outcome.GIVEN_UP, statusCode: 410 },
      { type: "connection.created", userId: "ada", outcome: Outcome.DELIVERED, statusCode: 204 },
    ]);
    const first = await deliveries({ pageSize: 2 });
    const rest = await deliveries({ pageSize: 2, pageToken: first.nextPageToken });
    expect([...first.webhookDeliveries, ...rest.webhookDeliveries].map(({ userId }) => userId)).toEqual([
      "ada",
      "bea",
      "ada",
    ]);
    expect([rest.nextPageToken, (await deliveries({ userId: "nobody" })).webhookDeliveries]).toEqual(["", []]);
    expect(await failure(deliveries({ providerName: "sandbox" }))).toMatchObject({ field: "provider_name" });
  });

  it("sends no test where there is no webhook", async () => {
    const { publicKey } = await harness.createApplication();
    const { webhooks } = createAdminClients(harness);
    expect(await failure(webhooks.sendTestEvent({ publicKey }))).toMatchObject({ code: "NotFound" });
    const readOnly = createAdminClients(harness, "connect", ADMIN_TOKENS.readOnly).webhooks;
    expect(await failure(readOnly.sendTestEvent({ publicKey }))).toMatchObject({ code: "PermissionDenied" });
    expect((await readOnly.listWebhookDeliveries({ publicKey })).webhookDeliveries).toEqual([]);
  });
});
