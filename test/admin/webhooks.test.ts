import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
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
