import type { Command } from "commander";
import type { Application } from "../applications/application.js";
import { requireCallerIds } from "../applications/caller.js";
import type { Config } from "../config/config.js";
import { publicUrlFrom } from "../config/public-url.js";
import { type ConnectLink, createConnectLink } from "../oauth/connect-link.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { noApplication } from "./application.js";
import { addCommand, collect, failure, usageError } from "./command.js";
import { loadCatalog, type OpenStore, requireProvider, withStore } from "./open-store.js";
import { originParametersFrom } from "./origin-parameters.js";
import { writeJson, writeLine, writeNote } from "./output.js";

interface LinkOptions {
  readonly app: string;
  readonly user: string;
  readonly provider?: string;
  readonly providers?: string;
  readonly redirectUri?: string;
  readonly scope?: string;
  readonly param?: readonly string[];
  readonly json?: boolean;
}

/** `relay connection link` */
export function addConnectionLink(group: Command): void {
  addCommand(group, {
    usage: "link",
    about: "Make an address at which one browser, once, may connect accounts for a user.",
    examples: [
      "relay connection link --app PUBLIC_KEY --user ada --provider github",
      "relay connection link --app PUBLIC_KEY --user ada --providers github,slack --redirect-uri https://app.example.com/connected",
    ],
    more: `Without --provider the address opens a page of the providers that the application has clients for.
It begins with RELAY_PUBLIC_URL; without that, with the address that the service listens on by RELAY_LISTEN.
Whoever opens it first connects an account of theirs for the user: hand it to nobody else.`,
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .requiredOption("--user <id>", "the application's id of its user; calls must name it exactly so")
    .option("--provider <name>", "the one provider to connect, by name or alias")
    .option("--providers <names>", "those that the page lists, separated by ','; all of the application's by default")
    .option("--redirect-uri <uri>", "where the browser goes afterwards, from the application's list")
    .option("--scope <scope>", "scope to ask for instead of the client's, as the provider writes it")
    .option("--param <name=value>", "parameter of the provider's origin; may stand several times", collect)
    .action(link);
}

async function link(options: LinkOptions): Promise<void> {
  requireFit(options);
  const { uri, expiresAt } = await withStore((open) => createLink(open, options));
  const expireTime = new Date(expiresAt).toISOString();
  if (options.json) return writeJson({ connectUri: uri, expireTime });
  writeLine(uri);
  writeNote(`For one browser, once, until ${expireTime}.`);
}

function requireFit({ app, user, provider, providers, param }: LinkOptions): void {
  try {
    requireCallerIds({ publicKey: app, userId: user });
  } catch (error) {
    throw usageError((error as Error).message, error);
  }
  if (provider !== undefined && providers !== undefined) throw usageError("Give --provider or --providers, not both.");
  if (param !== undefined && provider === undefined) throw usageError("--param is of one provider; give --provider.");
}

async function createLink({ config, store, sealer }: OpenStore, options: LinkOptions): Promise<ConnectLink> {
  const { createTickets } = await import("../oauth/tickets.js");
  const publicUrl = requirePublicUrl(config);
  const catalog = await loadCatalog(config);
  const providers = (options.providers ?? "").split(",").flatMap((name) => name.trim() || []);
  const named = options.provider === undefined ? providers : [options.provider];
  for (const name of named) requireProvider(catalog, name);
  const application = activeApplication(await store.applications.findByPublicKey(options.app));
  const tickets = createTickets({ store: store.tickets, sealer, now: Date.now });
  return createConnectLink(
    { ...store, catalog, tickets, publicUrl: () => publicUrl, now: Date.now },
    {
      application,
      userId: options.user,
      providerName: options.provider ?? "",
      providers,
      redirectUri: options.redirectUri,
      scope: options.scope,
      originParameters: originParametersOf(catalog, options),
    },
  );
}

function originParametersOf(catalog: ProviderCatalog, { provider: name = "", param }: LinkOptions) {
  const provider = catalog.find(name);
  return new Map(param && provider ? Object.entries(originParametersFrom(param, provider)) : []);
}

/** A port that the system chooses is known to the running service only. */
function requirePublicUrl(config: Config): string {
  const publicUrl =
    config.publicUrl === undefined && config.listen.port === 0 ? undefined : publicUrlFrom(config, config.listen);
  if (publicUrl !== undefined) return publicUrl;
  throw usageError("RELAY_PUBLIC_URL: must be the address at which browsers reach the relay.");
}

function activeApplication(application: Application | undefined): Application {
  if (application === undefined) throw noApplication();
  if (application.state === "ACTIVE") return application;
  throw failure("This application is disabled. 'relay app update --enable' takes its calls again.");
}
