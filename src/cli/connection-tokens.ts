import { once } from "node:events";
import type { Command } from "commander";
import { auditAction } from "../admin/administration.js";
import type { ImportCounts } from "../admin/import-connections.js";
import type { Connection } from "../oauth/connection.js";
import { isBareKey } from "../oauth/signing-key.js";
import { KEY_VALUES, type Provider } from "../providers/provider.js";
import { applicationOf, requireIds } from "./application.js";
import {
  addCommand,
  collect,
  failure,
  goOnWithoutOutput,
  readStandardInput,
  standardInput,
  usageError,
  withProgress,
  writeJson,
  writeJsonText,
  writeLine,
  writeNote,
  writeResult,
} from "./command.js";
import { type ConnectionOptions, jsonFromConnection, parsePairs, textFromConnection } from "./connection-key.js";
import { administrationOf, loadCatalog, loadSealer, type OpenStore, requireProvider, withStore } from "./open-store.js";

/** Four times the longest tokens together. */
const MAX_TOKEN_RESPONSE_BYTES = 64 * 1024;

interface PutOptions extends ConnectionOptions {
  readonly param?: readonly string[];
}

/** `relay connection put` */
export function addConnectionPut(group: Command): void {
  addCommand(group, {
    usage: "put",
    about: "Store a user's tokens or keys, sealed. Replaces those of an existing connection.",
    examples: [
      "relay connection put --app PUBLIC_KEY --user ada --provider github < token-response.json",
      "relay connection put --app PUBLIC_KEY --user ada --provider sendgrid < api-key.json",
      "relay connection put --app PUBLIC_KEY --user ada --provider googleserviceaccount < service-account.json",
    ],
    more: `Standard input contains the provider's token response (RFC 6749 section 5.1) as JSON: access_token and, if
the provider sent them, refresh_token, expires_in, scope, token_type and id_token. For providers of other kinds than
oauth2 it contains the secret values that 'relay provider show' names, such as {"api_key":"…"}, {"client_secret":"…"}
or {"oauth_token":"…","oauth_token_secret":"…"}; {} for none. For the kind jwt_bearer it may be the private key itself,
in PEM, or the JSON file in which the provider issued it. None of them is an argument, because arguments appear in the
shell's history and in the list of processes.`,
    names: ["app", "user", "provider"],
  })
    .option(
      "--param <name=value>",
      "value stored with the connection, such as a parameter of the provider's origin; repeatable",
      collect,
    )
    .action(put);
}

async function put(options: PutOptions): Promise<void> {
  requireIds(options);
  if (process.stdin.isTTY) writeNote("Paste the token response, or the keys as JSON, then press Ctrl-D.");
  const input = (await readStandardInput(MAX_TOKEN_RESPONSE_BYTES)).toString();
  const connection = await withStore((open) => putNamed(open, options, input));
  writeResult(options, jsonFromConnection(connection), textFromConnection(connection));
}

async function putNamed(open: OpenStore, options: PutOptions, input: string): Promise<Connection> {
  const { contentFrom, findClientProblem, putConnection } = await import("../admin/connections.js");
  const provider = requireProvider(await loadCatalog(open.config), options.provider);
  const { param = [], user: userId } = options;
  const secrets = provider.kind === "oauth2" ? new Map() : secretsFrom(input, provider);
  const content = contentFrom({ tokenResponse: input, secrets, open: parsePairs("--param", param) }, provider);
  if ("problem" in content) {
    const named = content.part === "parameters" ? `--param ${content.parameter}` : content.parameter;
    throw usageError(named === "" ? content.problem : `${named}: ${content.problem}.`);
  }
  const application = await applicationOf(open.store, options.app);
  const made = { application, userId, provider, ...content };
  const problem = await findClientProblem(open.store, made);
  if (problem !== undefined) throw usageError(`${problem.parameter} ${problem.problem}.`);
  return putConnection(administrationOf(open), made);
}

/** Parses a JSON object of texts, or takes a bare signing key. Throws a usage error that never contains a value. */
function secretsFrom(text: string, provider: Provider): ReadonlyMap<string, string> {
  if (isBareKey(text, provider)) return new Map([[KEY_VALUES.key, text]]);
  try {
    const members = Object.entries(JSON.parse(text) as object);
    if (members.every(([, value]) => typeof value === "string")) return new Map(members);
  } catch {
    // Reported below. The parser's message would quote the text.
  }
  throw usageError('Standard input must be a JSON object of strings, such as {"api_key":"…"}.');
}

interface ImportCommandOptions {
  readonly app?: string;
  readonly key?: string;
  readonly json?: boolean;
}

/** `relay connection import` */
export function addConnectionImport(group: Command): void {
  addCommand(group, {
    usage: "import",
    about: "Import connections from standard input, one JSON object per line. Refused lines are listed by number.",
    examples: [
      "relay connection import --app PUBLIC_KEY < connections.jsonl",
      "relay connection import --key transfer.key < sealed.jsonl",
    ],
    more: `A line: {"application":"PUBLIC_KEY","user":"ada","provider":"github","token":{"access_token":"…"}}. token is a token
response (RFC 6749 section 5.1); for providers of other kinds than oauth2 use secrets instead, with the values that 'relay
provider show' names: "secrets":{"api_key":"…"}. parameters has the values stored with the connection, and obtained_at the
time from which expires_in counts, such as "2026-01-31T12:00:00Z"; by default it counts from now.
An existing connection is replaced only by a line with a later obtained_at, so the same lines can be imported again after
an interruption. Lines from 'relay connection export' are opened with the keys in --key, by default with those in the
relay's key file. Exit code 1 if any line was refused.`,
  })
    .option("--app <public-key>", "application for lines that do not name one")
    .option("--key <file>", "key file with which exported lines are sealed; by default the relay's own")
    .action(importAll);
}

async function importAll(options: ImportCommandOptions): Promise<void> {
  if (process.stdin.isTTY) writeNote("Paste the lines, then press Ctrl-D.");
  goOnWithoutOutput();
  const counts = await withStore((open) => importInto(open, options));
  const { stored, kept, refused } = counts;
  writeResult(options, counts, `${stored} stored, ${kept} existing ones kept, ${refused} refused.`);
  if (refused > 0) throw failure("");
}

async function importInto(open: OpenStore, { app, key, json }: ImportCommandOptions): Promise<ImportCounts> {
  const { importConnections, linesOf, MAX_LINE_BYTES } = await import("../admin/import-connections.js");
  if (app !== undefined) await applicationOf(open.store, app);
  const options = {
    administration: administrationOf(open),
    catalog: await loadCatalog(open.config),
    publicKey: app,
    opener: key === undefined ? open.sealer : await loadSealer(key, true),
    onRefused: (line: number, reason: string) =>
      json ? writeJson({ line, reason }) : writeLine(`line ${line}: ${reason}.`),
  };
  return withProgress("", (show) => {
    const onProgress = ({ stored, kept, refused }: ImportCounts) => show(`${stored + kept + refused} lines`);
    return importConnections({ ...options, onProgress }, linesOf(standardInput(), MAX_LINE_BYTES));
  });
}

interface ExportCommandOptions {
  readonly sealed: string;
  readonly app?: string;
  readonly user?: string;
  readonly provider?: string;
}

/** `relay connection export` */
export function addConnectionExport(group: Command): void {
  addCommand(group, {
    usage: "export",
    about: "Export connections for another relay, one per line, with their tokens sealed with a key of that relay.",
    examples: [
      "relay connection export --sealed transfer.key > sealed.jsonl",
      "relay connection export --sealed transfer.key --app PUBLIC_KEY --provider github > sealed.jsonl",
    ],
    more: `Create the key file where the lines are imported ('relay key create transfer.key') and copy it here; delete it
afterwards in both places. A line names its connection in plain text and opens only for that one: an altered line is
refused. Connections that have ended are left out. Afterwards call only one of the two relays: providers that rotate
refresh tokens treat a second refresh as theft.`,
  })
    .requiredOption("--sealed <key-file>", "key file of the other relay; lines are sealed with its first key")
    .option("--app <public-key>", "only this application's")
    .option("--user <id>", "only this user's; needs --app")
    .option("--provider <name>", "only those at this provider")
    .action((options: ExportCommandOptions) => exportAll(options));
}

async function exportAll(options: ExportCommandOptions): Promise<void> {
  if (options.user !== undefined && options.app === undefined)
    throw usageError("--user needs --app, because user ids belong to an application.");
  const leftOut = await withStore((open) => exportFrom(open, options));
  if (leftOut > 0)
    writeNote(
      `Left out because they have ended, match no definition or cannot be opened: ${leftOut}. Their users must connect again.`,
    );
}

async function exportFrom(
  open: OpenStore,
  { sealed, app, user: userId, provider }: ExportCommandOptions,
): Promise<number> {
  const sealerOfTarget = await loadSealer(sealed, true);
  const { exportConnections } = await import("../admin/export-connections.js");
  const { store, sealer } = open;
  const catalog = await loadCatalog(open.config);
  const applicationId = app === undefined ? undefined : (await applicationOf(store, app)).id;
  const providerName = provider === undefined ? undefined : requireProvider(catalog, provider).name;
  const resource = { name: "connections", publicKey: app ?? "" };
  await auditAction(administrationOf(open), "relay connection export", resource);
  const pages = exportConnections({ store, catalog, sealer, sealerOfTarget, applicationId, userId, providerName });
  return withProgress("", async (show) => {
    let [written, leftOut] = [0, 0];
    for await (const page of pages) {
      for (const line of page.lines) writeJsonText(JSON.stringify(line));
      if (process.stdout.writableNeedDrain) await once(process.stdout, "drain");
      written += page.lines.length;
      leftOut += page.leftOut;
      show(`${written} connections`);
    }
    return leftOut;
  });
}
