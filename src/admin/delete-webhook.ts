import type { Application } from "../applications/application.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import { webhookResource } from "./resource.js";

/** Tells an application no more. False when it was told nothing. */
export function deleteWebhook(
  administration: Administration,
  { id, publicKey }: Pick<Application, "id" | "publicKey">,
): Promise<boolean> {
  const audit = auditEntryFrom(administration, "WebhookService.DeleteWebhook", webhookResource(publicKey));
  return administration.store.webhooks.deleteEndpoint(id, audit);
}
