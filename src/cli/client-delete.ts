import type { Command } from "commander";
import { deleteOAuthClient } from "../admin/delete-oauth-client.js";
import { administrationOf } from "./administration.js";
import { type ClientOptions, clientKeyFrom } from "./client-key.js";
import { addCommand } from "./command.js";
import { failure } from "./exit-error.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay client delete` */
export function addClientDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete an application's OAuth client here. Tokens that end can then no longer be renewed.",
    examples: ["relay client delete --app PUBLIC_KEY --provider github"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .action(deleteClient);
}

async function deleteClient(options: ClientOptions): Promise<void> {
  const deleted = await withStore(async (open) => {
    const key = await clientKeyFrom(open, options);
    return (await deleteOAuthClient(administrationOf(open), key)) ? key : undefined;
  });
  if (deleted === undefined) throw failure("The application has no OAuth client at this provider.");
  if (options.json) writeJson({ provider: deleted.providerName, deleted: true });
  else writeLine("Deleted the client.");
}
