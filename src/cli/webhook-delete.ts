import type { Command } from "commander";
import { deleteWebhook } from "../admin/delete-webhook.js";
import { administrationOf } from "./administration.js";
import { addCommand } from "./command.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { applicationFrom, noWebhook, type WebhookOptions } from "./webhook-application.js";

/** `relay webhook delete` */
export function addWebhookDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Tell an application no more of its connections. What it was not told yet is forgotten.",
    examples: ["relay webhook delete --app PUBLIC_KEY"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .action(deleteNamed);
}

async function deleteNamed(options: WebhookOptions): Promise<void> {
  const isDeleted = await withStore(async (open) =>
    deleteWebhook(administrationOf(open), await applicationFrom(open, options)),
  );
  if (!isDeleted) throw noWebhook();
  if (options.json) writeJson({ deleted: true });
  else writeLine("Deleted the webhook.");
}
