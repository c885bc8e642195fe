import { type Command, InvalidArgumentError } from "commander";
import { parseInteger } from "../config/settings.js";
import { type CallFilter, type CallPosition, listCalls } from "../records/list-calls.js";
import type { StoredCall } from "../records/stored-call.js";
import { jsonFromCall, tableFromCalls } from "./call-text.js";
import { addCommand } from "./command.js";
import { type OpenStore, withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { applicationFrom } from "./webhook-application.js";

interface ListOptions {
  readonly app: string;
  readonly errorType?: string;
  readonly provider?: string;
  readonly limit: number;
  readonly json?: boolean;
}

const MAX_LIMIT = 100_000;

/** `relay calls list` */
export function addCallsList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about:
      "List an application's last calls, the newest first. Values of queries, headers and bodies are not recorded.",
    examples: [
      "relay calls list --app PUBLIC_KEY",
      "relay calls list --app PUBLIC_KEY --error-type API_ERROR --provider github --limit 20 --json",
    ],
  })
    .requiredOption("--app <public-key>", "the application's public key")
    .option("--error-type <type>", "only calls that ended so, such as PROVIDER_TIMEOUT")
    .option("--provider <name>", "only calls to this provider")
    .option("--limit <count>", "at most this many", parseLimit, 50)
    .action(list);
}

async function list(options: ListOptions): Promise<void> {
  const calls = await withStore((open) => findCalls(open, options));
  if (options.json) writeJson(calls.map(jsonFromCall));
  else writeLine(tableFromCalls(calls));
}

/** A page may have fewer than asked for although there are more. */
async function findCalls(open: OpenStore, options: ListOptions): Promise<StoredCall[]> {
  const filter: CallFilter = {
    applicationId: (await applicationFrom(open, options)).id,
    provider: options.provider,
    errorType: options.errorType,
  };
  const calls: StoredCall[] = [];
  let from: CallPosition | undefined;
  do {
    const page = await listCalls(open.store.calls, filter, { pageSize: options.limit - calls.length, from });
    calls.push(...page.calls);
    from = page.next;
  } while (from !== undefined && calls.length < options.limit);
  return calls;
}

function parseLimit(text: string): number {
  const limit = parseInteger(text, 1, MAX_LIMIT);
  if (limit === undefined) throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_LIMIT}.`);
  return limit;
}
