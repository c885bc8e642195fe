import { once } from "node:events";
import type { Command } from "commander";
import type { ImportCounts } from "../admin/import-connections.js";
import { applicationOf } from "./application.js";
import { addCommand, failure, standardInput, writeJson, writeJsonText, writeLine, writeNote } from "./command.js";
import { administrationOf, loadCatalog, loadSealer, type OpenStore, requireProvider, withStore } from "./open-store.js";

interface ImportCommandOptions {
  readonly app?: string;
  readonly key?: string;
  readonly json?: boolean;
}

/** `relay connection import` */
export function addConnectionImport(group: Command): void {
  addCommand(group, {
    usage: "import",
    about: "Store many connections, one a line of standard input as JSON. Lines that are refused are listed by number.",
    examples: [
      "relay connection import --app PUBLIC_KEY < connections.jsonl",
      "relay connection import --key transfer.key < sealed.jsonl",
    ],
    more: `A line: {"application":"PUBLIC_KEY","user":"ada","provider":"github","token":{"access_token":"…"}}. token is a token
response (RFC 6749 section 5.1); at a provider of another kind than oauth2 secrets has the values that 'relay provider
show' names: "secrets":{"api_key":"…"}. parameters has the values that stand with the connection, and obtained_at the
time from which expires_in counts, such as "2026-01-31T12:00:00Z"; else it counts from now.
A connection that is there already is replaced only by a line with a later obtained_at, so that the same lines can be
imported again after an interruption. Lines of 'relay connection export' are opened with the keys of --key, or those of
the key file. The exit code is 1 when lines were refused.`,
  })
    .option("--app <public-key>", "the application of lines that name none")
    .option("--key <file>", "key file that exported lines are sealed with; by default the relay's own")
    .action(importAll);
}

async function importAll(options: ImportCommandOptions): Promise<void> {
  if (process.stdin.isTTY) writeNote("Paste the lines, then press Ctrl-D.");
  const counts = await withStore((open) => importInto(open, options));
  if (options.json) writeJson(counts);
  else writeLine(`${counts.stored} stored, ${counts.kept} kept that were there already, ${counts.refused} refused.`);
  if (counts.refused > 0) throw failure("");
}

async function importInto(open: OpenStore, { app, key, json }: ImportCommandOptions): Promise<ImportCounts> {
  const [{ importConnections, MAX_LINE_BYTES }, { linesOf }] = await Promise.all([
    import("../admin/import-connections.js"),
    import("../lib/lines.js"),
  ]);
  if (app !== undefined) await applicationOf(open.store, app);
  const progress = createProgress();
  try {
    return await importConnections(
      {
        administration: administrationOf(open),
        catalog: await loadCatalog(open.config),
        publicKey: app,
        opener: key === undefined ? open.sealer : await loadSealer(key, true),
        onRefused: (line, reason) => (json ? writeJson({ line, reason }) : writeLine(`line ${line}: ${reason}.`)),
        onProgress: ({ stored, kept, refused }) => progress.show(`${stored + kept + refused} lines`),
      },
      linesOf(standardInput(), MAX_LINE_BYTES),
    );
  } finally {
    progress.end();
  }
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
    about: "Write connections for another relay, one a line, their tokens sealed with a key of that relay.",
    examples: [
      "relay connection export --sealed transfer.key > sealed.jsonl",
      "relay connection export --sealed transfer.key --app PUBLIC_KEY --provider github > sealed.jsonl",
    ],
    more: `The key file is made where the lines are imported ('relay key create transfer.key') and brought here; delete it
afterwards at both places. A line shows whose connection it is, and opens for that one alone: with one character changed
it is refused. Connections that have ended are left out. Afterwards only one of the two relays may be called: providers
that rotate refresh tokens take a second refresh for theft.`,
  })
    .requiredOption("--sealed <key-file>", "key file of the other relay; its first key seals")
    .option("--app <public-key>", "only this application's")
    .option("--user <id>", "only this user's; needs --app")
    .option("--provider <name>", "only those at this provider")
    .action((options: ExportCommandOptions) => exportAll(options));
}

async function exportAll(options: ExportCommandOptions): Promise<void> {
  if (options.user !== undefined && options.app === undefined)
    throw failure("--user needs --app: users are an application's.");
  const leftOut = await withStore((open) => exportFrom(open, options));
  if (leftOut > 0)
    writeNote(
      `Left out, since they have ended, fit no definition or do not open: ${leftOut}. Their users connect again.`,
    );
}

async function exportFrom(
  open: OpenStore,
  { sealed, app, user: userId, provider }: ExportCommandOptions,
): Promise<number> {
  const sealerOfTarget = await loadSealer(sealed, true);
  const [{ exportConnections }, { auditEntryFrom }] = await Promise.all([
    import("../admin/export-connections.js"),
    import("../admin/administration.js"),
  ]);
  const { store, sealer } = open;
  const catalog = await loadCatalog(open.config);
  const applicationId = app === undefined ? undefined : (await applicationOf(store, app)).id;
  const providerName = provider === undefined ? undefined : requireProvider(catalog, provider).name;
  const resource = { name: "connections", publicKey: app ?? "" };
  const entry = auditEntryFrom(administrationOf(open), "relay connection export", resource);
  await store.audit.add({ ...entry, outcome: "DONE" });
  const progress = createProgress();
  let [written, leftOut] = [0, 0];
  const pages = exportConnections({ store, catalog, sealer, sealerOfTarget, applicationId, userId, providerName });
  for await (const page of pages) {
    for (const line of page.lines) writeJsonText(JSON.stringify(line));
    if (process.stdout.writableNeedDrain) await once(process.stdout, "drain");
    written += page.lines.length;
    leftOut += page.leftOut;
    progress.show(`${written} connections`);
  }
  progress.end();
  return leftOut;
}

/** A person is told twice a second, at most. */
const TELL_EVERY_MS = 500;

/** Tells a person at the terminal how far a command has come, on a line that the next one overwrites; nothing in a pipe. */
function createProgress() {
  const { stderr } = process;
  let toldAt = Number.NEGATIVE_INFINITY;
  return {
    show(text: string): void {
      if (!stderr.isTTY || performance.now() - toldAt < TELL_EVERY_MS) return;
      toldAt = performance.now();
      stderr.write(`\r${text}\u001b[K`);
    },
    end(): void {
      if (stderr.isTTY) stderr.write("\r\u001b[K");
    },
  };
}
