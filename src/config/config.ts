import { statSync } from "node:fs";
import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { isLoopbackHost, parseCidrList } from "../lib/address-list.js";
import { DATABASE_FORMAT, type DatabaseLocation, parseDatabaseLocation } from "./database-location.js";
import { runtimeProblems } from "./runtime-problems.js";
import {
  LOG_LEVELS,
  parseAddress,
  parseInteger,
  parseOneOf,
  parsePublicUrl,
  parseSwitch,
  SETTINGS,
} from "./setting-list.js";

/** Where the service listens. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** Everything the service can be told; made from the environment once, at start. */
export interface Config {
  readonly listen: ListenAddress;
  /** Where operators are served; `off`: nowhere. */
  readonly adminListen: ListenAddress | "off";
  /** In production a missing one stops the start instead of being created, as with the key file. */
  readonly adminTokenFile: string;
  /** `https://relay.example.com`, where browsers reach the public port; undefined: where it listens. */
  readonly publicUrl: string | undefined;
  readonly database: DatabaseLocation;
  /** Of PostgreSQL alone. */
  readonly databaseConnections: number;
  readonly databaseTimeoutMs: number;
  /** Where answers are kept that the database refuses; undefined: beside the SQLite file, or in data/spool. */
  readonly spool: string | undefined;
  readonly keyFile: string;
  /** In production a missing key file stops the start instead of being created. */
  readonly keyFileMustExist: boolean;
  readonly providers: readonly string[];
  readonly allowLoopback: boolean;
  readonly upstreamReuse: "origin" | "connection" | "never";
  readonly upstreamQuietMs: number;
  readonly tlsCertFile: string | undefined;
  readonly tlsKeyFile: string | undefined;
  readonly trustedProxies: readonly string[];
  /** Of all clients, in each process. */
  readonly maxConnections: number;
  /** Of one client address, in each process. */
  readonly maxClientConnections: number;
  readonly writeTimeoutMs: number;
  /** Processes that serve; 1: this one alone. */
  readonly workers: number;
  readonly httpStatus: "envelope" | "mirror";
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly metrics: "on" | "off";
  readonly traces: "on" | "off";
  readonly callRecords: "on" | "off";
  readonly callRecordsPerApplication: number;
  readonly callRecordsDays: number;
  readonly deadlineMs: number;
  readonly refreshTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly maxBufferedBytes: number;
  readonly maxInFlight: number;
  /** To one origin of a provider, in each process. */
  readonly maxOriginCalls: number;
  readonly maxOriginWaiting: number;
}

const MIB = 1024 * 1024;
const MAX_WORKERS = 128;
/** With the time to store an answer, within the longest lease (oauth/connection.ts). */
const MAX_REFRESH_TIMEOUT_MS = 300_000;

/** Read by `relay call`, which is a client; nothing the service needs to know. */
const CLIENT_VARIABLES = ["RELAY_PRIVATE_KEY"];

type SettingName = (typeof SETTINGS)[number]["name"];

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
  const config = configFromEnv(readerOf(env, wrong), env);
  const problems = [...wrong.values(), ...combinationProblems(config), ...runtimeProblems(env, execArgv)];
  return { config, problems, wrong: new Set(wrong.keys()) };
}

/** RELAY_ variables that this version does not know: worth a warning, since a typo would otherwise be silent. */
export function unknownSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = new Set<string>([...SETTINGS.map((setting) => setting.name), ...CLIENT_VARIABLES]);
  return Object.keys(env).filter((name) => name.startsWith("RELAY_") && !known.has(name));
}

type Reader = <T>(name: SettingName, parse: (text: string) => T | undefined, expected: string) => T;

function readerOf(env: Readonly<Record<string, string | undefined>>, wrong: Map<string, string>): Reader {
  return (name, parse, expected) => {
    const fallback = SETTINGS.find((setting) => setting.name === name)?.fallback ?? "";
    const given = env[name];
    const value = parse(given === undefined || given === "" ? fallback : given);
    if (value !== undefined) return value;
    wrong.set(name, `${name}: expected ${expected}`);
    return parse(fallback) as NonNullable<ReturnType<typeof parse>>;
  };
}

function configFromEnv(read: Reader, env: Readonly<Record<string, string | undefined>>): Config {
  const text = (value: string) => value;
  const optional = (name: SettingName) => read(name, text, "text") || undefined;
  const integer = (name: SettingName, min: number, max: number) =>
    read(name, (value) => parseInteger(value, min, max), `a whole number from ${min} to ${max}`);
  return {
    listen: read("RELAY_LISTEN", parseAddress, "host:port, such as 127.0.0.1:8080"),
    adminListen: read("RELAY_ADMIN_LISTEN", parseAdminListen, "host:port, such as 127.0.0.1:8081, or off"),
    adminTokenFile: read("RELAY_ADMIN_TOKEN_FILE", text, "a path"),
    publicUrl:
      read("RELAY_PUBLIC_URL", parsePublicUrl, "an https origin, such as https://relay.example.com") || undefined,
    database: read("RELAY_DATABASE", parseDatabaseLocation, DATABASE_FORMAT),
    databaseConnections: integer("RELAY_DATABASE_CONNECTIONS", 1, 1000),
    databaseTimeoutMs: integer("RELAY_DATABASE_TIMEOUT_MS", 100, 60_000),
    spool: optional("RELAY_SPOOL"),
    keyFile: read("RELAY_KEY_FILE", text, "a path"),
    keyFileMustExist: env["NODE_ENV"] === "production",
    providers: read("RELAY_PROVIDERS", text, "paths").split(":").filter(Boolean),
    allowLoopback: read("RELAY_ALLOW_LOOPBACK", parseSwitch, "true or false"),
    upstreamReuse: read(
      "RELAY_UPSTREAM_REUSE",
      parseOneOf("origin", "connection", "never"),
      "origin, connection or never",
    ),
    upstreamQuietMs: integer("RELAY_UPSTREAM_QUIET_MS", 0, 1000),
    tlsCertFile: optional("RELAY_TLS_CERT"),
    tlsKeyFile: optional("RELAY_TLS_KEY"),
    trustedProxies: read("RELAY_TRUSTED_PROXIES", parseCidrList, "CIDRs separated by ','"),
    maxConnections: integer("RELAY_MAX_CONNECTIONS", 1, 1_000_000),
    maxClientConnections: integer("RELAY_MAX_CLIENT_CONNECTIONS", 1, 100_000),
    writeTimeoutMs: integer("RELAY_WRITE_TIMEOUT_MS", 1000, 600_000),
    workers: read("RELAY_WORKERS", parseWorkers, `auto or a whole number from 1 to ${MAX_WORKERS}`),
    httpStatus: read("RELAY_HTTP_STATUS", parseOneOf("envelope", "mirror"), "envelope or mirror"),
    metrics: read("RELAY_METRICS", parseOneOf("on", "off"), "on or off"),
    traces: read("RELAY_TRACES", parseOneOf("off", "on"), "on or off"),
    logLevel: read("RELAY_LOG_LEVEL", parseOneOf(...LOG_LEVELS), `one of ${LOG_LEVELS.join(", ")}`),
    callRecords: read("RELAY_CALL_RECORDS", parseOneOf("on", "off"), "on or off"),
    callRecordsPerApplication: integer("RELAY_CALL_RECORDS_PER_APPLICATION", 100, 1_000_000),
    callRecordsDays: integer("RELAY_CALL_RECORDS_DAYS", 1, 365),
    deadlineMs: integer("RELAY_DEADLINE_MS", 100, 120_000),
    refreshTimeoutMs: integer("RELAY_REFRESH_TIMEOUT_MS", 1000, MAX_REFRESH_TIMEOUT_MS),
    connectTimeoutMs: integer("RELAY_CONNECT_TIMEOUT_MS", 50, 60_000),
    maxRequestBytes: integer("RELAY_MAX_REQUEST_BYTES", 1024, 1024 * MIB),
    maxResponseBytes: integer("RELAY_MAX_RESPONSE_BYTES", 1024, 1024 * MIB),
    maxBufferedBytes: integer("RELAY_MAX_BUFFERED_BYTES", MIB, 64 * 1024 * MIB),
    maxInFlight: integer("RELAY_MAX_IN_FLIGHT", 1, 100_000),
    maxOriginCalls: integer("RELAY_MAX_ORIGIN_CALLS", 1, 100_000),
    maxOriginWaiting: integer("RELAY_MAX_ORIGIN_WAITING", 0, 100_000),
  };
}

function parseAdminListen(text: string): ListenAddress | "off" | undefined {
  return text === "off" ? text : parseAddress(text);
}

function parseWorkers(text: string): number | undefined {
  return text === "auto" ? availableParallelism() : parseInteger(text, 1, MAX_WORKERS);
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
  const unknown = unknownSettings(env).map((setting) => ({
    setting,
    text: "is not a setting of this version and is ignored",
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
