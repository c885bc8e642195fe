import { type Command, Option } from "commander";
import { localUrlFrom } from "../config/config.js";
import { parseUrl } from "../lib/parse-url.js";
import {
  type CallArguments,
  type CallRequestText,
  type CallRow,
  type CallTarget,
  PROTOCOLS,
  type Protocol,
  parseCallArguments,
  writeAnswer,
} from "./call-row.js";
import {
  addCommand,
  collect,
  failure,
  PRIVATE_KEY_VARIABLE,
  readInputFile,
  readPrivateKey,
  readStandardInput,
  usageError,
  writeJsonText,
} from "./command.js";
import { configFromEnvironment, withStore } from "./open-store.js";

/** Largest payload. The relay's own limit is lower unless an operator raised it. */
const MAX_PAYLOAD_BYTES = 64 * 1024 * 1024;

interface CallOptions extends CallArguments {
  readonly data?: string;
  readonly relay?: string;
  readonly protocol: Protocol;
  readonly privateKeyFile?: string;
  readonly include?: boolean;
  readonly explain?: boolean;
  readonly via?: boolean;
  readonly json?: boolean;
}

/** `relay call`: one call through the running service. */
export function addCall(program: Command): void {
  addCommand(program, {
    usage: "call <provider> <url>",
    about: "Perform one call through the running relay and print the answer as an HTTP client would.",
    examples: [
      "relay call github --app PUBLIC_KEY --user ada https://api.github.com/user",
      `relay call slack --app PUBLIC_KEY --user ada https://slack.com/api/chat.postMessage -d '{"channel":"#general","text":"hi"}'`,
      "relay call github --app PUBLIC_KEY --user ada https://api.github.com/user --explain",
    ],
    more: `${PRIVATE_KEY_HELP}\n\n${EXPLAIN_HELP}`,
    names: ["app", "user"],
  })
    .option("--user-signature <hex>", "signature of the user's id, for applications that require it")
    .option("-X, --request <method>", "method; GET by default, POST with -d")
    .option("-d, --data <json>", "payload: a JSON object, @FILE, or @- for standard input")
    .option("-H, --header <header>", "header, 'name: value'; repeatable", collect)
    .option("--relay <url>", "the relay's address; RELAY_LISTEN by default")
    .addOption(new Option("--protocol <protocol>", "how to talk to the relay").choices(PROTOCOLS).default("connect"))
    .option("--private-key-file <file>", "file with the application's private key")
    .option("-i, --include", "print status line and headers on standard output too")
    .option("--explain", "print what would be sent, or why it would be refused and what to do; send nothing")
    .option("--via", "with --explain: treat it as a pass-through request to /via/")
    .action(call);
}

const PRIVATE_KEY_HELP = `For an application that requires its private key, give a file with --private-key-file, or set
${PRIVATE_KEY_VARIABLE}. The key is not an argument, because arguments appear in the shell's history and in
the list of processes, which every user of the machine can read.`;

const EXPLAIN_HELP = `--explain contacts neither the relay nor the provider: it reads the database and the definitions of
this environment, as the other commands do, and opens no token. Tokens are shown as ***. It ignores
what only a running service knows, such as how many calls were made in this minute.`;

async function call(provider: string, url: string, options: CallOptions): Promise<void> {
  const request = parseCallArguments(provider, url, options, await readPayload(options.data));
  if (options.explain) return explain(request, options);
  if (options.via)
    throw usageError("--via works only with --explain; to send a request through /via/, use any HTTP client.");
  const target: CallTarget = {
    relayUrl: relayUrlFrom(options.relay),
    privateKey: await readPrivateKey(options.privateKeyFile),
    responseMode: options.json ? "data" : "body",
  };
  const { row, json } = await perform(request, target, options.protocol);
  if (options.json) writeJsonText(json);
  else writeAnswer(row, options);
  if (row.pincStatus !== "success") throw failure(`${row.errorType}: ${row.inernalError}`);
}

async function explain(request: CallRequestText, { privateKeyFile, json, via = false }: CallOptions): Promise<void> {
  const { explainFromStore, writeExplanation } = await import("./call-output.js");
  const privateKey = await readPrivateKey(privateKeyFile);
  const explanation = await withStore((open) => explainFromStore(open, request, { privateKey, via }));
  writeExplanation(explanation, { json: json ?? false });
  const { refusal } = explanation;
  if (refusal === undefined) return;
  throw failure(`${refusal.errorType}: ${refusal.message}${refusal.advice === "" ? "" : `\n${refusal.advice}`}`);
}

async function perform(request: CallRequestText, target: CallTarget, protocol: Protocol): Promise<CallRow> {
  const { callOverRest, callOverRpc } = await import("./call-rpc.js");
  return protocol === "rest" ? callOverRest(request, target) : callOverRpc(request, target, protocol);
}

async function readPayload(data: string | undefined): Promise<string | undefined> {
  if (data === undefined || !data.startsWith("@")) return data;
  const read = data === "@-" ? readStandardInput(MAX_PAYLOAD_BYTES) : readInputFile(data.slice(1), MAX_PAYLOAD_BYTES);
  return (await read).toString();
}

/** The url in `--relay`, or the address at which a relay with this environment listens. */
function relayUrlFrom(given: string | undefined): string {
  if (given === undefined) {
    const config = configFromEnvironment();
    return localUrlFrom(config, config.listen);
  }
  const url = parseUrl(given);
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "") {
    throw usageError("--relay must be an address such as http://127.0.0.1:8080.");
  }
  return url.origin;
}
