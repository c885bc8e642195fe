import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  WebhookDelivery_Outcome as Outcome,
  type WebhookDelivery as WebhookDeliveryMessage,
  WebhookDeliverySchema,
  WebhookSchema,
  type WebhookService,
} from "../../gen/relay/admin/v1/webhook_pb.js";
import type { Application } from "../applications/application.js";
import type { Secret } from "../sealing/seal.js";
import {
  createWebhookSecret,
  parseWebhookUri,
  sealWebhookSecret,
  type WebhookDelivery,
  type WebhookEndpoint,
  type WebhookStore,
} from "../webhooks/webhook-store.js";
import { type Administration, auditEntryFrom, webhookResource } from "./administration.js";
import {
  type AdminOptions,
  administrationFor,
  invalidArgument,
  NUMBER_PART,
  namedApplication,
  notFound,
  pageFrom,
  pageOfRest,
  providerNameFrom,
  required,
} from "./standard-methods.js";

/** relay.admin.v1.WebhookService: message → use case → message. */
export function createWebhookService(options: AdminOptions): ServiceImpl<typeof WebhookService> {
  const { applications, webhooks } = options.store;
  return {
    async getWebhook({ publicKey }) {
      const { id } = await namedApplication(applications, publicKey);
      const endpoint = await webhooks.findEndpoint(id);
      if (endpoint === undefined) throw noWebhook();
      return messageFromEndpoint(publicKey, endpoint, await webhooks.backlog(id));
    },
    async putWebhook(request, context) {
      const { publicKey, uri } = required(request.webhook, "webhook");
      const parsed = parseWebhookUri(uri, options);
      if ("problem" in parsed) throw invalidArgument("webhook.uri", parsed.problem);
      const application = await namedApplication(applications, publicKey, "webhook.public_key");
      const backlog = await webhooks.backlog(application.id);
      const { endpoint, secret } = await putWebhook(administrationFor(options, context), application, parsed.value);
      // Nothing may fail after the write: the secret is shown only once, and the old one is gone.
      return { webhook: messageFromEndpoint(publicKey, endpoint, backlog), secret: secret.reveal() };
    },
    async deleteWebhook({ publicKey }, context) {
      const application = await namedApplication(applications, publicKey);
      if (!(await deleteWebhook(administrationFor(options, context), application))) throw noWebhook();
      return {};
    },
    async sendTestEvent({ publicKey }, context) {
      const application = await namedApplication(applications, publicKey);
      const eventId = await sendTestEvent(administrationFor(options, context), application);
      if (eventId === undefined) throw noWebhook();
      return { eventId };
    },
    async listWebhookDeliveries(request) {
      const { publicKey, userId, providerName } = request;
      if (providerName !== "" && userId === "") throw invalidArgument("provider_name", "requires user_id");
      const page = pageFrom(request, [publicKey, userId, providerName], [NUMBER_PART]);
      const rest = await webhooks.listDeliveries({
        applicationId: (await namedApplication(applications, publicKey)).id,
        userId: userId || undefined,
        providerName: providerName === "" ? undefined : providerNameFrom(options.catalog, providerName),
        beforePlace: page.after && Number(page.after[0]),
        limit: page.size + 1,
      });
      const { rows, nextPageToken } = pageOfRest(page, rest, ({ place }) => [String(place)]);
      return { webhookDeliveries: rows.map(messageFromDelivery), nextPageToken };
    },
  };
}

/** The webhook's message. An allow-list of members, so that the secret can never be among them. */
function messageFromEndpoint(
  publicKey: string,
  { uri, updatedAt }: WebhookEndpoint,
  { waiting, oldestAt }: Awaited<ReturnType<WebhookStore["backlog"]>>,
) {
  return create(WebhookSchema, {
    publicKey,
    uri,
    updateTime: timestampFromMs(updatedAt),
    waitingEventCount: BigInt(waiting),
    ...(oldestAt === undefined ? {} : { waitingSinceTime: timestampFromMs(oldestAt) }),
  });
}

const OUTCOMES = { delivered: Outcome.DELIVERED, retry: Outcome.RETRYING, givenUp: Outcome.GIVEN_UP } as const;

function messageFromDelivery(delivery: WebhookDelivery): WebhookDeliveryMessage {
  return create(WebhookDeliverySchema, {
    eventId: delivery.id,
    type: delivery.type,
    userId: delivery.userId,
    providerName: delivery.providerName,
    outcome: OUTCOMES[delivery.kind],
    attemptCount: delivery.attempts,
    statusCode: delivery.statusCode ?? 0,
    createTime: timestampFromMs(delivery.createdAt),
    attemptTime: timestampFromMs(delivery.at),
  });
}

function noWebhook() {
  return notFound("webhook of this application");
}

/** Sets an application's webhook, with a new signing secret, and resolves to both. @param uri already validated. */
export async function putWebhook(
  administration: Administration,
  { id: applicationId, publicKey }: Application,
  uri: string,
): Promise<{ readonly endpoint: WebhookEndpoint; readonly secret: Secret }> {
  const { store, sealer, now } = administration;
  const secret = createWebhookSecret();
  const sealed = sealWebhookSecret(sealer, applicationId, secret);
  const endpoint = { applicationId, uri, secret: sealed, updatedAt: now() };
  const resource = webhookResource(publicKey);
  await store.webhooks.putEndpoint(
    endpoint,
    auditEntryFrom(administration, "WebhookService.PutWebhook", resource, ["uri", "secret"]),
  );
  return { endpoint, secret };
}

/** Queues a test event, which is delivered like any other. Resolves to its id; undefined without a webhook. */
export function sendTestEvent(
  administration: Administration,
  { id, publicKey }: Pick<Application, "id" | "publicKey">,
): Promise<string | undefined> {
  const audit = auditEntryFrom(administration, "WebhookService.SendTestEvent", webhookResource(publicKey));
  return administration.store.webhooks.addTest(id, administration.now(), audit);
}

/** Deletes the webhook; false if there was none. */
export function deleteWebhook(
  administration: Administration,
  { id, publicKey }: Pick<Application, "id" | "publicKey">,
): Promise<boolean> {
  const audit = auditEntryFrom(administration, "WebhookService.DeleteWebhook", webhookResource(publicKey));
  return administration.store.webhooks.deleteEndpoint(id, audit);
}
