import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addWebhookDelete } from "./webhook-delete.js";
import { addWebhookPut } from "./webhook-put.js";
import { addWebhookShow } from "./webhook-show.js";

/** `relay webhook`: where an application is told of its connections. */
export function addWebhook(program: Command): void {
  const group = addGroup(program, {
    usage: "webhook",
    about: "Manage where an application is told of its connections: made, deleted, to be made again.",
    examples: ["relay webhook show --app PUBLIC_KEY"],
  });
  for (const add of [addWebhookPut, addWebhookShow, addWebhookDelete]) add(group);
}
