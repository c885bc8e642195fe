import { DEFAULT_LIMITS } from "../http/limits.js";
import { isLoopbackHost } from "../lib/address-list.js";
import { parseUrl } from "../lib/parse-url.js";
import { ORIGIN_LIMITS } from "../upstream/request.js";

/** Words of RELAY_LOG_LEVEL. */
export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

const MIB = 1024 * 1024;

/** One setting as `relay serve --help` and docs/configuration.md print it. */
interface SettingDoc {
  readonly name: string;
  /** Text of the default; empty when there is none. */
  readonly fallback: string;
  readonly about: string;
}

/** Every setting, its default and the reason for it. */
export const SETTINGS = [
  doc("RELAY_LISTEN", "127.0.0.1:8080", "host:port of the public port; loopback until you decide who may reach it"),
  doc(
    "RELAY_ADMIN_LISTEN",
    "127.0.0.1:8081",
    "host:port of the administration port, or off; it uses TLS if the public port does",
  ),
  doc(
    "RELAY_ADMIN_TOKEN_FILE",
    "data/admin.tokens",
    "admin tokens, one NAME ROLE TOKEN per line; created at the first start, must exist with NODE_ENV=production",
  ),
  doc(
    "RELAY_PUBLIC_URL",
    "",
    "https origin at which browsers reach the public port, without a path; by default where it listens, if that is https or loopback",
  ),
  doc(
    "RELAY_DATABASE",
    "sqlite:data/relay.db",
    "where applications and connections are stored: sqlite:PATH, or postgres://… for relays on several machines",
  ),
  doc(
    "RELAY_DATABASE_CONNECTIONS",
    "10",
    "most connections of this process to PostgreSQL; those of all relays must fit into its max_connections",
  ),
  doc(
    "RELAY_DATABASE_TIMEOUT_MS",
    "5000",
    "time limit for connecting to PostgreSQL, and for a statement; a healthy one needs far less",
  ),
  doc(
    "RELAY_SPOOL",
    "",
    "folder on this machine for token answers that the database cannot take right now, and for the locks that show which relays are alive; by default spool beside the SQLite file, or data/spool",
  ),
  doc(
    "RELAY_KEY_FILE",
    "data/relay.key",
    "keys that seal tokens; created at the first start, must exist with NODE_ENV=production",
  ),
  doc(
    "RELAY_PROVIDERS",
    "",
    "further provider definitions: files or folders, separated by ':'; they override the catalogue",
  ),
  doc(
    "RELAY_ALLOW_LOOPBACK",
    "false",
    "allow http and loopback providers for development; only with a loopback RELAY_LISTEN",
  ),
  doc("RELAY_UPSTREAM_REUSE", "origin", "who may share a kept-alive provider socket: origin, connection, or never"),
  doc(
    "RELAY_UPSTREAM_QUIET_MS",
    "10",
    "how long a kept provider socket must be quiet before the next call; stray second answers of a provider come 1 to 5 ms late",
  ),
  doc("RELAY_TLS_CERT", "", "PEM certificate chain; together with RELAY_TLS_KEY it turns on TLS"),
  doc("RELAY_TLS_KEY", "", "PEM private key of RELAY_TLS_CERT"),
  doc(
    "RELAY_TRUSTED_PROXIES",
    "",
    "CIDRs of proxies, separated by ',', whose X-Forwarded-For is trusted; none by default",
  ),
  doc(
    "RELAY_MAX_CLIENT_CONNECTIONS",
    String(DEFAULT_LIMITS.maxClientConnections),
    "most open connections of one client (an IPv4 address or an IPv6 /64) to each process: a quarter of RELAY_MAX_CONNECTIONS; trusted proxies have no limit",
  ),
  doc(
    "RELAY_MAX_CONNECTIONS",
    String(DEFAULT_LIMITS.maxConnections),
    "most open TCP connections of all clients to each process; below the usual 4,096 descriptors, with room for sockets to providers",
  ),
  doc(
    "RELAY_WRITE_TIMEOUT_MS",
    String(DEFAULT_LIMITS.writeTimeoutMs),
    "a client that reads nothing of its answer for this long is disconnected, streams included; a slow reader is not. Unread answers take memory that others need",
  ),
  doc(
    "RELAY_WORKERS",
    "1",
    "processes on the port: a number, or auto for one per core. With two or more, SIGHUP restarts them one by one; a single process ignores it",
  ),
  doc(
    "RELAY_HTTP_STATUS",
    "envelope",
    "HTTP status of the JSON route: 200 for every envelope, or mirror the row's statusCode",
  ),
  doc("RELAY_LOG_LEVEL", "info", `one of ${LOG_LEVELS.join(", ")}; info has one line per call`),
  doc("RELAY_METRICS", "on", "on or off; GET /metrics on the administration port"),
  doc("RELAY_TRACES", "off", "on or off; spans of calls, for an OpenTelemetry SDK that you load into the relay"),
  doc(
    "RELAY_CALL_RECORDS",
    "on",
    "on or off; records of the last calls of each application, for relay calls and the administration port",
  ),
  doc(
    "RELAY_CALL_RECORDS_PER_APPLICATION",
    "10000",
    "most records kept per application, about one megabyte; the oldest are deleted first",
  ),
  doc("RELAY_CALL_RECORDS_DAYS", "7", "how long records are kept; a week is enough to look into a complaint"),
  doc("RELAY_DEADLINE_MS", "30000", "deadline of a whole call; below the 150 s after which clients repeat a call"),
  doc(
    "RELAY_REFRESH_TIMEOUT_MS",
    "120000",
    "how long to wait for the answer to a refresh request, even when no caller waits any more: the refresh token is used up once it is sent, and only the answer has the next one",
  ),
  doc(
    "RELAY_CONNECT_TIMEOUT_MS",
    "5000",
    "time limit for DNS, TCP and TLS to a provider; a healthy one needs far less",
  ),
  doc("RELAY_MAX_REQUEST_BYTES", String(10 * MIB), "largest request body; room for a file as base64"),
  doc("RELAY_MAX_RESPONSE_BYTES", String(10 * MIB), "largest provider answer after decoding"),
  doc(
    "RELAY_MAX_BUFFERED_BYTES",
    String(256 * MIB),
    "memory for the bodies of all calls in flight, shared among applications; beyond it calls answer OVERLOADED",
  ),
  doc(
    "RELAY_MAX_IN_FLIGHT",
    "1000",
    "most calls at once, shared among applications (a single one gets 8/9 of them); beyond it calls answer OVERLOADED",
  ),
  doc(
    "RELAY_MAX_ORIGIN_CALLS",
    String(ORIGIN_LIMITS.maxConcurrent),
    "most calls at once to one origin, per process, shared like RELAY_MAX_IN_FLIGHT, at most half of them streams; a slow provider must not take every socket",
  ),
  doc(
    "RELAY_MAX_ORIGIN_WAITING",
    String(ORIGIN_LIMITS.maxWaiting),
    "most calls waiting for one origin, per process; beyond it calls answer OVERLOADED, so that calls to other origins find room in RELAY_MAX_IN_FLIGHT",
  ),
] as const;

function doc<const Name extends string>(name: Name, fallback: string, about: string) {
  return { name, fallback, about } as const satisfies SettingDoc;
}

/** `host:port`; IPv6 hosts in brackets. Undefined when it is not one. */
export function parseAddress(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** A whole number within bounds, in plain digits. */
export function parseInteger(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** `true` or `false`, also `1` and `0`. */
export function parseSwitch(text: string): boolean | undefined {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

/** One of the given words, exactly. */
export function parseOneOf<const Word extends string>(...words: Word[]): (text: string) => Word | undefined {
  return (text) => words.find((word) => word === text);
}

/** An https origin, or one of http on this machine; empty for none. Undefined when it is neither. */
export function parsePublicUrl(text: string): string | undefined {
  if (text === "") return text;
  const url = parseUrl(text);
  if (url === undefined) return undefined;
  const { origin, protocol, hostname } = url;
  const isAllowed = protocol === "https:" || (protocol === "http:" && isLoopbackHost(hostname.replace(/^\[|\]$/g, "")));
  return isAllowed && origin === text ? text : undefined;
}
