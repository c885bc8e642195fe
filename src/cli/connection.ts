import { type Command, Option } from "commander";
import { auditAction, userResource } from "../admin/administration.js";
import type { NamedConnection, ToldRevocation } from "../admin/connections.js";
import { type Config, publicUrlFrom } from "../config/config.js";
import type { ConnectLink } from "../oauth/connect-session.js";
import type { Connection } from "../oauth/connection.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { activeApplicationOf, applicationOf, requireIds } from "./application.js";
import {
  addCommand,
  addGroup,
  collect,
  failure,
  textTable,
  usageError,
  wholeNumber,
  writeJson,
  writeLine,
  writeNote,
  writeResult,
} from "./command.js";
import {
  type ConnectionOptions,
  connectionKeyFrom,
  jsonFromAttempt,
  jsonFromConnection,
  noConnection,
  originParametersFrom,
  parsePairs,
  textFromAttempts,
  textFromConnection,
  withRefresher,
  withWayOut,
} from "./connection-key.js";
import { addConnectionExport, addConnectionImport, addConnectionPut } from "./connection-tokens.js";
import { administrationOf, loadCatalog, type OpenStore, requireProvider, withStore } from "./open-store.js";

/** `relay connection`: users' accounts at providers. */
export function addConnection(program: Command): void {
  addGroup(program, {
    usage: "connection",
    about: "Manage connections: the accounts of an application's users at providers. Tokens are never printed.",
    examples: ["relay connection list --app PUBLIC_KEY"],
    commands: [
      ...[addConnectionLink, addConnectionPut, addConnectionImport, addConnectionExport],
      ...[addConnectionList, addConnectionShow, addConnectionRefresh, addConnectionDelete],
    ],
  });
}

interface ListOptions {
  readonly app: string;
  readonly user?: string;
  readonly limit: number;
  readonly json?: boolean;
}

function addConnectionList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List an application's connections by user and provider. Tokens are never printed.",
    examples: ["relay connection list --app PUBLIC_KEY", "relay connection list --app PUBLIC_KEY --user ada --json"],
    names: ["app"],
  })
    .option("--user <id>", "only this user's")
    .option("--limit <count>", "at most this many", wholeNumber(1, 1_000_000), 1000)
    .action(listConnections);
}

async function listConnections(options: ListOptions): Promise<void> {
  const found = await withStore((open) => findConnections(open, options));
  const connections = found.slice(0, options.limit).map(jsonFromConnection);
  const rows = connections.map((each) => [each.user, each.provider, each.state, each.expiresAt ?? "unknown"]);
  writeResult(options, connections, textTable(["USER", "PROVIDER", "STATE", "TOKEN EXPIRES"], rows));
  if (found.length > options.limit) writeNote(`There are more than ${options.limit}; see them with --user or --limit.`);
}

/** Reads one more than requested, to see whether there are more. */
async function findConnections({ store }: OpenStore, { app, user, limit }: ListOptions): Promise<Connection[]> {
  const application = await applicationOf(store, app);
  const filter = { applicationId: application.id, limit: limit + 1, ...(user === undefined ? {} : { userId: user }) };
  return store.connections.list(filter);
}

function addConnectionShow(group: Command): void {
  addCommand(group, {
    usage: "show",
    about: "Show one connection. Its tokens are never printed.",
    examples: ["relay connection show --app PUBLIC_KEY --user ada --provider github"],
    names: ["app", "user", "provider"],
  }).action(showConnection);
}

async function showConnection(options: ConnectionOptions): Promise<void> {
  const { connection, attempts } = await withStore(async (open) => {
    const key = await connectionKeyFrom(open, options);
    const { connections } = open.store;
    return { connection: await connections.find(key), attempts: await connections.refreshesOf(key) };
  });
  if (connection === undefined) throw noConnection();
  const lastRefreshes = attempts.map(jsonFromAttempt);
  const text = [textFromConnection(connection), ...textFromAttempts(lastRefreshes)].join("\n");
  writeResult(options, { ...jsonFromConnection(connection), lastRefreshes }, text);
}

function addConnectionRefresh(group: Command): void {
  addCommand(group, {
    usage: "refresh",
    about: "Get a new access token for one connection now, whether or not it is due.",
    examples: ["relay connection refresh --app PUBLIC_KEY --user ada --provider github"],
    more: "Tries at once, even before the next scheduled attempt. Exit code 1 if there is no new token.",
    names: ["app", "user", "provider"],
  }).action(refreshNamed);
}

async function refreshNamed(options: ConnectionOptions): Promise<void> {
  const refreshed = await withStore(async (open) => {
    const key = await connectionKeyFrom(open, options);
    const { refreshNow } = await import("../admin/connections.js");
    return withRefresher(open, (refresher) => refreshNow(administrationOf(open), { refresher }, key));
  });
  if (refreshed === undefined) throw noConnection();
  if ("hopeless" in refreshed) throw failure(refreshed.hopeless);
  const { connection, problem } = refreshed;
  writeResult(options, { ...jsonFromConnection(connection), problem: problem || null }, textFromConnection(connection));
  if (problem !== "") throw failure(problem);
}

interface DeleteOptions extends ConnectionOptions {
  readonly revoke: boolean;
}

const WHAT_BECAME: Readonly<Record<ToldRevocation, string>> = {
  REVOKED: "Its token is revoked at the provider.",
  NOT_SUPPORTED: "The provider cannot revoke its token; revoke access in the account at the provider.",
  FAILED: "Its token could not be revoked; revoke access in the account at the provider.",
  SKIPPED: "The provider was not notified.",
};

function addConnectionDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete one connection and its tokens, and revoke them at the provider if it supports that (RFC 7009).",
    examples: [
      "relay connection delete --app PUBLIC_KEY --user ada --provider github",
      "relay connection delete --app PUBLIC_KEY --user ada --provider github --no-revoke --json",
    ],
    more: `It is deleted here whatever the provider answers; revocation is REVOKED, NOT_SUPPORTED, FAILED or
SKIPPED.`,
    names: ["app", "user", "provider"],
  })
    .option("--no-revoke", "do not revoke the tokens at the provider")
    .action(deleteNamed);
}

async function deleteNamed(options: DeleteOptions): Promise<void> {
  const { key, revocation } = await withStore(async (open) => {
    const named = await connectionKeyFrom(open, options);
    return { key: named, revocation: await end(open, named, options) };
  });
  if (revocation === undefined) throw noConnection();
  const told = { user: key.userId, provider: key.providerName, deleted: true, revocation };
  writeResult(options, told, `Deleted the connection. ${WHAT_BECAME[revocation]}`);
}

async function end(
  open: OpenStore,
  key: NamedConnection,
  { revoke }: DeleteOptions,
): Promise<ToldRevocation | undefined> {
  const { deleteConnection } = await import("../admin/connections.js");
  const administration = administrationOf(open);
  if (!revoke) return deleteConnection(administration, key, "untold");
  return withWayOut(open, (options) => deleteConnection(administration, key, options));
}

interface LinkOptions {
  readonly app: string;
  readonly user: string;
  readonly provider?: string;
  readonly providers?: string;
  readonly redirectUri?: string;
  readonly scope?: string;
  readonly param?: readonly string[];
  readonly authorizationParam?: readonly string[];
  readonly json?: boolean;
}

const PROVIDERS_HELP = "providers that the page lists, separated by ','; by default all of the application's";

function addConnectionLink(group: Command): void {
  addCommand(group, {
    usage: "link",
    about: "Create a one-time link with which a user connects accounts in a browser.",
    examples: [
      "relay connection link --app PUBLIC_KEY --user ada --provider github",
      "relay connection link --app PUBLIC_KEY --user ada --providers github,slack --redirect-uri https://app.example.com/connected",
    ],
    more: `Without --provider the link opens a page that lists the providers for which the application has a client.
It starts with RELAY_PUBLIC_URL; if that is not set, with the address in RELAY_LISTEN.
Whoever opens it first connects their own account for this user, so give it to nobody else.`,
    names: ["app", "user"],
  })
    .option("--provider <name>", "the one provider to connect, by name or alias")
    .addOption(new Option("--providers <names>", PROVIDERS_HELP).conflicts("provider"))
    .option("--redirect-uri <uri>", "where the browser goes afterwards, from the application's list")
    .option("--scope <scope>", "scope to request instead of the client's, as the provider writes it")
    .option("--param <name=value>", "value stored with the connection; repeatable", collect)
    .option("--authorization-param <name=value>", "parameter of the authorization request; repeatable", collect)
    .action(link);
}

async function link(options: LinkOptions): Promise<void> {
  requireIds(options);
  requireFit(options);
  const { uri, expiresAt } = await withStore((open) => createLink(open, options));
  const expireTime = new Date(expiresAt).toISOString();
  if (options.json) return writeJson({ connectUri: uri, expireTime });
  writeLine(uri);
  writeNote(`Valid once, in one browser, until ${expireTime}.`);
}

function requireFit({ provider, param, authorizationParam }: LinkOptions): void {
  if (param !== undefined && provider === undefined)
    throw usageError("--param belongs to one provider; give --provider.");
  if (authorizationParam !== undefined && provider === undefined)
    throw usageError("--authorization-param belongs to one provider; give --provider.");
}

async function createLink(open: OpenStore, options: LinkOptions): Promise<ConnectLink> {
  const { config, store, sealer } = open;
  const [{ createTickets }, { createConnectLink }] = await Promise.all([
    import("../oauth/tickets.js"),
    import("../oauth/connect-session.js"),
  ]);
  const publicUrl = requirePublicUrl(config);
  const catalog = await loadCatalog(config);
  const providers = (options.providers ?? "").split(",").flatMap((name) => name.trim() || []);
  const named = options.provider === undefined ? providers : [options.provider];
  for (const name of named) requireProvider(catalog, name);
  const application = await activeApplicationOf(store, options.app);
  const tickets = createTickets({ store: store.tickets, sealer, now: Date.now });
  const link = await createConnectLink(
    { ...store, catalog, tickets, publicUrl: () => publicUrl, now: Date.now },
    {
      application,
      userId: options.user,
      providerName: options.provider ?? "",
      providers,
      redirectUri: options.redirectUri,
      scope: options.scope,
      originParameters: originParametersOf(catalog, options),
      authorizationParameters: Object.fromEntries(
        parsePairs("--authorization-param", options.authorizationParam ?? []),
      ),
    },
  );
  const resource = userResource(application.publicKey, options.user);
  await auditAction(administrationOf(open), "ConnectionService.CreateConnectLink", resource);
  return link;
}

function originParametersOf(catalog: ProviderCatalog, { provider: name = "", param }: LinkOptions) {
  const provider = catalog.find(name);
  return new Map(param && provider ? Object.entries(originParametersFrom(param, provider, "asked")) : []);
}

/** Throws without a public url. A port chosen by the system is known only to the running service. */
function requirePublicUrl(config: Config): string {
  const publicUrl =
    config.publicUrl === undefined && config.listen.port === 0 ? undefined : publicUrlFrom(config, config.listen);
  if (publicUrl !== undefined) return publicUrl;
  throw usageError("RELAY_PUBLIC_URL: must be the address at which browsers reach the relay.");
}
