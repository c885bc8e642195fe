import cluster from "node:cluster";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { type Config, localUrlFrom } from "../config/config.js";
import { defaultSpool } from "../config/database-location.js";
import { SETTINGS } from "../config/setting-list.js";
import { createSecretFile } from "../lib/secret-file.js";
import type { ServiceUrls } from "../workers/worker.js";
import { addCommand, ExitError, failure, isForOperator, usageError, writeNote, writeResult } from "./command.js";
import { envFileBeside, loadEnvFile } from "./env-file.js";
import { configFromEnvironment } from "./open-store.js";

/**
 * `relay start`, and `relay` without a command: creates what is missing, starts the service and prints a console link.
 */
export function addStart(program: Command): void {
  addCommand(program, {
    usage: "start",
    about:
      "Start the relay in this folder, creating it if needed, and print a sign-in link for its console (only on a terminal). This is what 'relay' does without a command.",
    examples: ["relay start"],
    more: `A new relay lives in the folder data: settings (relay.env), database, keys and admin tokens. Commands that you run in
this folder use them; elsewhere give the settings with --env-file. Standard output is the same as for 'relay serve'.`,
  }).action(start);
}

async function start(): Promise<void> {
  // Workers run the same command line.
  if (cluster.isPrimary) await makeSettings();
  await run((urls, config) => void tellStarted(urls, config));
}

/** `relay serve`: runs the service until SIGTERM or SIGINT. */
export function addServe(program: Command): void {
  addCommand(program, {
    usage: "serve",
    about:
      "Run the relay until SIGTERM or SIGINT. Standard output has one JSON object per line, with or without --json.",
    examples: ["RELAY_LISTEN=127.0.0.1:9000 relay serve"],
    more: `Settings, all from the environment:\n${SETTINGS.map(settingText).join("\n")}`,
  }).action(() => run());
}

function settingText({ name, fallback, about }: (typeof SETTINGS)[number]): string {
  return `  ${name} (${fallback === "" ? "no default" : `default ${fallback}`})\n      ${about}`;
}

async function run(onListening?: (urls: ServiceUrls, config: Config) => void): Promise<void> {
  const { runService } = await import("../main.js");
  const exitCode = await runService(process.env, process.execArgv, onListening);
  // The reason was already printed.
  if (exitCode !== 0) throw new ExitError(exitCode === 2 ? 2 : 1, "");
}

/** Writes and loads a settings file when there is neither one nor a database. */
async function makeSettings(): Promise<void> {
  const file = envFileBeside(undefined);
  const folder = dirname(resolve(file));
  if (process.env["RELAY_DATABASE"] || existsSync(file) || existsSync(join(folder, "relay.db"))) return;
  const port = await freePort(8080);
  const lines = [
    "# Settings of the relay; 'relay serve --help' lists them all. Environment variables override this file.",
    `RELAY_LISTEN=127.0.0.1:${port}`,
    `RELAY_ADMIN_LISTEN=127.0.0.1:${await freePort(port + 1)}`,
    `RELAY_DATABASE=${quoted(`sqlite:${join(folder, "relay.db")}`)}`,
    `RELAY_KEY_FILE=${quoted(join(folder, "relay.key"))}`,
    `RELAY_ADMIN_TOKEN_FILE=${quoted(join(folder, "admin.tokens"))}`,
  ];
  await createSecretFile(file, `${lines.join("\n")}\n`);
  loadEnvFile(file);
  writeNote(`Created ${folder} for settings, database and keys.`);
}

/** Quotes a value for `relay.env`: a path may contain a space or a character that starts a comment. */
function quoted(text: string): string {
  if (/^[\w./:-]+$/.test(text)) return text;
  const quote = ['"', "'", "`"].find((each) => !text.includes(each));
  if (quote === undefined || /[\r\n]/.test(text)) throw usageError(`${text} cannot be written to a settings file.`);
  return quote + text + quote;
}

/** The first free port from this one on, other than those that are given. */
export async function freePort(from: number, ...others: readonly number[]): Promise<number> {
  for (let port = from; port < from + 1000; port += 1) if (!others.includes(port) && (await isFree(port))) return port;
  throw failure(`All ports from ${from} to ${from + 999} are taken. Set RELAY_LISTEN and RELAY_ADMIN_LISTEN.`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((done) => {
    server.once("error", () => done(false));
    server.listen(port, "127.0.0.1", () => server.close(() => done(true)));
  });
}

async function tellStarted({ url, adminUrl }: ServiceUrls, config: Config): Promise<void> {
  writeNote(`
The relay runs at ${url}. Ctrl-C stops it.
${adminUrl === undefined ? "It has no console, because RELAY_ADMIN_LISTEN is off." : await consoleText(adminUrl, config)}
Next: create an application ${adminUrl === undefined ? "" : "in the console, or "}with '${COMMAND} app create'.
`);
}

/** How to call this program, in the way it was called. */
const COMMAND = process.env["npm_command"] === "exec" ? "npx provider-call-relay" : "relay";

/** Prints a sign-in link only to a terminal: a pipe may lead into a log, where no secret belongs. */
async function consoleText(adminUrl: string, config: Config): Promise<string> {
  const address = `Its console is at ${adminUrl}/console/.`;
  if (process.stderr.isTTY !== true) return `${address} '${COMMAND} console' prints a link that signs you in.`;
  try {
    const link = await createLink(adminUrl, config);
    return `${address} This link signs you in, once and within 15 minutes:\n\n  ${link}\n\n'${COMMAND} console' creates another one.`;
  } catch (error) {
    // A hint must not end the service.
    if (!isForOperator(error)) {
      const { textFromError } = await import("../telemetry/log.js");
      return `${address} No sign-in link could be created (${textFromError(error)}). Please report this.`;
    }
    return `${address} No sign-in link could be created:\n\n  ${error.message}\n\nFix this, then run '${COMMAND} console' to get a link.`;
  }
}

/** `relay console` */
export function addConsole(program: Command): void {
  addCommand(program, {
    usage: "console",
    about: "Print a link that signs one browser in to the console of the running relay, once, within 15 minutes.",
    examples: ["relay console"],
    more: `The link has the rights of the first operator in RELAY_ADMIN_TOKEN_FILE, for 12 hours. Run this on the relay's
machine, as a user who may read that file and write in the relay's spool. Do not share the link.`,
  }).action(async (options: { readonly json?: boolean }) => {
    const link = await linkTo(configFromEnvironment());
    writeResult(options, { link }, link);
  });
}

const START_FIRST = "Start the relay first, and run this with its settings (--env-file FILE).";

async function linkTo(config: Config): Promise<string> {
  const { adminListen, adminTokenFile } = config;
  if (adminListen === "off") throw usageError("RELAY_ADMIN_LISTEN is off, so there is no console.");
  if (!existsSync(adminTokenFile)) {
    throw usageError(`RELAY_ADMIN_TOKEN_FILE: ${resolve(adminTokenFile)} does not exist. ${START_FIRST}`);
  }
  return createLink(localUrlFrom(config, adminListen), config, ` ${START_FIRST}`);
}

/**
 * Creates a sign-in link. Rejects with AdminTokenFileError, or with a failure when no token is an operator's or the
 * spool cannot be written.
 *
 * @param advice follows what is wrong with the spool.
 */
async function createLink(adminUrl: string, { adminTokenFile, spool, database }: Config, advice = ""): Promise<string> {
  const [{ createSignInLink }, { loadAdminTokens }] = await Promise.all([
    import("../admin/sign-in.js"),
    import("../admin/admit.js"),
  ]);
  const tokens = await loadAdminTokens(adminTokenFile, { mustExist: true, onCreated: () => {} });
  const folder = spool ?? defaultSpool(database);
  const link = await createSignInLink(adminUrl, { folder, tokens }, Date.now()).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === undefined) throw error;
      throw failure(`RELAY_SPOOL: the link cannot be stored in ${resolve(folder)} (${error.code}).${advice}`, error);
    },
  );
  if (link === undefined) throw failure(`RELAY_ADMIN_TOKEN_FILE: ${adminTokenFile} has no operator to sign in.`);
  return link;
}
