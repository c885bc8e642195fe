import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { WebhookSchema, type WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import type { Application } from "../applications/application.js";
import type { Secret } from "../sealing/seal.js";
import { createWebhookSecret, parseWebhookUri, sealWebhookSecret } from "../webhooks/webhook-store.js";
import { type Administration, auditEntryFrom, webhookResource } from "./administration.js";
import {
  type AdminOptions,
  administrationFor,
  invalidArgument,
  namedApplication,
  notFound,
  requiredMessage,
} from "./standard-methods.js";

/** relay.admin.v1.WebhookService: message → use case → message. */
export function createWebhookService(options: AdminOptions): ServiceImpl<typeof WebhookService> {
  const { applications } = options.store;
  return {
    async getWebhook({ publicKey }) {
      return readWebhook(options, await namedApplication(applications, publicKey));
    },
    async putWebhook(request, context) {
      const { publicKey, uri } = requiredMessage(request.webhook, "webhook");
      const parsed = parseWebhookUri(uri, options);
      if ("problem" in parsed) throw invalidArgument("webhook.uri", parsed.problem);
      const application = await namedApplication(applications, publicKey, "webhook.public_key");
      const secret = await putWebhook(administrationFor(options, context), application, parsed.value);
      return { webhook: await readWebhook(options, application), secret: secret.reveal() };
    },
    async deleteWebhook({ publicKey }, context) {
      const application = await namedApplication(applications, publicKey);
      if (!(await deleteWebhook(administrationFor(options, context), application))) throw noWebhook();
      return {};
    },
  };
}

/** An allow-list of members, so that the secret is never among them. */
async function readWebhook({ store }: AdminOptions, { id, publicKey }: Application) {
  const endpoint = await store.webhooks.findEndpoint(id);
  if (endpoint === undefined) throw noWebhook();
  const { waiting, oldestAt } = await store.webhooks.backlog(id);
  return create(WebhookSchema, {
    publicKey,
    uri: endpoint.uri,
    updateTime: timestampFromMs(endpoint.updatedAt),
    waitingEventCount: BigInt(waiting),
    ...(oldestAt === undefined ? {} : { waitingSinceTime: timestampFromMs(oldestAt) }),
  });
}

function noWebhook() {
  return notFound("webhook of this application");
}

/** Tells an application of its connections at an address that was parsed, and resolves to the new secret that signs. */
export async function putWebhook(
  administration: Administration,
  { id: applicationId, publicKey }: Application,
  uri: string,
): Promise<Secret> {
  const { store, sealer, now } = administration;
  const secret = createWebhookSecret();
  const sealed = sealWebhookSecret(sealer, applicationId, secret);
  const resource = webhookResource(publicKey);
  await store.webhooks.putEndpoint(
    { applicationId, uri, secret: sealed, updatedAt: now() },
    auditEntryFrom(administration, "WebhookService.PutWebhook", resource, ["uri", "secret"]),
  );
  return secret;
}

/** Deletes the webhook; false if there was none. */
export function deleteWebhook(
  administration: Administration,
  { id, publicKey }: Pick<Application, "id" | "publicKey">,
): Promise<boolean> {
  const audit = auditEntryFrom(administration, "WebhookService.DeleteWebhook", webhookResource(publicKey));
  return administration.store.webhooks.deleteEndpoint(id, audit);
}
