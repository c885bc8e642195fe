import type { Application } from "../applications/application.js";
import type { Secret } from "../sealing/secret.js";
import { createWebhookSecret, sealWebhookSecret } from "../webhooks/secret.js";
import { type Administration, auditEntryFrom, webhookResource } from "./administration.js";

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

/** Tells an application no more. False when it was told nothing. */
export function deleteWebhook(
  administration: Administration,
  { id, publicKey }: Pick<Application, "id" | "publicKey">,
): Promise<boolean> {
  const audit = auditEntryFrom(administration, "WebhookService.DeleteWebhook", webhookResource(publicKey));
  return administration.store.webhooks.deleteEndpoint(id, audit);
}
