import type { Command } from "commander";
import { addCommand } from "./command.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { textFields } from "./text-table.js";
import { applicationFrom, noWebhook, type WebhookOptions } from "./webhook-application.js";

/** `relay webhook show` */
export function addWebhookShow(group: Command): void {
  addCommand(group, {
    usage: "show",
    about: "Show where an application is told of its connections, and what it was not told yet. Never the secret.",
    examples: ["relay webhook show --app PUBLIC_KEY --json"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .action(show);
}

async function show(options: WebhookOptions): Promise<void> {
  const webhook = await withStore((open) => findWebhook(open, options));
  if (options.json) {
    writeJson(webhook);
    return;
  }
  const { uri, updatedAt, waiting, waitingSince } = webhook;
  writeLine(
    textFields([
      ["uri", uri],
      ["set", updatedAt],
      ["waiting", waitingSince === null ? "nothing" : `${waiting}, the oldest since ${waitingSince}`],
    ]),
  );
}

/** An allow-list of members, so that the secret is never among them. */
async function findWebhook(open: OpenStore, options: WebhookOptions) {
  const { webhooks } = open.store;
  const { id: applicationId } = await applicationFrom(open, options);
  const endpoint = await webhooks.findEndpoint(applicationId);
  if (endpoint === undefined) throw noWebhook();
  const { waiting, oldestAt } = await webhooks.backlog(applicationId);
  return {
    uri: endpoint.uri,
    updatedAt: new Date(endpoint.updatedAt).toISOString(),
    waiting,
    waitingSince: oldestAt === undefined ? null : new Date(oldestAt).toISOString(),
  };
}
