import type { Command } from "commander";
import type { DeleteConnectionInput, ToldRevocation } from "../admin/connections.js";
import { addCommand } from "./command.js";
import { type ConnectionOptions, connectionKeyFrom, noConnection } from "./connection-key.js";
import { administrationOf, type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { withWayOut } from "./way-out.js";

interface DeleteOptions extends ConnectionOptions {
  readonly revoke: boolean;
}

const WHAT_BECAME: Readonly<Record<ToldRevocation, string>> = {
  REVOKED: "Its token is revoked at the provider.",
  NOT_SUPPORTED: "The provider has no way to revoke its token; end the access in the account there.",
  FAILED: "Its token could not be revoked at the provider; end the access in the account there.",
  SKIPPED: "The provider was not told.",
};

/** `relay connection delete` */
export function addConnectionDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete one connection and its tokens here, and revoke them at a provider that can (RFC 7009).",
    examples: [
      "relay connection delete --app PUBLIC_KEY --user ada --provider github",
      "relay connection delete --app PUBLIC_KEY --user ada --provider github --no-revoke --json",
    ],
    more: `It is deleted here whatever the provider answers; revocation is REVOKED, NOT_SUPPORTED, FAILED or
SKIPPED.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--user <id>", "the application's id of its user")
    .requiredOption("--provider <name>", "the provider's name or alias")
    .option("--no-revoke", "do not tell the provider")
    .action(deleteNamed);
}

async function deleteNamed(options: DeleteOptions): Promise<void> {
  const { key, revocation } = await withStore(async (open) => {
    const named = await connectionKeyFrom(open, options);
    return { key: named, revocation: await end(open, named, options) };
  });
  if (revocation === undefined) throw noConnection();
  if (options.json) writeJson({ user: key.userId, provider: key.providerName, deleted: true, revocation });
  else writeLine(`Deleted the connection. ${WHAT_BECAME[revocation]}`);
}

async function end(
  open: OpenStore,
  key: DeleteConnectionInput,
  { revoke }: DeleteOptions,
): Promise<ToldRevocation | undefined> {
  const { deleteConnection } = await import("../admin/connections.js");
  const administration = administrationOf(open);
  if (!revoke) return deleteConnection(administration, key, "untold");
  return withWayOut(open, (options) => deleteConnection(administration, key, options));
}
