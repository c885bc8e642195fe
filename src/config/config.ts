import { type Stats, statSync } from "node:fs";
import { createAddressMatcher, isLoopbackHost } from "../lib/address-list.js";
import { didYouMean } from "../lib/similar.js";
import { runtimeProblems } from "./runtime-problems.js";
import { parsePublicUrl, SETTINGS, type Setting, type Settings, TABLE } from "./setting-list.js";

type ListenAddress = Settings["listen"];

/** The configuration of the service, built once from the environment, at start. */
export interface Config extends Settings {
  /** In production a missing key file stops the start instead of being created. */
  readonly keyFileMustExist: boolean;
}

/** Variables for `relay call`, which is a client. The service does not use them. */
const CLIENT_VARIABLES = ["RELAY_PRIVATE_KEY"];

/**
 * Parses the environment. Pure: returns the configuration, or every problem at once, each naming its variable.
 *
 * @param execArgv flags of the Node.js process, checked because some of them disable safeguards.
 */
export function parseConfig(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[] = [],
): { readonly config: Config } | { readonly problems: readonly string[] } {
  const { config, problems } = readConfig(env, execArgv);
  return problems.length > 0 ? { problems } : { config };
}

/**
 * The same for callers that go on with a configuration that has problems: an invalid variable gets its default and is
 * listed in `wrong`.
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[] = [],
): { readonly config: Config; readonly problems: readonly string[]; readonly wrong: ReadonlySet<string> } {
  const wrong = new Map<string, string>();
  const values = Object.entries<Setting<unknown>>(TABLE).map(
    ([member, { name, fallback, parse, expected, isOptional }]) => {
      const value = parse(env[name] || fallback);
      if (value === undefined) wrong.set(name, `${name}: expected ${expected}`);
      const isUnset = isOptional && value === "";
      return [member, isUnset ? undefined : (value ?? parse(fallback))] as const;
    },
  );
  const config: Config = {
    ...(Object.fromEntries(values) as Settings),
    keyFileMustExist: env["NODE_ENV"] === "production",
  };
  const problems = [...wrong.values(), ...combinationProblems(config), ...runtimeProblems(env, execArgv)];
  return { config, problems, wrong: new Set(wrong.keys()) };
}

/**
 * RELAY_ variables that this version does not know. They deserve a warning, since a typo would otherwise go unnoticed.
 */
export function unknownSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([...SETTINGS.map(({ name }) => name), ...CLIENT_VARIABLES]);
  return Object.keys(env).filter((name) => name.startsWith("RELAY_") && !known.has(name));
}

/** Settings that are valid alone but not in combination. */
function combinationProblems(config: Config): string[] {
  const problems = [
    ...listenProblems(config, "RELAY_LISTEN", config.listen),
    ...(config.adminListen === "off" ? [] : listenProblems(config, "RELAY_ADMIN_LISTEN", config.adminListen)),
  ];
  if (config.adminListen !== "off" && isSamePort(config.listen, config.adminListen)) {
    problems.push("RELAY_ADMIN_LISTEN: must use a different port from RELAY_LISTEN");
  }
  if (config.allowLoopback && config.keyFileMustExist) {
    problems.push("RELAY_ALLOW_LOOPBACK: is for development and cannot be used with NODE_ENV=production");
  }
  if ((config.tlsCertFile === undefined) !== (config.tlsKeyFile === undefined)) {
    problems.push("RELAY_TLS_CERT, RELAY_TLS_KEY: set both or neither");
  }
  return problems;
}

function listenProblems({ allowLoopback }: Config, name: string, { host }: ListenAddress): string[] {
  if (!allowLoopback || isLoopbackHost(host)) return [];
  return [`RELAY_ALLOW_LOOPBACK: is for development and cannot be used with a non-loopback ${name}`];
}

/** Whether two listeners would take the same port of the same address. Ports chosen by the system (0) never do. */
function isSamePort(one: ListenAddress, other: ListenAddress): boolean {
  return one.port !== 0 && one.port === other.port && (includes(one, other) || includes(other, one));
}

function includes({ host }: ListenAddress, other: ListenAddress): boolean {
  const ip = (name: string) => (name === "localhost" ? "127.0.0.1" : name);
  return createAddressMatcher([{ "0.0.0.0": "0.0.0.0/0", "::": "::/0" }[host] ?? ip(host)])(ip(other.host));
}

/** `http://host:port` of a listener, or https with a certificate. */
export function listenUrlFrom({ tlsCertFile }: Pick<Config, "tlsCertFile">, { host, port }: ListenAddress): string {
  return `${tlsCertFile === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The same as this machine reaches it: a listener on all addresses is reached at the loopback address. */
export function localUrlFrom(config: Pick<Config, "tlsCertFile">, { host, port }: ListenAddress): string {
  return listenUrlFrom(config, { host: { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host, port });
}

/**
 * The origin at which browsers reach a listener: RELAY_PUBLIC_URL, or else its own address if that is https or
 * loopback. Undefined when the operator must set it: authorization codes must not travel in the clear, and the
 * unspecified address cannot be reached.
 */
export function publicUrlFrom(
  config: Pick<Config, "publicUrl" | "tlsCertFile">,
  address: ListenAddress,
): string | undefined {
  if (config.publicUrl !== undefined) return config.publicUrl;
  const isUnspecified = address.host === "0.0.0.0" || address.host === "::";
  return isUnspecified ? undefined : parsePublicUrl(new URL(listenUrlFrom(config, address)).origin);
}

/** A warning about a setting. */
interface SettingRemark {
  readonly setting: string;
  readonly text: string;
}

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

const CLEARTEXT =
  "can be reached without TLS: set RELAY_TLS_CERT and RELAY_TLS_KEY, or let only a proxy with TLS reach it";

/**
 * Warnings that do not prevent the start: unknown settings, proxies that are not used, admin tokens sent over a network
 * in cleartext, secrets that other users can read.
 */
export function configWarnings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
): readonly SettingRemark[] {
  const { adminListen, tlsCertFile, keyFileMustExist } = config;
  const names = SETTINGS.map(({ name }) => name);
  const unknown = unknownSettings(env).map((setting) => ({
    setting,
    text: `is not a setting of this version and is ignored${didYouMean(setting, names)}`,
  }));
  const proxies = PROXIES.filter((name) => env[name]).map((setting) => ({
    setting,
    text: "is ignored: the relay connects to providers directly, because it must check the address it dials",
  }));
  const isCleartext = adminListen !== "off" && tlsCertFile === undefined && !isLoopbackHost(adminListen.host);
  return [
    ...unknown,
    ...proxies,
    ...(isCleartext ? [{ setting: "RELAY_ADMIN_LISTEN", text: CLEARTEXT }] : []),
    ...exposedFiles(config).filter(({ isToAll }) => !(isToAll && keyFileMustExist)),
  ];
}

/** Secrets that every user of the machine can read. In production they prevent the start. */
export function exposureProblems(config: Config): readonly string[] {
  if (!config.keyFileMustExist) return [];
  return exposedFiles(config).flatMap(({ setting, text, isToAll }) => (isToAll ? [`${setting}: ${text}`] : []));
}

function exposedFiles(config: Config): ReadonlyArray<SettingRemark & { readonly isToAll: boolean }> {
  const { keyFile, adminTokenFile, adminListen, tlsKeyFile } = config;
  const files = [
    ["RELAY_KEY_FILE", keyFile],
    ["RELAY_ADMIN_TOKEN_FILE", adminListen === "off" ? undefined : adminTokenFile],
    ["RELAY_TLS_KEY", tlsKeyFile],
  ] as const;
  return files.flatMap(([setting, file]) => {
    const stats = file === undefined ? undefined : statsOf(file);
    if (stats === undefined) return [];
    const isToAll = (stats.mode & 0o004) !== 0;
    // A process that does not own the file may read it through its group: that is how mounted secrets are shared.
    const isToGroup = (stats.mode & 0o040) !== 0 && stats.uid === process.getuid?.();
    const others = isToAll ? "every user of this machine" : "its group";
    return isToAll || isToGroup ? [{ setting, text: `${file} can be read by ${others}; chmod 0600 it`, isToAll }] : [];
  });
}

function statsOf(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    // The code that reads the file reports it, with its setting.
    return undefined;
  }
}
