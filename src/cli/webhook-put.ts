import type { Command } from "commander";
import { putWebhook } from "../admin/put-webhook.js";
import type { Secret } from "../tokens/secret.js";
import { parseWebhookUri } from "../webhooks/webhook-uri.js";
import { administrationOf } from "./administration.js";
import { addCommand } from "./command.js";
import { configFromEnvironment } from "./environment.js";
import { usageError } from "./exit-error.js";
import { type OpenStore, withStoreOf } from "./open-store.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { textFields } from "./text-table.js";
import { applicationFrom, type WebhookOptions } from "./webhook-application.js";

/** `relay webhook put` */
export function addWebhookPut(group: Command): void {
  addCommand(group, {
    usage: "put <uri>",
    about:
      "Tell an application of its connections from now on. Prints the secret that signs, this once. One that exists is replaced.",
    examples: ["relay webhook put --app PUBLIC_KEY https://app.example.com/webhooks/relay"],
    more: `Events are sent to the address with POST, signed as the Standard Webhooks specification says.
Those that wait already go to the new address, too, signed with the new secret.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .action(put);
}

async function put(text: string, options: WebhookOptions): Promise<void> {
  const config = configFromEnvironment();
  const parsed = parseWebhookUri(text, config);
  if ("problem" in parsed) throw usageError(`The address ${parsed.problem}.`);
  const uri = parsed.value;
  const secret = await withStoreOf(config, (open) => putEndpoint(open, options, uri));
  if (options.json) {
    writeJson({ uri, secret: secret.reveal() });
    return;
  }
  writeLine(
    textFields([
      ["uri", uri],
      ["secret", secret.reveal()],
    ]),
  );
  writeNote("Keep the secret now; it cannot be shown again.");
}

async function putEndpoint(open: OpenStore, options: WebhookOptions, uri: string): Promise<Secret> {
  return putWebhook(administrationOf(open), await applicationFrom(open, options), uri);
}
