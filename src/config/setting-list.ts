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
    "host:port of the administration port, or off; it speaks TLS where the public port does",
  ),
  doc(
    "RELAY_ADMIN_TOKEN_FILE",
    "data/admin.tokens",
    "admin tokens, NAME ROLE TOKEN a line; made at first use, must exist with NODE_ENV=production",
  ),
  doc(
    "RELAY_PUBLIC_URL",
    "",
    "https origin at which browsers reach the public port, without a path; where it listens by default, if that is https or loopback",
  ),
  doc(
    "RELAY_DATABASE",
    "sqlite:data/relay.db",
    "where applications and connections are kept: sqlite:PATH, or postgres://… for relays on several machines",
  ),
  doc(
    "RELAY_DATABASE_CONNECTIONS",
    "10",
    "connections of this process to PostgreSQL at most; those of all relays must fit into its max_connections",
  ),
  doc(
    "RELAY_DATABASE_TIMEOUT_MS",
    "5000",
    "a connection to PostgreSQL, and a statement there; a healthy one needs far less",
  ),
  doc(
    "RELAY_SPOOL",
    "",
    "folder on this machine for answers of providers that the database refuses, and for proof of which relays live; spool beside the SQLite file, or data/spool",
  ),
  doc(
    "RELAY_KEY_FILE",
    "data/relay.key",
    "keys that seal tokens; made at first use, must exist with NODE_ENV=production",
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
    "how long a kept provider socket must have been quiet before the next call; a provider's stray second answers are 1 to 5 ms late",
  ),
  doc("RELAY_TLS_CERT", "", "PEM certificate chain; with RELAY_TLS_KEY the public port speaks TLS"),
  doc("RELAY_TLS_KEY", "", "PEM private key of RELAY_TLS_CERT"),
  doc("RELAY_TRUSTED_PROXIES", "", "CIDRs, separated by ',', whose X-Forwarded-For is believed; nobody's by default"),
  doc(
    "RELAY_MAX_CLIENT_CONNECTIONS",
    String(DEFAULT_LIMITS.maxClientConnections),
    "connections of one client at once, an IPv4 address or an IPv6 /64: a quarter of what each process takes; trusted proxies have no limit",
  ),
  doc(
    "RELAY_MAX_CONNECTIONS",
    String(DEFAULT_LIMITS.maxConnections),
    "TCP connections of all clients to each process; below the usual 4,096 descriptors, with room for sockets to providers",
  ),
  doc(
    "RELAY_WRITE_TIMEOUT_MS",
    String(DEFAULT_LIMITS.writeTimeoutMs),
    "a client that takes nothing of its answer for so long is cut off, streams included; one that reads slowly is not. What waits for it is memory that others need",
  ),
  doc(
    "RELAY_WORKERS",
    "1",
    "processes on the one port: a number, or auto for one per core; SIGHUP replaces them one by one, and one alone ignores it",
  ),
  doc(
    "RELAY_HTTP_STATUS",
    "envelope",
    "HTTP status of the JSON route: 200 for every envelope, or mirror the row's statusCode",
  ),
  doc("RELAY_LOG_LEVEL", "info", `one of ${LOG_LEVELS.join(", ")}; info has one line per call`),
  doc("RELAY_METRICS", "on", "on or off; counts and times for GET /metrics on the operators' port"),
  doc("RELAY_TRACES", "off", "on or off; spans of calls for an OpenTelemetry SDK that is loaded beside the relay"),
  doc(
    "RELAY_CALL_RECORDS",
    "on",
    "on or off; the last calls of each application, for relay calls and the operators' port",
  ),
  doc(
    "RELAY_CALL_RECORDS_PER_APPLICATION",
    "10000",
    "calls of each application that are recorded; the oldest make room. About one megabyte",
  ),
  doc("RELAY_CALL_RECORDS_DAYS", "7", "how long a call stays recorded; a week is enough to look into a complaint"),
  doc("RELAY_DEADLINE_MS", "30000", "a call ends by then; below the 150 s after which clients repeat a call"),
  doc(
    "RELAY_REFRESH_TIMEOUT_MS",
    "120000",
    "a refresh request is listened to for so long, also when its callers have left: a refresh token is spent when it is sent, and only its answer has the next one",
  ),
  doc("RELAY_CONNECT_TIMEOUT_MS", "5000", "DNS, TCP and TLS to a provider; a healthy one needs far less"),
  doc("RELAY_MAX_REQUEST_BYTES", String(10 * MIB), "largest request body; room for a file as base64"),
  doc("RELAY_MAX_RESPONSE_BYTES", String(10 * MIB), "largest provider answer after decoding"),
  doc(
    "RELAY_MAX_BUFFERED_BYTES",
    String(256 * MIB),
    "bodies held over all calls in flight, shared out among applications; beyond it calls answer OVERLOADED",
  ),
  doc(
    "RELAY_MAX_IN_FLIGHT",
    "1000",
    "calls at once, shared out among applications: one alone gets 8/9 of them; beyond it calls answer OVERLOADED",
  ),
  doc(
    "RELAY_MAX_ORIGIN_CALLS",
    String(ORIGIN_LIMITS.maxConcurrent),
    "calls at once to one origin of a provider, in each process, shared out like RELAY_MAX_IN_FLIGHT, streams at most half of them; a slow provider must not take every socket",
  ),
  doc(
    "RELAY_MAX_ORIGIN_WAITING",
    String(ORIGIN_LIMITS.maxWaiting),
    "calls that wait for their turn there, in each process; beyond it calls answer OVERLOADED, so that others find room in RELAY_MAX_IN_FLIGHT",
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
