import { parseAccentColor, parseDisplayName, parseList, parseRulesOfProviders } from "../admin/applications.js";
import {
  type Application,
  type ApplicationSettings,
  type CallerAuth,
  type Parsed,
  parseCidr,
  parseOrigin,
  parseRedirectUri,
} from "../applications/application.js";
import { type CallRulesByProvider, jsonFromCallRules } from "../applications/call-rules.js";
import { MAX_CALL_TOKEN_SECONDS, maxSecondsOf } from "../applications/call-token.js";
import { requireCallerIds } from "../applications/caller.js";
import { iconTypeOf, MAX_ICON_BYTES, parseIcon } from "../applications/icon.js";
import { uniqueObjectFrom } from "../json/json-slice.js";
import type { Store } from "../store/store.js";
import { failure, readInputFile, readStandardInput, textFields, usageError } from "./command.js";
import { loadCatalog, type OpenStore } from "./open-store.js";

/** The three kinds of caller proof, as spelled on the command line. */
export const CALLER_AUTH: ReadonlyMap<string, CallerAuth> = new Map([
  ["public-key", "PUBLIC_KEY"],
  ["signed-user", "SIGNED_USER"],
  ["private-key", "PRIVATE_KEY"],
]);

/** An application as JSON. An allow-list of members, so that a key hash can never be among them. */
export function jsonFromApplication(application: Application) {
  const { captureUntil } = application;
  return {
    publicKey: application.publicKey,
    name: application.name,
    callerAuth: application.callerAuth,
    allowedOrigins: application.allowedOrigins,
    allowedAddresses: application.allowedAddresses,
    allowedRedirectUris: application.allowedRedirectUris,
    callsPerMinute: application.callsPerMinute,
    connectionCallsPerMinute: application.connectionCallsPerMinute,
    callRules: jsonFromCallRules(application.callRules),
    maxCallTokenSeconds: application.maxCallTokenSeconds,
    accentColor: application.accentColor,
    state: application.state,
    captureUntil: captureUntil > Date.now() ? new Date(captureUntil).toISOString() : null,
    createdAt: new Date(application.createdAt).toISOString(),
    updatedAt: new Date(application.updatedAt).toISOString(),
  };
}

/** The same with the media type of its icon (null for none), which lists do not read. */
export async function wholeFromApplication({ store }: OpenStore, application: Application) {
  const icon = iconTypeOf(await store.applications.iconOf(application.id)) ?? null;
  const json = { ...jsonFromApplication(application), icon };
  return { json, text: textFromApplication(application, icon) };
}

/** An application as text. */
function textFromApplication(application: Application, icon: string | null): string {
  const { publicKey, name, callerAuth, allowedOrigins, allowedAddresses, state, captureUntil } =
    jsonFromApplication(application);
  return textFields([
    ["name", name],
    ["public key", publicKey],
    ["state", state],
    ["caller auth", callerAuth],
    ["browser origins", allowedOrigins.join(", ") || "none: no browser access"],
    ["client addresses", allowedAddresses.join(", ") || "any"],
    ["redirects to", application.allowedRedirectUris.join(", ") || "nowhere"],
    ["calls per minute", callsText(application.callsPerMinute)],
    ["  per connection", callsText(application.connectionCallsPerMinute)],
    ["call rules", callRulesText(application)],
    ["call tokens", `valid for ${maxSecondsOf(application)} seconds at most`],
    ["accent colour", application.accentColor || "the relay's own"],
    ["icon", icon ?? "none: shows its initial"],
    ["calls captured", captureUntil === null ? "no" : `until ${captureUntil}`],
    ["created", new Date(application.createdAt).toISOString()],
    ["updated", new Date(application.updatedAt).toISOString()],
  ]);
}

function callRulesText({ callRules }: Application): string {
  const counts = Object.entries(callRules).map(([name, rules]) => `${name} (${rules.length})`);
  return counts.join(", ") || "none: its calls are not restricted";
}

function callsText(callsPerMinute: number): string {
  return callsPerMinute === 0 ? "no limit" : String(callsPerMinute);
}

/** The application with this public key. Rejects with {@link noApplication} when there is none. */
export async function applicationOf(
  { applications }: Pick<Store, "applications">,
  publicKey: string,
): Promise<Application> {
  const application = await applications.findByPublicKey(publicKey);
  if (application === undefined) throw noApplication();
  return application;
}

/** The same for an active application, for what would be useless or unsafe while the application is disabled. */
export async function activeApplicationOf(store: Pick<Store, "applications">, publicKey: string): Promise<Application> {
  const application = await applicationOf(store, publicKey);
  if (application.state === "ACTIVE") return application;
  throw failure("This application is disabled. 'relay app update --enable' enables it again.");
}

/** The error for an unknown public key. */
export function noApplication(): Error {
  return failure("There is no application with this public key. 'relay app list' lists them.");
}

/** Checks the ids that a call would need as well. Throws a usage error. */
export function requireIds({ app, user }: { readonly app: string; readonly user: string }): void {
  try {
    requireCallerIds({ publicKey: app, userId: user });
  } catch (error) {
    throw usageError((error as Error).message, error);
  }
}

/** Options for the settings of an application. Options that are not given are absent. */
export interface SettingOptions {
  readonly name?: string;
  readonly callerAuth?: string;
  readonly allowOrigin?: readonly string[];
  readonly allowAddress?: readonly string[];
  readonly allowRedirect?: readonly string[];
  readonly callsPerMinute?: number;
  readonly connectionCallsPerMinute?: number;
  readonly maxTokenTtl?: number;
  readonly accentColor?: string;
  /** Read by {@link readIcon}. */
  readonly icon?: string | false;
}

/** Parses the options that are given. Throws a usage error that names the option. */
export function settingsFrom(options: SettingOptions): Partial<ApplicationSettings> {
  const { name, allowOrigin, allowAddress, allowRedirect, maxTokenTtl, accentColor } = options;
  const { callsPerMinute, connectionCallsPerMinute } = options;
  const callerAuth = CALLER_AUTH.get(options.callerAuth ?? "");
  if (maxTokenTtl !== undefined && maxTokenTtl > MAX_CALL_TOKEN_SECONDS)
    throw usageError("--max-token-ttl: a call token is valid for a day at most.");
  return {
    ...(name !== undefined && { name: nameFrom(name) }),
    ...(callerAuth && { callerAuth }),
    ...(allowOrigin && { allowedOrigins: valueFrom(parseList(allowOrigin, parseOrigin), "--allow-origin") }),
    ...(allowAddress && { allowedAddresses: valueFrom(parseList(allowAddress, parseCidr), "--allow-address") }),
    ...(allowRedirect && {
      allowedRedirectUris: valueFrom(parseList(allowRedirect, parseRedirectUri), "--allow-redirect"),
    }),
    ...(callsPerMinute !== undefined && { callsPerMinute }),
    ...(connectionCallsPerMinute !== undefined && { connectionCallsPerMinute }),
    ...(maxTokenTtl !== undefined && { maxCallTokenSeconds: maxTokenTtl }),
    ...(accentColor !== undefined && { accentColor: valueFrom(parseAccentColor(accentColor), "--accent-color") }),
  };
}

/** Parses an application's name. */
export function nameFrom(text: string): string {
  return valueFrom(parseDisplayName(text), "The name", "");
}

/** The parsed value. Throws a usage error when parsing failed. */
export function valueFrom<Value>(parsed: Parsed<Value>, option: string, colon = ":"): Value {
  if ("value" in parsed) return parsed.value;
  throw usageError(`${[option, parsed.entry].filter(Boolean).join(" ")}${colon} ${parsed.problem}.`);
}

/** Reads the file of `--icon`. Undefined without it; empty for `--no-icon`. Throws a usage error. */
export async function readIcon({ icon: file }: Pick<SettingOptions, "icon">): Promise<Uint8Array | undefined> {
  if (file === undefined) return undefined;
  return valueFrom(parseIcon(file === false ? new Uint8Array(0) : await readInputFile(file, MAX_ICON_BYTES)), "--icon");
}

/** More than can be stored. */
const MAX_RULES_BYTES = 1024 * 1024;

/** Reads the file of `--call-rules`: `{"github": [{"methods": ["GET"]}]}`. Undefined without it. */
export async function readCallRules(file: string | undefined): Promise<Readonly<Record<string, unknown>> | undefined> {
  if (file === undefined) return undefined;
  const bytes = await (file === "-" ? readStandardInput(MAX_RULES_BYTES) : readInputFile(file, MAX_RULES_BYTES));
  const value = uniqueObjectFrom(bytes, { maxDepth: 8 });
  if (value !== undefined) return value;
  throw usageError(
    '--call-rules: must be a JSON object without duplicate members, such as {"github": [{"methods": ["GET"]}]}.',
  );
}

/** The rules in the form in which they are stored. */
export async function callRulesFrom(
  written: Readonly<Record<string, unknown>> | undefined,
  { config }: OpenStore,
): Promise<CallRulesByProvider> {
  if (written === undefined) return {};
  return valueFrom(parseRulesOfProviders(Object.entries(written), await loadCatalog(config)), "--call-rules");
}
