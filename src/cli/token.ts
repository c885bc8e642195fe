import { type Command, InvalidArgumentError } from "commander";
import { DEFAULT_CALL_TOKEN_SECONDS, issueCallToken } from "../admin/applications.js";
import { parseCallRules, type WrittenRule } from "../applications/call-rules.js";
import { activeApplicationOf, noApplication, requireIds } from "./application.js";
import { addCommand, addGroup, collect, usageError, writeNote, writeResult } from "./command.js";
import { administrationOf, loadCatalog, type OpenStore, requireProvider, withStore } from "./open-store.js";

/** `relay token`: call tokens, each of which allows the calls of one user. */
export function addToken(program: Command): void {
  addGroup(program, {
    usage: "token",
    about: "Create call tokens: each allows one user's calls, for a limited time and within rules.",
    examples: ["relay token create --app PUBLIC_KEY --user ada --provider github --method GET"],
    commands: [addTokenCreate],
  });
}

interface CreateOptions {
  readonly app: string;
  readonly user: string;
  readonly provider?: readonly string[];
  readonly ttl: number;
  readonly method?: readonly string[];
  readonly host?: readonly string[];
  readonly path?: readonly string[];
  readonly json?: boolean;
}

function addTokenCreate(group: Command): void {
  addCommand(group, {
    usage: "create",
    about: "Create a call token and print it once. The audit trail records that it was created, never the token.",
    examples: [
      "relay token create --app PUBLIC_KEY --user ada --provider github --ttl 15m --method GET --path '/repos/acme/**'",
      'curl https://relay.example.com/oauth/method/github/call -H "authorization: Bearer $(relay token create --app PUBLIC_KEY --user ada)" …',
    ],
    more: `A call must match one of the given methods, one of the hosts and one of the paths. In a path, * matches one segment
and ** any number of them. If an application requires only its public key, anyone who reads the token can call without it:
see docs/call-tokens.md.`,
    names: ["app", "user"],
  })
    .option("--provider <name>", "provider that may be called; repeatable; all by default", collect)
    .option(
      "--ttl <duration>",
      "how long it is valid, such as 90s, 15m or 8h",
      parseDuration,
      DEFAULT_CALL_TOKEN_SECONDS,
    )
    .option("--method <method>", "HTTP method that is allowed; repeatable; any by default", collect)
    .option("--host <host>", "host that is allowed; repeatable; any by default", collect)
    .option("--path <path>", "path that is allowed; repeatable; any by default", collect)
    .action(create);
}

async function create(options: CreateOptions): Promise<void> {
  requireIds(options);
  const { app: publicKey, user: userId, ttl: lifetimeSeconds } = options;
  const rules = rulesFrom(options);
  const issue = async (open: OpenStore) => {
    // The token would become valid as soon as the application is enabled again.
    const { callerAuth } = await activeApplicationOf(open.store, publicKey);
    const catalog = options.provider && (await loadCatalog(open.config));
    const providers = catalog && options.provider?.map((name) => requireProvider(catalog, name).name);
    const administration = administrationOf(open);
    const issued = await issueCallToken(administration, { publicKey, userId, providers, rules, lifetimeSeconds });
    return { issued, callerAuth };
  };
  const { issued, callerAuth } = await withStore(issue);
  if (issued === undefined) throw noApplication();
  if ("problem" in issued) throw usageError(`${FIELDS[issued.field]} ${issued.problem}.`);
  if (callerAuth === "PUBLIC_KEY") writeNote(OPEN_DOOR);
  const { callToken, expiresAt } = issued;
  writeResult(options, { callToken, expiresAt: new Date(expiresAt).toISOString() }, callToken);
}

const FIELDS = { lifetime_seconds: "--ttl in seconds", rules: "--method, --host and --path" } as const;

const OPEN_DOOR =
  "This application requires only its public key, so anyone who reads the token can call without it and bypass its rules. 'relay app update PUBLIC_KEY --caller-auth private-key' prevents that.";

/** One rule from all given options; undefined if there are none. */
function rulesFrom({ method, host, path }: CreateOptions) {
  if (method === undefined && host === undefined && path === undefined) return undefined;
  const rule: WrittenRule = {
    ...(method && { methods: method.map((each) => each.toUpperCase()) }),
    ...(host && { hosts: host }),
    ...(path && { paths: path }),
  };
  const parsed = parseCallRules([rule]);
  if ("rules" in parsed) return parsed.rules;
  throw usageError(`--method, --host and --path make up ${parsed.problem.replace("has a rule 1", "a rule")}.`);
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 60 * 60],
]);

/** Parses a duration such as `15m` into seconds. */
export function parseDuration(text: string): number {
  const [, count = "", unit = ""] = /^(\d{1,6})([smh])$/.exec(text) ?? [];
  const seconds = Number(count) * (UNITS.get(unit) ?? 0);
  if (seconds > 0) return seconds;
  throw new InvalidArgumentError("It must be a number with s, m or h, such as 15m.");
}
