import { type Command, InvalidArgumentError } from "commander";
import { parseInteger } from "../config/settings.js";
import type { Connection } from "../oauth/connection.js";
import { noApplication } from "./application.js";
import { addCommand, addGroup } from "./command.js";
import { addConnectionDelete } from "./connection-delete.js";
import {
  type ConnectionOptions,
  connectionKeyFrom,
  jsonFromConnection,
  noConnection,
  textFromConnection,
} from "./connection-key.js";
import { addConnectionLink } from "./connection-link.js";
import { addConnectionPut } from "./connection-put.js";
import { type OpenStore, withStore } from "./open-store.js";
import { textTable, writeJson, writeLine, writeNote } from "./output.js";

/** `relay connection`: users' accounts at providers. */
export function addConnection(program: Command): void {
  const group = addGroup(program, {
    usage: "connection",
    about: "Manage connections: the accounts of an application's users at providers. Tokens are never printed.",
    examples: ["relay connection list --app PUBLIC_KEY"],
  });
  for (const add of [addConnectionLink, addConnectionPut, addConnectionList, addConnectionShow, addConnectionDelete])
    add(group);
}

interface ListOptions {
  readonly app: string;
  readonly user?: string;
  readonly limit: number;
  readonly json?: boolean;
}

/** `relay connection list` */
function addConnectionList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List an application's connections by user and provider. Tokens are never printed.",
    examples: ["relay connection list --app PUBLIC_KEY", "relay connection list --app PUBLIC_KEY --user ada --json"],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .option("--user <id>", "only this user's")
    .option("--limit <count>", "at most this many", parseLimit, 1000)
    .action(listConnections);
}

async function listConnections(options: ListOptions): Promise<void> {
  const found = await withStore((open) => findConnections(open, options));
  const connections = found.slice(0, options.limit).map(jsonFromConnection);
  if (options.json) writeJson(connections);
  else {
    const rows = connections.map((each) => [each.user, each.provider, each.state, each.expiresAt ?? "unknown"]);
    writeLine(textTable(["USER", "PROVIDER", "STATE", "TOKEN EXPIRES"], rows));
  }
  if (found.length > options.limit) writeNote(`There are more than ${options.limit}; see them with --user or --limit.`);
}

/** One more than asked for tells whether there are more. */
async function findConnections({ store }: OpenStore, { app, user, limit }: ListOptions): Promise<Connection[]> {
  const application = await store.applications.findByPublicKey(app);
  if (application === undefined) throw noApplication();
  const filter = { applicationId: application.id, limit: limit + 1, ...(user === undefined ? {} : { userId: user }) };
  return store.connections.list(filter);
}

function parseLimit(text: string): number {
  const limit = parseInteger(text, 1, 1_000_000);
  if (limit === undefined) throw new InvalidArgumentError("It must be a whole number from 1 to 1000000.");
  return limit;
}

/** `relay connection show` */
function addConnectionShow(group: Command): void {
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
