import type { Command } from "commander";
import { addCommand } from "./command.js";
import { type ConnectionOptions, connectionKeyFrom, noConnection } from "./connection-key.js";
import { jsonFromConnection, textFromConnection } from "./connection-text.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay connection show` */
export function addConnectionShow(group: Command): void {
  addCommand(group, {
    usage: "show",
    about: "Show one connection. Its tokens are never printed.",
    examples: ["relay connection show --app PUBLIC_KEY --user ada --provider github"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--user <id>", "the application's id of its user")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .action(showConnection);
}

async function showConnection(options: ConnectionOptions): Promise<void> {
  const connection = await withStore(async (open) =>
    open.store.connections.find(await connectionKeyFrom(open, options)),
  );
  if (connection === undefined) throw noConnection();
  if (options.json) writeJson(jsonFromConnection(connection));
  else writeLine(textFromConnection(connection));
}
