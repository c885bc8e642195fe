import type { Command } from "commander";
import type { StoredOAuthClient } from "../tokens/oauth-client.js";
import { noApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { textTable } from "./text-table.js";

interface ListOptions {
  readonly app: string;
  readonly json?: boolean;
}

/** `relay client list` */
export function addClientList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List an application's OAuth clients. Secrets are never printed.",
    examples: ["relay client list --app PUBLIC_KEY --json"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .action(list);
}

async function list({ app, json }: ListOptions): Promise<void> {
  const clients = (await withStore((open) => findClients(open, app))).map((client) => ({
    provider: client.providerName,
    clientId: client.clientId,
    scope: client.scope,
    originParameters: client.originParameters,
    hasSecret: client.clientSecret !== undefined,
    updatedAt: new Date(client.updatedAt).toISOString(),
    refusedSince: client.refusedSince === undefined ? null : new Date(client.refusedSince).toISOString(),
  }));
  if (json) writeJson(clients);
  else
    writeLine(
      textTable(
        ["PROVIDER", "CLIENT ID", "SECRET", "SCOPE", "PARAMETERS", "REFUSED SINCE"],
        clients.map((client) => [
          client.provider,
          client.clientId,
          client.hasSecret ? "yes" : "no",
          client.scope || "default",
          parametersText(client.originParameters),
          client.refusedSince ?? "no",
        ]),
      ),
    );
}

function parametersText(parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "any" : pairs.join(", ");
}

async function findClients({ store }: OpenStore, publicKey: string): Promise<StoredOAuthClient[]> {
  const application = await store.applications.findByPublicKey(publicKey);
  if (application === undefined) throw noApplication();
  return store.oauthClients.list(application.id);
}
