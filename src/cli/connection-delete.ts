import type { Command } from "commander";
import { addCommand } from "./command.js";
import { type ConnectionOptions, connectionKeyFrom, noConnection } from "./connection-key.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay connection delete` */
export function addConnectionDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete one connection and its tokens here. The provider is not told; revoke the access there as well.",
    examples: ["relay connection delete --app PUBLIC_KEY --user ada --provider github"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--user <id>", "the application's id of its user")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .action(deleteConnection);
}

async function deleteConnection(options: ConnectionOptions): Promise<void> {
  const key = await withStore(async (open) => {
    const named = await connectionKeyFrom(open, options);
    return (await open.store.connections.delete(named, Date.now())) ? named : undefined;
  });
  if (key === undefined) throw noConnection();
  if (options.json) writeJson({ user: key.userId, provider: key.providerName, deleted: true });
  else writeLine("Deleted the connection.");
}
