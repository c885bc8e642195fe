import { onTestFinished } from "vitest";
import type { Application } from "../../src/applications/application.js";
import type { Sealer } from "../../src/sealing/seal.js";
import type { SqliteStore } from "../../src/store/sqlite.js";
import { createUpstream, type UpstreamOptions } from "../../src/upstream/client.js";
import { createDeliverer, type Deliverer, type DelivererOptions, type Delivery } from "../../src/webhooks/deliverer.js";
import { createWebhookSecret, sealWebhookSecret } from "../../src/webhooks/webhook-store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { applicationForTest, connectionForTest, createStoreFolder, NOW } from "../store/store-for-test.js";
import { startWebhookReceiver, type WebhookReceiver } from "../support/webhook-receiver.js";

/** What a test may choose about a deliverer; its upstream is made of the options given. */
type DelivererChoice = Partial<DelivererOptions> & { readonly upstreamOptions?: Partial<UpstreamOptions> };

/** A deliverer and what it told. */
interface TestDeliverer extends Deliverer {
  readonly deliveries: Delivery[];
  readonly faults: unknown[];
}

/** A store, and deliverers on it whose time the test sets. All is closed when the test has finished. */
export interface WebhookBed {
  readonly store: SqliteStore;
  readonly sealer: Sealer;
  /** What the deliverers take for the time. */
  now: number;
  /** An application that is told at the address; answers with it and its secret. */
  application(uri: string): Promise<{ application: Application; secret: string }>;
  receiver(): Promise<WebhookReceiver>;
  /** Connects a user, so that an event waits. */
  connect(application: Application, userId: string): Promise<void>;
  deliverer(choice?: DelivererChoice): TestDeliverer;
  /** Has a deliverer do what is due now, one event of each application, and closes it. */
  round(choice?: DelivererChoice): Promise<Delivery[]>;
}

export function createBed(): WebhookBed {
  const at = createStoreFolder();
  onTestFinished(() => at.remove());
  const store = at.open();
  const sealer = sealerForTest();
  const bed: WebhookBed = {
    store,
    sealer,
    now: NOW,
    async application(uri) {
      const application = applicationForTest(sealer);
      await store.applications.create(application);
      return { application, secret: await putEndpoint(store, sealer, application.id, uri) };
    },
    async receiver() {
      const receiver = await startWebhookReceiver();
      onTestFinished(() => receiver.close());
      return receiver;
    },
    async connect({ id: applicationId }, userId) {
      const key = { applicationId, userId, providerName: "github" };
      await store.connections.put(connectionForTest(sealer, key), bed.now);
    },
    deliverer: (choice) => startDeliverer(bed, choice ?? {}),
    async round(choice) {
      const deliverer = startDeliverer(bed, choice ?? {});
      await deliverer.close(60_000);
      return deliverer.deliveries;
    },
  };
  return bed;
}

/** Stores an endpoint with a new secret; returns the secret. */
export async function putEndpoint(
  store: SqliteStore,
  sealer: Sealer,
  applicationId: string,
  uri: string,
): Promise<string> {
  const secret = createWebhookSecret();
  const sealed = sealWebhookSecret(sealer, applicationId, secret);
  await store.webhooks.putEndpoint({ applicationId, uri, secret: sealed, updatedAt: NOW });
  return secret.reveal();
}

function startDeliverer(bed: WebhookBed, { upstreamOptions, ...choice }: DelivererChoice): TestDeliverer {
  const upstream = createUpstream({ allowLoopback: true, maxResponseBytes: 1024, ...upstreamOptions });
  const deliveries: Delivery[] = [];
  const faults: unknown[] = [];
  const deliverer = createDeliverer({
    webhooks: bed.store.webhooks,
    sealer: bed.sealer,
    upstream,
    now: () => bed.now,
    random: () => 0,
    onDelivery: (delivery) => deliveries.push(delivery),
    onFault: (error) => faults.push(error),
    ...choice,
  });
  onTestFinished(async () => {
    await deliverer.close(0);
    await upstream.close();
  });
  return { ...deliverer, deliveries, faults };
}
