import type { Command } from "commander";
import type { OAuthClientFields, OAuthClientKey } from "../admin/oauth-client-service.js";
import { parseJson } from "../lib/parse-json.js";
import { didYouMean } from "../lib/similar.js";
import type { Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import { applicationOf } from "./application.js";
import {
  addCommand,
  addGroup,
  collect,
  failure,
  readStandardInput,
  textTable,
  usageError,
  writeNote,
  writeResult,
} from "./command.js";
import { originParametersFrom } from "./connection-key.js";
import { administrationOf, loadCatalog, type OpenStore, requireProvider, withStore } from "./open-store.js";

/** `relay client`: an application's OAuth clients, which refresh its users' tokens. */
export function addClient(program: Command): void {
  addGroup(program, {
    usage: "client",
    about:
      "Manage an application's OAuth clients at providers, which refresh its users' tokens. Secrets are never printed.",
    examples: ["relay client list --app PUBLIC_KEY"],
    commands: [addClientPut, addClientList, addClientDelete],
  });
}

interface ListOptions {
  readonly app: string;
  readonly json?: boolean;
}

function addClientList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List an application's OAuth clients. Secrets are never printed.",
    examples: ["relay client list --app PUBLIC_KEY --json"],
    names: ["app"],
  }).action(list);
}

async function list({ app, ...options }: ListOptions): Promise<void> {
  const stored = await withStore(async ({ store }) => store.oauthClients.list((await applicationOf(store, app)).id));
  const clients = stored.map((client) => ({
    provider: client.providerName,
    clientId: client.clientId,
    scope: client.scope,
    originParameters: client.originParameters,
    hasSecret: client.clientSecret !== undefined,
    updatedAt: new Date(client.updatedAt).toISOString(),
    refusedSince: client.refusedSince === undefined ? null : new Date(client.refusedSince).toISOString(),
  }));
  const rows = clients.map((client) => [
    ...[client.provider, client.clientId, client.hasSecret ? "yes" : "no", client.scope || "default"],
    ...[parametersText(client.originParameters), client.refusedSince ?? "no"],
  ]);
  const heads = ["PROVIDER", "CLIENT ID", "SECRET", "SCOPE", "PARAMETERS", "REFUSED SINCE"];
  writeResult(options, clients, textTable(heads, rows));
}

function parametersText(parameters: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(parameters).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "any" : pairs.join(", ");
}

const MAX_BYTES = 64 * 1024;

interface PutOptions extends ClientOptions {
  readonly param?: readonly string[];
}

const MEMBERS = ["client_id", "client_secret", "scope"];

type Credentials = Omit<OAuthClientFields, "originParameters">;

function addClientPut(group: Command): void {
  addCommand(group, {
    usage: "put",
    about: "Store an application's OAuth client at a provider, its secret sealed. Replaces an existing one.",
    examples: ["relay client put --app PUBLIC_KEY --provider github < client.json"],
    more: `Standard input contains {"client_id": "…", "client_secret": "…"}; a public client has no
client_secret. The secret is not an argument, because arguments appear in the shell's history. An
optional member "scope" sets the scope to request instead of the definition's default.`,
    names: ["app", "provider"],
  })
    .option(
      "--param <name=value>",
      "parameter of the provider's origin, such as subdomain=acme, if the client is only for that value; repeatable",
      collect,
    )
    .action(put);
}

async function put(options: PutOptions): Promise<void> {
  if (process.stdin.isTTY) writeNote("Paste the client as JSON, then press Ctrl-D.");
  const credentials = credentialsFrom((await readStandardInput(MAX_BYTES)).toString());
  const provider = await withStore((open) => putNamed(open, options, credentials));
  const { clientId } = credentials;
  writeResult(options, { provider, clientId }, `Stored the client ${clientId} for ${provider}.`);
}

async function putNamed(open: OpenStore, options: PutOptions, credentials: Credentials): Promise<string> {
  const { oauthClientProblem, putOAuthClient } = await import("../admin/oauth-client-service.js");
  const key = await clientKeyFrom(open, options);
  const problem = oauthClientProblem(key.provider);
  if (problem !== undefined) throw failure(`${key.providerName} ${problem}.`);
  const originParameters = options.param === undefined ? {} : originParametersFrom(options.param, key.provider, "open");
  await putOAuthClient(administrationOf(open), key, { ...credentials, originParameters });
  return key.providerName;
}

function credentialsFrom(text: string): Credentials {
  const members = membersFrom(text);
  const { client_id: clientId, client_secret: clientSecret, scope = "" } = members;
  for (const name of Object.keys(members).filter((each) => !MEMBERS.includes(each))) {
    const meant = didYouMean(name, MEMBERS);
    if (meant !== "") throw usageError(`${name} is not a member of a client${meant}`);
  }
  if (typeof scope !== "string" || !/^[\x20-\x7e]{0,4096}$/.test(scope)) {
    throw usageError("scope must be a string of printable ASCII.");
  }
  if (!isCredential(clientId)) throw usageError("client_id must be a string of printable ASCII.");
  if (clientSecret === undefined || clientSecret === null || clientSecret === "") {
    return { clientId, clientSecret: undefined, scope };
  }
  if (!isCredential(clientSecret)) throw usageError("client_secret must be a string of printable ASCII.");
  return { clientId, clientSecret: new Secret(clientSecret), scope };
}

/** Parses a JSON object. */
function membersFrom(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null) return { ...value };
  throw usageError('Standard input must be JSON: {"client_id": "…", "client_secret": "…"}.');
}

/** VSCHAR of RFC 6749 appendix A.1 and A.2. */
function isCredential(value: unknown): value is string {
  return typeof value === "string" && /^[\x20-\x7e]{1,4096}$/.test(value);
}

function addClientDelete(group: Command): void {
  addCommand(group, {
    usage: "delete",
    about: "Delete an application's OAuth client. Its users' tokens can then no longer be refreshed.",
    examples: ["relay client delete --app PUBLIC_KEY --provider github"],
    names: ["app", "provider"],
  }).action(deleteClient);
}

async function deleteClient(options: ClientOptions): Promise<void> {
  const deleted = await withStore(async (open) => {
    const { deleteOAuthClient } = await import("../admin/oauth-client-service.js");
    const key = await clientKeyFrom(open, options);
    return (await deleteOAuthClient(administrationOf(open), key)) ? key : undefined;
  });
  if (deleted === undefined) throw failure("The application has no OAuth client at this provider.");
  writeResult(options, { provider: deleted.providerName, deleted: true }, "Deleted the client.");
}

/** Options that name a client. */
interface ClientOptions {
  readonly app: string;
  readonly provider: string;
  readonly json?: boolean;
}

/** Finds the application and the provider that the options name. */
async function clientKeyFrom(
  { store, config }: OpenStore,
  { app, provider: name }: ClientOptions,
): Promise<OAuthClientKey & { readonly provider: Provider }> {
  const provider = requireProvider(await loadCatalog(config), name);
  const application = await applicationOf(store, app);
  return { provider, application, providerName: provider.name };
}
