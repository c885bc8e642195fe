import { statSync } from "node:fs";
import { isIP } from "node:net";
import { isLoopbackHost } from "../lib/address-list.js";
import { didYouMean } from "../lib/similar.js";
import { runtimeProblems } from "./runtime-problems.js";
import { parsePublicUrl, SETTINGS, type Setting, type Settings, TABLE } from "./setting-list.js";

/** Where a port listens. */
type ListenAddress = Settings["listen"];

/** Everything the service can be told; made from the environment once, at start. */
export interface Config extends Settings {
  /** In production a missing key file stops the start instead of being created. */
  readonly keyFileMustExist: boolean;
}

/** Read by `relay call`, which is a client; nothing the service needs to know. */
const CLIENT_VARIABLES = ["RELAY_PRIVATE_KEY"];

/**
 * Reads the environment. Pure: returns the configuration, or every problem at once, each naming its variable.
 *
 * @param execArgv flags of the Node.js process, judged because some of them switch guards off.
 */
export function parseConfig(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[] = [],
): { readonly config: Config } | { readonly problems: readonly string[] } {
  const { config, problems } = readConfig(env, execArgv);
  return problems.length > 0 ? { problems } : { config };
}

/**
 * The same for whoever looks further into a configuration that has problems: where a variable is wrong, its default
 * stands, and `wrong` names it.
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

/** RELAY_ variables that this version does not know: worth a warning, since a typo would otherwise be silent. */
export function unknownSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set([...SETTINGS.map(({ name }) => name), ...CLIENT_VARIABLES]);
  return Object.keys(env).filter((name) => name.startsWith("RELAY_") && !known.has(name));
}

/** Settings that are each fine but not together. */
function combinationProblems(config: Config): string[] {
  const problems = [
    ...listenProblems(config, "RELAY_LISTEN", config.listen),
    ...(config.adminListen === "off" ? [] : listenProblems(config, "RELAY_ADMIN_LISTEN", config.adminListen)),
  ];
  if (config.adminListen !== "off" && isSamePort(config.listen, config.adminListen)) {
    problems.push("RELAY_ADMIN_LISTEN: must be another port than that of RELAY_LISTEN");
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
  if (isIP(host) === 0 && host !== "localhost") return [`${name}: the host must be an IP address or localhost`];
  if (!allowLoopback || isLoopbackHost(host)) return [];
  return [`RELAY_ALLOW_LOOPBACK: is for development and cannot be used with a non-loopback ${name}`];
}

/** Two ports that the system chooses are never the same. */
function isSamePort(one: ListenAddress, other: ListenAddress): boolean {
  return one.port !== 0 && one.port === other.port && one.host === other.host;
}

/** `http://host:port` of a listener, or https with a certificate. */
export function listenUrlFrom({ tlsCertFile }: Pick<Config, "tlsCertFile">, { host, port }: ListenAddress): string {
  return `${tlsCertFile === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/**
 * The origin at which browsers reach a listener: what the operator says, else where it listens, if that is https or
 * this machine. Undefined when the operator has to say it: authorization codes do not travel in the clear, and nothing
 * is reached at the name of all addresses.
 */
export function publicUrlFrom(
  config: Pick<Config, "publicUrl" | "tlsCertFile">,
  address: ListenAddress,
): string | undefined {
  if (config.publicUrl !== undefined) return config.publicUrl;
  const isUnspecified = address.host === "0.0.0.0" || address.host === "::";
  return isUnspecified ? undefined : parsePublicUrl(new URL(listenUrlFrom(config, address)).origin);
}

/** Something about a setting that the operator should know, and why. */
interface SettingRemark {
  readonly setting: string;
  readonly text: string;
}

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

const CLEARTEXT =
  "can be reached without TLS: set RELAY_TLS_CERT and RELAY_TLS_KEY, or let only a proxy with TLS reach it";

/**
 * What does not stop a start and is worth a warning: settings that this version does not know, proxies that are not used,
 * admin tokens that cross a network in cleartext, secrets that others can read.
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
    text: "is ignored: the relay connects to providers itself, since it judges the address that it dials",
  }));
  const isCleartext = adminListen !== "off" && tlsCertFile === undefined && !isLoopbackHost(adminListen.host);
  return [
    ...unknown,
    ...proxies,
    ...(isCleartext ? [{ setting: "RELAY_ADMIN_LISTEN", text: CLEARTEXT }] : []),
    ...exposedFiles(config).filter(({ isToAll }) => !(isToAll && keyFileMustExist)),
  ];
}

/** Secrets that every user of the machine can read: in production they stop the start. */
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
    const stats = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    const isToAll = (stats.mode & 0o004) !== 0;
    // A process that is not the owner reads the file by its group: that is how a mounted secret is shared.
    const isToGroup = (stats.mode & 0o040) !== 0 && stats.uid === process.getuid?.();
    const others = isToAll ? "every user of this machine" : "its group";
    return isToAll || isToGroup ? [{ setting, text: `${file} can be read by ${others}; chmod 0600 it`, isToAll }] : [];
  });
}
