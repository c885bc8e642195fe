import { type Command, Option } from "commander";
import { definitionFromProvider, originTextsOf } from "../providers/definition-from-provider.js";
import {
  CONNECTION_KINDS,
  type ConnectionKind,
  isProviderName,
  type Lacks,
  lacksOf,
  type Provider,
  type ProviderProblem,
  textFromProblem,
} from "../providers/provider.js";
import {
  addCommand,
  addGroup,
  failure,
  readInputFile,
  textFields,
  textTable,
  writeJson,
  writeLine,
  writeResult,
} from "./command.js";
import { configFromEnvironment, definitionProblems, loadCatalog, requireProvider } from "./open-store.js";

/** `relay provider`: the definitions, shipped and the operator's. */
export function addProvider(program: Command): void {
  addGroup(program, {
    usage: "provider",
    about: "Show provider definitions: those that ship with the relay, and those in RELAY_PROVIDERS.",
    examples: ["relay provider list --search google", "relay provider check my-provider.json"],
    commands: [addProviderList, addProviderShow, addProviderCheck],
  });
}

function addProviderList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the providers that calls can use.",
    examples: ["relay provider list", "relay provider list --search zoho", "relay provider list --kind api_key"],
  })
    .option(
      "--search <text>",
      "only providers with this text in a name, an alias or an API origin; case does not matter",
    )
    .addOption(new Option("--kind <kind>", "only providers of this kind").choices(CONNECTION_KINDS))
    .action(listProviders);
}

interface ListOptions {
  readonly search?: string;
  readonly kind?: ConnectionKind;
  readonly json?: boolean;
}

async function listProviders(options: ListOptions): Promise<void> {
  const wanted = (options.search ?? "").toLowerCase();
  const all = await (await loadCatalog(configFromEnvironment())).list();
  const ofKind = all.filter(({ kind }) => options.kind === undefined || kind === options.kind);
  const providers = ofKind.filter((provider) => isAbout(provider, wanted));
  providers.sort((a, b) => (a.name < b.name ? -1 : 1));
  const definitions = providers.map(definitionFromProvider);
  const rows = definitions.map((each) => [
    each.name,
    each.displayName,
    each.kind,
    each.aliases.join(", "),
    textFromOrigins(each.apiOrigins),
  ]);
  writeResult(options, definitions, textTable(["NAME", "DISPLAY NAME", "KIND", "ALIASES", "API ORIGINS"], rows));
}

/** Most origins in a line of the list; `show` prints all. */
const LISTED_ORIGINS = 3;

function textFromOrigins(origins: readonly string[]): string {
  const rest = origins.length - LISTED_ORIGINS;
  return origins.slice(0, LISTED_ORIGINS).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

function isAbout(provider: Provider, wanted: string): boolean {
  const { name, displayName, aliases } = provider;
  return [name, displayName, ...aliases, ...originTextsOf(provider)].some((text) =>
    text.toLowerCase().includes(wanted),
  );
}

function addProviderShow(group: Command): void {
  addCommand(group, {
    usage: "show <name>",
    about: "Show one provider, by name or alias. With --json, prints a definition from which to start your own.",
    examples: ["relay provider show github", "relay provider show github --json > my-github.json"],
  }).action(showProvider);
}

async function showProvider(name: string, options: { readonly json?: boolean }): Promise<void> {
  const provider = requireProvider(await loadCatalog(configFromEnvironment()), name);
  writeResult(options, definitionFromProvider(provider), textFromProvider(provider));
}

/** Largest definition: a hundred times the largest shipped one. */
const MAX_DEFINITION_BYTES = 256 * 1024;

interface CheckedProvider {
  /** The file, or the name of a provider that calls can use. */
  readonly file: string;
  readonly provider: string;
  /** What the definition lacks for each capability. */
  readonly lacks: Lacks;
  /** What the operator must give with an OAuth client: `name=VALUE` of `relay client put --param`. */
  readonly clientNeeds: readonly string[];
}

type Checked = CheckedProvider | { readonly problems: readonly ProviderProblem[] };

function addProviderCheck(group: Command): void {
  addCommand(group, {
    usage: "check <file-or-name...>",
    about:
      "Check definition files, also all of a folder, and print every problem with its file and field, and what a definition lacks.",
    examples: [
      "relay provider check my-provider.json",
      "relay provider check providers/*.json --json",
      "relay provider check github",
    ],
    more: "A definition without problems may still lack what users need to connect or the relay needs to refresh or revoke. Definitions with http or loopback origins pass only with RELAY_ALLOW_LOOPBACK=true.",
  }).action(checkDefinitions);
}

async function checkDefinitions(targets: readonly string[], options: { readonly json?: boolean }): Promise<void> {
  const config = configFromEnvironment();
  const { filesInFolder } = await import("../providers/catalog.js");
  const catalog = targets.some(isProviderName) ? await loadCatalog(config) : undefined;
  const files: string[] = [];
  const results: Checked[] = [];
  for (const target of targets) {
    const inFolder = catalog?.find(target) === undefined ? filesInFolder(target) : undefined;
    if (inFolder === undefined && catalog !== undefined && isProviderName(target)) {
      results.push(await checkedFrom(target, requireProvider(catalog, target)));
      continue;
    }
    for (const file of inFolder ?? [target]) results.push(await checkFile(file, config.allowLoopback));
    files.push(target);
  }
  const providers = results.flatMap((result) => ("provider" in result ? [result] : []));
  const problems = results.flatMap((result) => ("problems" in result ? result.problems : []));
  if (problems.length === 0 && files.length > 0)
    problems.push(...(await definitionProblems({ ...config, providers: [...config.providers, ...files] })));
  if (options.json) writeJson({ ok: problems.length === 0, providers, problems });
  else for (const checked of providers) writeLine(textFromChecked(checked));
  if (problems.length > 0) throw failure(problems.map(textFromProblem).join("\n"));
}

async function checkedFrom(file: string, provider: Provider): Promise<CheckedProvider> {
  const { unboundValuesOf } = await import("../oauth/connection-values.js");
  const clientNeeds = unboundValuesOf(provider, { clientId: "any", originParameters: {} });
  return { file, provider: provider.name, lacks: lacksOf(provider), clientNeeds };
}

function textFromChecked({ file, provider, lacks, clientNeeds }: CheckedProvider): string {
  const lines = Object.entries(lacks).map(
    ([capability, missing]) => `  ${capability}: ${missing.length === 0 ? "ok" : missing.join(", ")}`,
  );
  const needs = clientNeeds.map((pair) => `  client: needs 'relay client put --param ${pair}'`);
  return [`${file}: ok (${provider})`, ...lines, ...needs].join("\n");
}

async function checkFile(file: string, allowLoopback: boolean): Promise<Checked> {
  const { parseProvider } = await import("../providers/definition.js");
  const text = (await readInputFile(file, MAX_DEFINITION_BYTES)).toString();
  const parsed = parseProvider(text, file, { allowLoopback });
  return "problems" in parsed ? parsed : checkedFrom(file, parsed.provider);
}

/** A provider as text: the members of its definition that say something, by their paths. */
export function textFromProvider(provider: Provider): string {
  const definition = definitionFromProvider(provider);
  const { oauth2 } = definition;
  // The descriptions of scopes are long, and for the user's page.
  const shown = oauth2 && { oauth2: { ...oauth2, scopeDescriptions: Object.keys(oauth2.scopeDescriptions) } };
  return textFields(fieldsFrom({ ...definition, ...shown }, ""));
}

function fieldsFrom(value: unknown, path: string): ReadonlyArray<readonly [path: string, text: string]> {
  if (typeof value !== "object" || value === null) {
    const text = value === "" && /Parameters\./.test(path) ? "(not sent)" : value;
    return text && text !== " " ? [[path, String(text)]] : [];
  }
  if (!Array.isArray(value)) {
    return Object.entries(value).flatMap(([name, member]) =>
      fieldsFrom(member, path === "" ? name : `${path}.${name}`),
    );
  }
  if (value.every((each) => typeof each === "string")) return fieldsFrom(value.join(", "), path);
  return value.flatMap((each, at) => fieldsFrom(each, `${path}[${at}]`));
}
