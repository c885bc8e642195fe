import type { ProviderCallRulesJson } from "../../gen/relay/admin/v1/application_pb.js";
import { ApiError } from "./loading.js";
import type { Methods } from "./methods.js";
import { quoted } from "./snippets.js";
import { objectFrom, UNSEEN } from "./text.js";

/** A `relay` command equivalent to a request of the administration API. */
export interface Command {
  readonly text: string;
  /** Describes the file that the command reads, since secrets are never arguments. Undefined when it reads none. */
  readonly input?: string;
}

/** The methods that the console's forms call. */
export type ActionName = Exclude<
  keyof Methods,
  `${string}Service/${"Get" | "List"}${string}` | "CallService/PerformCall" | "OAuthClientService/CreateOAuthClient"
>;

/** The `relay` command for a request, with placeholders in capitals for missing values. Contains no secret. Pure. */
export function commandFor<Name extends ActionName>(method: Name, request: Methods[Name][0]): Command {
  return COMMANDS[method](request);
}

const CALLER_AUTH: Readonly<Record<string, string>> = {
  CALLER_AUTH_PUBLIC_KEY: "public-key",
  CALLER_AUTH_SIGNED_USER: "signed-user",
  CALLER_AUTH_PRIVATE_KEY: "private-key",
};

const COMMANDS: { readonly [Name in ActionName]: (request: Methods[Name][0]) => Command } = {
  "ApplicationService/CreateApplication": ({ application }) => {
    const { publicKey, displayName } = application ?? {};
    const options = [...option("--public-key", publicKey), ...applicationOptions(application ?? {}, undefined)];
    const command = withRules(relay("app create", options, displayName || "NAME"), application?.callRules ?? []);
    return { ...command, ...iconInput(application?.icon) };
  },
  "ApplicationService/UpdateApplication": ({ application, updateMask = "" }) => {
    const { publicKey = "", displayName, state } = application ?? {};
    if (updateMask === "state")
      return relay("app update", [state === "STATE_DISABLED" ? "--disable" : "--enable"], publicKey);
    const mask = new Set(updateMask.split(","));
    const name = mask.has("displayName") ? option("--name", displayName || "NAME") : [];
    const options = [...name, ...applicationOptions(application ?? {}, mask)];
    const rules = mask.has("callRules") ? application?.callRules : undefined;
    const command = withRules(relay("app update", options, publicKey), rules ?? []);
    return { ...command, ...iconInput(mask.has("icon") ? application?.icon : "") };
  },
  "ApplicationService/DeleteApplication": ({ publicKey }) => relay("app delete", [], publicKey),
  "ApplicationService/RotateApplicationKey": ({ publicKey }) => relay("app rotate-key", [], publicKey),
  "ApplicationService/CreateCallToken": (request) => relay("token create", tokenOptions(request)),
  "CallService/ExplainCall": ({
    call: { publicKey = "", userId = "", providerName, call } = {},
    callTokenTerms = {},
  }) => {
    const user = [...option("--app", publicKey), ...option("--user", userId || "USER")];
    const { text: token } = relay("token create", tokenOptions({ publicKey, userId, ...callTokenTerms }));
    const words = `call ${shellText(providerName || "PROVIDER")}`;
    const { text } = relay(words, [...user, ...option("-X", call?.method), "--explain"], call?.url || "URL");
    return { text: `RELAY_PRIVATE_KEY=$(${token}) ${text}` };
  },
  "CallRecordService/StartCallCapture": ({ publicKey, duration = "" }) =>
    relay("app capture", option("--minutes", String(Number.parseInt(duration, 10) / 60)), publicKey),
  "CallRecordService/StopCallCapture": ({ publicKey }) => relay("app capture", ["--off"], publicKey),
  "OAuthClientService/UpdateOAuthClient": ({ oauthClient }) => {
    const { publicKey, providerName, originParameters = {} } = oauthClient ?? {};
    const options = [...named(publicKey, undefined, providerName), ...pairs("--param", originParameters)];
    const input =
      'client.json holds {"client_id": "…", "client_secret": "…", "scope": "…"}; the last two are optional.';
    return reading(relay("client put", options), "client.json", input);
  },
  "OAuthClientService/DeleteOAuthClient": ({ publicKey, providerName }) =>
    relay("client delete", named(publicKey, undefined, providerName)),
  "ConnectionService/CreateConnectLink": ({ publicKey, userId, providerNames = [], redirectUri, scope }) => {
    const providers = providerNames.length > 1 ? "--providers" : "--provider";
    return relay("connection link", [
      ...[...option("--app", publicKey), ...option("--user", userId || "USER")],
      ...option(providers, providerNames.join(",")),
      ...[...option("--redirect-uri", redirectUri), ...option("--scope", scope)],
    ]);
  },
  "ConnectionService/PutConnection": ({ publicKey, userId, providerName, originParameters = {}, secrets = {} }) => {
    const options = [...named(publicKey, userId || "USER", providerName), ...pairs("--param", originParameters)];
    const names = Object.keys(secrets).map((name) => `"${name}": "…"`);
    const answer = '{"access_token": "…"} and the rest of the token response';
    const input = `connection.json holds ${names.length === 0 ? answer : `{${names.join(", ")}}`}.`;
    return reading(relay("connection put", options), "connection.json", input);
  },
  "ConnectionService/DeleteConnection": ({ publicKey, userId, providerName, skipRevocation }) =>
    relay("connection delete", [
      ...named(publicKey, userId || "USER", providerName),
      ...(skipRevocation ? ["--no-revoke"] : []),
    ]),
  "ConnectionService/RefreshConnection": ({ publicKey, userId, providerName }) =>
    relay("connection refresh", named(publicKey, userId || "USER", providerName)),
  "WebhookService/SendTestEvent": ({ publicKey }) => relay("webhook test", option("--app", publicKey)),
  "WebhookService/PutWebhook": ({ webhook }) =>
    relay("webhook put", option("--app", webhook?.publicKey), webhook?.uri || "URI"),
  "WebhookService/DeleteWebhook": ({ publicKey }) => relay("webhook delete", option("--app", publicKey)),
};

type TokenRequest = Methods["ApplicationService/CreateCallToken"][0];

function tokenOptions({ publicKey, userId, providerNames = [], rules = [], lifetimeSeconds }: TokenRequest): string[] {
  const { methods = [], hosts = [], paths = [] } = rules[0] ?? {};
  return [
    ...option("--app", publicKey),
    ...option("--user", userId || "USER"),
    ...each("--provider", providerNames),
    ...option("--ttl", lifetimeSeconds ? `${lifetimeSeconds}s` : ""),
    ...[...each("--method", methods), ...each("--host", hosts), ...each("--path", paths)],
  ];
}

type ApplicationSettings = NonNullable<Methods["ApplicationService/CreateApplication"][0]["application"]>;

/**
 * @param mask the fields of an update; undefined for a new application. Empty fields in the mask get an option that
 *   clears them, since the command keeps what it does not name.
 */
function applicationOptions(settings: ApplicationSettings, mask: ReadonlySet<string> | undefined): readonly string[] {
  const { allowedOrigins = [], allowedAddresses = [], allowedRedirectUris = [], callRules = [] } = settings;
  const { accentColor = "", icon = "" } = settings;
  const of = (field: keyof ApplicationSettings, options: readonly string[]) =>
    mask === undefined || mask.has(field) ? options : [];
  const list = (name: string, texts: readonly string[], none: string) =>
    texts.length === 0 && mask !== undefined ? [none] : each(name, texts);
  const number = (name: string, count = 0) => (count === 0 && mask === undefined ? [] : option(name, String(count)));
  const lifetime = lifetimeText(settings.maxCallTokenSeconds, mask !== undefined);
  return [
    ...of("callerAuth", option("--caller-auth", CALLER_AUTH[settings.callerAuth ?? ""] ?? "public-key")),
    ...of("allowedOrigins", list("--allow-origin", allowedOrigins, "--no-origins")),
    ...of("allowedAddresses", list("--allow-address", allowedAddresses, "--no-addresses")),
    ...of("allowedRedirectUris", list("--allow-redirect", allowedRedirectUris, "--no-redirects")),
    ...of("callsPerMinute", number("--calls-per-minute", settings.callsPerMinute)),
    ...of("connectionCallsPerMinute", number("--connection-calls-per-minute", settings.connectionCallsPerMinute)),
    ...of("maxCallTokenSeconds", option("--max-token-ttl", lifetime)),
    ...of(
      "accentColor",
      accentColor === "" && mask !== undefined ? ["--accent-color ''"] : option("--accent-color", accentColor),
    ),
    ...of("icon", icon === "" ? (mask === undefined ? [] : ["--no-icon"]) : ["--icon ICON_FILE"]),
    ...of("callRules", callRules.length > 0 ? ["--call-rules", "-"] : mask === undefined ? [] : ["--no-call-rules"]),
  ];
}

function iconInput(icon = ""): Pick<Command, "input"> {
  return icon === "" ? {} : { input: "ICON_FILE is the file that holds the picture." };
}

/** The API's 0 means a day; the command does not accept 0. */
function lifetimeText(seconds = 0, isUpdate: boolean): string {
  return seconds === 0 ? (isUpdate ? "24h" : "") : `${seconds}s`;
}

/** Rules are not secret, so the command contains them. */
function withRules({ text }: Command, rules: readonly ProviderCallRulesJson[]): Command {
  if (rules.length === 0) return { text };
  return { text: `printf %s ${shellText(textFromRules(rules))} | ${text}` };
}

/** Rules as JSON for the command line and the console's form: `{"github": [{"methods": ["GET"]}]}`. Pure. */
export function textFromRules(rules: readonly ProviderCallRulesJson[]): string {
  return rules.length === 0
    ? ""
    : JSON.stringify(Object.fromEntries(rules.map(({ providerName = "", rules: all = [] }) => [providerName, all])));
}

const RULES = "application.call_rules";
const NO_RULES = 'The rules must be a JSON object of lists, such as {"github": [{"methods": ["GET"]}]}.';

/** The inverse of {@link textFromRules}. The relay validates the rules themselves. Throws ApiError. Pure. */
export function rulesFromText(text: string): ProviderCallRulesJson[] {
  return Object.entries(objectFrom(text, RULES, NO_RULES)).map(([providerName, rules]) => {
    if (Array.isArray(rules)) return { providerName, rules };
    throw new ApiError("invalid_argument", NO_RULES, RULES);
  });
}

function named(publicKey: string | undefined, userId: string | undefined, providerName: string | undefined): string[] {
  return [
    ...option("--app", publicKey || "PUBLIC_KEY"),
    ...option("--user", userId),
    ...option("--provider", providerName || "PROVIDER"),
  ];
}

/** The console's own words need no quotes. The argument comes last, after `--` if it looks like an option. */
function relay(words: string, options: readonly string[], argument?: string): Command {
  const last = argument === undefined ? [] : [...(argument.startsWith("-") ? ["--"] : []), shellText(argument)];
  return { text: ["relay", words, ...options, ...last].join(" ") };
}

function reading({ text }: Command, file: string, input: string): Command {
  return { text: `${text} < ${file}`, input };
}

function option(name: string, value: string | undefined): string[] {
  if (value === undefined || value === "") return [];
  return [value.startsWith("-") ? `${name}=${shellText(value)}` : `${name} ${shellText(value)}`];
}

function each(name: string, values: readonly string[]): string[] {
  return values.flatMap((value) => option(name, value));
}

function pairs(name: string, values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([key, value]) => option(name, `${key}=${value}`));
}

const PLAIN = /^[\w@%+:,./=-]+$/;

/** Quotes text as one shell word; control and format characters become `$'…'` byte escapes (bash, zsh, ksh). */
function shellText(text: string): string {
  if (PLAIN.test(text)) return text;
  if (text.search(UNSEEN) === -1) return quoted(text);
  return `$'${text.replace(/['\\]/g, "\\$&").replace(UNSEEN, bytesOf)}'`;
}

/** Octal, since it has at most three digits: a digit that follows is not read as part of it. */
function bytesOf(character: string): string {
  return Array.from(new TextEncoder().encode(character), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}
