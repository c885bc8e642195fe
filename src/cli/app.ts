import { type Command, Option } from "commander";
import {
  captureCalls,
  createApplication,
  DEFAULT_CAPTURE_MINUTES,
  deleteApplication,
  MAX_CALLS_PER_MINUTE,
  MAX_CAPTURE_MINUTES,
  NEW_APPLICATION,
  rotateApplicationKey,
  updateApplication,
} from "../admin/applications.js";
import { type Application, type ApplicationPatch, parsePublicKey } from "../applications/application.js";
import {
  applicationOf,
  CALLER_AUTH,
  callRulesFrom,
  jsonFromApplication,
  nameFrom,
  noApplication,
  readCallRules,
  readIcon,
  type SettingOptions,
  settingsFrom,
  valueFrom,
  wholeFromApplication,
} from "./application.js";
import {
  addCommand,
  addGroup,
  collect,
  failure,
  textFields,
  textTable,
  usageError,
  wholeNumber,
  writeNote,
  writeResult,
} from "./command.js";
import { administrationOf, type OpenStore, withStore } from "./open-store.js";
import { parseDuration } from "./token.js";

/** `relay app`: applications, which define who may call. */
export function addApp(program: Command): void {
  addGroup(program, {
    usage: "app",
    about: "Manage applications, which define who may call.",
    examples: ['relay app create "My application"', "relay app list"],
    commands: [addAppCreate, addAppList, addAppShow, addAppUpdate, addAppCapture, addAppRotateKey, addAppDelete],
  });
}

interface CreateOptions extends Omit<SettingOptions, "name"> {
  readonly publicKey?: string;
  readonly callRules?: string;
  readonly json?: boolean;
}

function addAppCreate(group: Command): void {
  const command = addCommand(group, {
    usage: "create <name>",
    about: "Create an application and print its keys. The private key is shown only now: the store keeps a hash.",
    examples: [
      'relay app create "My application"',
      "relay app create Web --caller-auth signed-user --allow-origin https://app.example.com --json",
    ],
  })
    .option("--public-key <key>", "use this key, which clients already have, instead of a new one")
    .addOption(callerAuthOption().default("public-key"));
  addSettings(command, (atFirst) => atFirst, " and by default").action(create);
}

function callerAuthOption(): Option {
  return new Option("--caller-auth <proof>", "minimum proof that a call must carry").choices([...CALLER_AUTH.keys()]);
}

const CALLS = wholeNumber(0, MAX_CALLS_PER_MINUTE);

/**
 * Adds the options that `create` and `update` have in common.
 *
 * @param listNote a list option's note, given the one for a new application.
 * @param byDefault what a new application has beside the limit that it may have.
 */
function addSettings(command: Command, listNote: (atFirst: string) => string, byDefault = ""): Command {
  return command
    .option(
      "--allow-origin <origin>",
      `browser origin that may call; repeatable; ${listNote("none by default")}`,
      collect,
    )
    .option(
      "--allow-address <cidr>",
      `client addresses that may call; repeatable; ${listNote("any by default")}`,
      collect,
    )
    .option(
      "--allow-redirect <uri>",
      `where a browser may return to after connecting; repeatable; ${listNote("nowhere by default")}`,
      collect,
    )
    .option("--calls-per-minute <number>", "most calls per minute, all users together; 0 means no limit", CALLS)
    .option(
      "--connection-calls-per-minute <number>",
      "most calls per minute for each connection; 0 means no limit",
      CALLS,
    )
    .option(
      "--call-rules <file>",
      "JSON file with the rules that its calls must match, by provider; '-' reads standard input",
    )
    .option(
      "--max-token-ttl <duration>",
      `longest lifetime of a call token, such as 1h; a day at most${byDefault}`,
      parseDuration,
    )
    .option("--accent-color <#rrggbb>", "accent colour on the connect page; empty for the relay's own")
    .option("--icon <file>", "icon on the connect page: PNG, JPEG or WebP, at most 16 KiB and 1024 x 1024 pixels");
}

async function create(name: string, options: CreateOptions): Promise<void> {
  const { publicKey: wanted } = options;
  const publicKey = wanted === undefined ? undefined : valueFrom(parsePublicKey(wanted), "--public-key");
  const icon = (await readIcon(options)) ?? NEW_APPLICATION.icon;
  const input = { name: nameFrom(name), ...NEW_APPLICATION, ...settingsFrom(options), icon, publicKey };
  const written = await readCallRules(options.callRules);
  const create = async (open: OpenStore) => {
    const callRules = await callRulesFrom(written, open);
    return createApplication(administrationOf(open), { ...input, callRules });
  };
  const { application, privateKey } = await withStore(create, { mayCreate: true });
  writeKeys(application.publicKey, privateKey, options);
}

function addAppList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the applications.",
    examples: ["relay app list", "relay app list --json"],
  }).action(listApplications);
}

async function listApplications(options: { readonly json?: boolean }): Promise<void> {
  const applications = (await withStore(({ store }) => store.applications.list())).map(jsonFromApplication);
  const rows = applications.map(({ publicKey, name, callerAuth, state }) => [publicKey, name, callerAuth, state]);
  writeResult(options, applications, textTable(["PUBLIC KEY", "NAME", "CALLER AUTH", "STATE"], rows));
}

function addAppShow(group: Command): void {
  addCommand(group, {
    usage: "show <public-key>",
    about: "Show one application.",
    examples: ["relay app show PUBLIC_KEY"],
  }).action(showApplication);
}

async function showApplication(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const shown = await withStore(async (open) => wholeFromApplication(open, await applicationOf(open.store, publicKey)));
  writeResult(options, shown.json, shown.text);
}

function addAppDelete(group: Command): void {
  addCommand(group, {
    usage: "delete <public-key>",
    about: "Delete an application and all its connections. This cannot be undone; 'relay app update --disable' can.",
    examples: ["relay app delete PUBLIC_KEY"],
  }).action(deleteNamed);
}

async function deleteNamed(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const isDeleted = await withStore((open) => deleteApplication(administrationOf(open), publicKey));
  if (!isDeleted) throw noApplication();
  writeResult(options, { publicKey, deleted: true }, "Deleted the application and its connections.");
}

function addAppRotateKey(group: Command): void {
  addCommand(group, {
    usage: "rotate-key <public-key>",
    about:
      "Give an application a new private key and print it once. The old key and its user signatures stop working now.",
    examples: ["relay app rotate-key PUBLIC_KEY"],
  }).action(rotateKey);
}

async function rotateKey(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const privateKey = await withStore((open) => rotateApplicationKey(administrationOf(open), publicKey));
  if (privateKey === undefined) throw noApplication();
  writeKeys(publicKey, privateKey, options);
}

/** Prints an application's keys. This is the only time that the private key is shown. */
function writeKeys(publicKey: string, privateKey: string, options: { readonly json?: boolean }): void {
  const fields = [["public key", publicKey] as const, ["private key", privateKey] as const];
  writeResult(options, { publicKey, privateKey }, textFields(fields));
  if (!options.json) writeNote("Keep the private key now; it cannot be shown again.");
}

interface UpdateOptions extends SettingOptions {
  readonly origins: boolean;
  readonly addresses: boolean;
  readonly redirects: boolean;
  readonly enable?: boolean;
  readonly disable?: boolean;
  /** False to remove all rules. */
  readonly callRules?: string | false;
  readonly json?: boolean;
}

function addAppUpdate(group: Command): void {
  const command = addCommand(group, {
    usage: "update <public-key>",
    about: "Change an application. Settings that you do not give stay unchanged.",
    examples: ["relay app update PUBLIC_KEY --caller-auth private-key", "relay app update PUBLIC_KEY --disable"],
  })
    .option("--name <name>", "new name")
    .addOption(callerAuthOption());
  addSettings(command, () => "replaces the list")
    .addOption(new Option("--no-origins", "no browser may call").conflicts("allowOrigin"))
    .addOption(new Option("--no-addresses", "any client address may call").conflicts("allowAddress"))
    .addOption(new Option("--no-redirects", "no browser may return").conflicts("allowRedirect"))
    .option("--no-call-rules", "remove all rules")
    .option("--no-icon", "remove the icon and show the initial")
    .addOption(new Option("--disable", "refuse all its calls").conflicts("enable"))
    .option("--enable", "accept its calls again")
    .action(update);
}

async function update(publicKey: string, options: UpdateOptions): Promise<void> {
  const icon = await readIcon(options);
  const patch = patchFrom(options, icon);
  const written = await readCallRules(options.callRules || undefined);
  const updated = await withStore(async (open) => {
    const callRules = options.callRules === undefined ? {} : { callRules: await callRulesFrom(written, open) };
    const application = await updateApplication(administrationOf(open), publicKey, { ...patch, ...callRules });
    if (application === undefined) throw noApplication();
    return wholeFromApplication(open, application);
  });
  writeResult(options, updated.json, updated.text);
}

function patchFrom(options: UpdateOptions, icon: Uint8Array | undefined): ApplicationPatch {
  const patch: ApplicationPatch = {
    ...settingsFrom(options),
    ...(!options.origins && { allowedOrigins: [] }),
    ...(!options.addresses && { allowedAddresses: [] }),
    ...(!options.redirects && { allowedRedirectUris: [] }),
    ...(icon && { icon }),
    ...(options.enable && { state: "ACTIVE" }),
    ...(options.disable && { state: "DISABLED" }),
  };
  if (Object.keys(patch).length === 0 && options.callRules === undefined)
    throw usageError("Nothing to change; give at least one option.");
  return patch;
}

interface CaptureOptions {
  readonly minutes?: number;
  readonly off?: boolean;
  readonly json?: boolean;
}

function addAppCapture(group: Command): void {
  addCommand(group, {
    usage: "capture <application>",
    about:
      "Capture headers and bodies of an application's calls for some minutes, to find out what is wrong with them.",
    examples: ["relay app capture PUBLIC_KEY --minutes 10", 'relay app capture "My application" --off'],
    more: `Name the application by its public key or its name. The first 100 calls are captured, with up to 4 KiB of each
body, and kept for 24 hours. Tokens are removed, fields whose names suggest a credential are masked, and everything is
sealed like a token. 'relay calls show' prints it.`,
  })
    .option(
      "--minutes <number>",
      `how long; ${DEFAULT_CAPTURE_MINUTES} by default, ${MAX_CAPTURE_MINUTES} at most`,
      wholeNumber(1, MAX_CAPTURE_MINUTES),
    )
    .addOption(new Option("--off", "stop now; captured calls are kept for their 24 hours").conflicts("minutes"))
    .action(capture);
}

async function capture(name: string, options: CaptureOptions): Promise<void> {
  const minutes = options.off ? 0 : (options.minutes ?? DEFAULT_CAPTURE_MINUTES);
  const { publicKey, captureUntil } = await withStore(async (open) => {
    const found = await findApplication(open, name);
    const updated = await captureCalls(administrationOf(open), found.publicKey, minutes);
    if (updated === undefined) throw noApplication();
    return updated;
  });
  const until = captureUntil === 0 ? null : new Date(captureUntil).toISOString();
  const text = until === null ? "Capturing has stopped." : `Calls are captured until ${until}.`;
  writeResult(options, { publicKey, captureUntil: until }, text);
}

/** Finds an application by public key or by name. Several applications may share a name. */
async function findApplication({ store }: OpenStore, name: string): Promise<Application> {
  const byKey = await store.applications.findByPublicKey(name);
  if (byKey !== undefined) return byKey;
  const [found, ...others] = (await store.applications.list()).filter((each) => each.name === name);
  if (found === undefined)
    throw failure("There is no application with this public key or name. 'relay app list' lists them.");
  if (others.length > 0) throw failure("Several applications have this name; give the public key of one.");
  return found;
}
