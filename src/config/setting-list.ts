import { isIP, SocketAddress } from "node:net";
import { availableParallelism } from "node:os";
import { DEFAULT_LIMITS } from "../http/limits.js";
import { isLoopbackHost, parseCidrList } from "../lib/address-list.js";
import { parseUrl } from "../lib/parse-url.js";
import { CALL_LIMITS } from "../upstream/request.js";
import { DATABASE_FORMAT, parseDatabaseLocation } from "./database-location.js";

/** Values of RELAY_LOG_LEVEL. */
const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

const MIB = 1024 * 1024;
const MAX_WORKERS = 128;
/** Together with the time to store an answer, within the longest lease (oauth/connection.ts). */
const MAX_REFRESH_TIMEOUT_MS = 300_000;

/** The format of a value. */
interface Format<Value> {
  /** Undefined when the text is malformed. */
  readonly parse: (text: string) => Value | undefined;
  /** Describes the format; follows the word "expected". */
  readonly expected: string;
}

/** One setting: how it is parsed, and what `relay serve --help` and docs/configuration.md print. */
export interface Setting<Value> extends Format<Value> {
  readonly name: string;
  /** Text of the default; empty when there is none. */
  readonly fallback: string;
  /** Its purpose, and the reason for its default. */
  readonly about: string;
  /** The value is undefined when not set. */
  readonly isOptional?: true;
}

const TEXT = format((text) => text, "text");
const LISTEN_FORMAT = "host:port, such as 127.0.0.1:8080, where the host is an IP address or localhost";
const ON_OFF = oneOf("on", "off");

/** Every setting, by its name in the configuration. */
export const TABLE = {
  listen: {
    ...setting("RELAY_LISTEN", "127.0.0.1:8080", format(parseAddress, LISTEN_FORMAT)),
    about: "host:port of the public port; loopback until you decide who may reach it",
  },
  /** Address of the administration port, or `off`. */
  adminListen: {
    ...setting("RELAY_ADMIN_LISTEN", "127.0.0.1:8081", format(parseAdminListen, `${LISTEN_FORMAT}, or off`)),
    about: "host:port of the administration port, or off; it uses TLS if the public port does",
  },
  /** In production, a missing file prevents the start instead of being created, as with the key file. */
  adminTokenFile: {
    ...setting("RELAY_ADMIN_TOKEN_FILE", "data/admin.tokens", TEXT),
    about:
      "admin tokens, one NAME ROLE TOKEN per line; created at the first start, must exist with NODE_ENV=production",
  },
  /**
   * Origin at which browsers reach the public port, such as `https://relay.example.com`. Undefined: its own address.
   */
  publicUrl: {
    ...optional("RELAY_PUBLIC_URL", format(parsePublicUrl, "an https origin, such as https://relay.example.com")),
    about:
      "https origin at which browsers reach the public port, without a path; by default the address it listens on, if that is https or loopback",
  },
  database: {
    ...setting("RELAY_DATABASE", "sqlite:data/relay.db", format(parseDatabaseLocation, DATABASE_FORMAT)),
    about: "where applications and connections are stored: sqlite:PATH, or postgres://… for relays on several machines",
  },
  /** Only for PostgreSQL. */
  databaseConnections: {
    ...setting("RELAY_DATABASE_CONNECTIONS", "10", integer(1, 1000)),
    about: "most connections of this process to PostgreSQL; those of all relays must fit into its max_connections",
  },
  databaseTimeoutMs: {
    ...setting("RELAY_DATABASE_TIMEOUT_MS", "5000", integer(100, 60_000)),
    about: "time limit for connecting to PostgreSQL, and for a statement; a healthy one needs far less",
  },
  /** Folder for answers that the database cannot store. Undefined: next to the SQLite file, or data/spool. */
  spool: {
    ...optional("RELAY_SPOOL", TEXT),
    about:
      "folder on this machine for token answers that the database cannot take right now, and for the locks that show which relays are alive; by default spool next to the SQLite file, or data/spool",
  },
  keyFile: {
    ...setting("RELAY_KEY_FILE", "data/relay.key", TEXT),
    about: "keys that seal tokens; created at the first start, must exist with NODE_ENV=production",
  },
  providers: {
    ...setting(
      "RELAY_PROVIDERS",
      "",
      format((text) => text.split(":").filter(Boolean), "paths"),
    ),
    about: "further provider definitions: files or folders, separated by ':'; they override the catalogue",
  },
  allowLoopback: {
    ...setting("RELAY_ALLOW_LOOPBACK", "false", format(parseSwitch, "true or false")),
    about: "allow http and loopback providers for development; only with a loopback RELAY_LISTEN",
  },
  upstreamReuse: {
    ...setting("RELAY_UPSTREAM_REUSE", "origin", oneOf("origin", "connection", "never")),
    about: "who may share a kept-alive provider socket: origin, connection, or never",
  },
  upstreamKeepAliveMs: {
    ...setting("RELAY_UPSTREAM_KEEP_ALIVE_MS", "60000", integer(1000, 600_000)),
    about: "how long an idle provider socket is kept; shorter if the provider says so or has closed one earlier",
  },
  upstreamQuietMs: {
    ...setting("RELAY_UPSTREAM_QUIET_MS", "10", integer(0, 1000)),
    about:
      "how long a kept provider socket must be quiet before the next call; stray second answers of a provider come 1 to 5 ms late",
  },
  tlsCertFile: {
    ...optional("RELAY_TLS_CERT", TEXT),
    about: "PEM certificate chain; together with RELAY_TLS_KEY it turns on TLS",
  },
  tlsKeyFile: {
    ...optional("RELAY_TLS_KEY", TEXT),
    about: "PEM private key of RELAY_TLS_CERT",
  },
  trustedProxies: {
    ...setting("RELAY_TRUSTED_PROXIES", "", format(parseCidrList, "CIDRs separated by ','")),
    about:
      "CIDRs of proxies, separated by ',', whose X-Forwarded-For and X-Forwarded-Proto are trusted; none by default",
  },
  /** Per client address and process. */
  maxClientConnections: {
    ...setting("RELAY_MAX_CLIENT_CONNECTIONS", String(DEFAULT_LIMITS.maxClientConnections), integer(1, 100_000)),
    about:
      "most open connections of one client (an IPv4 address or an IPv6 /64) to each process: a quarter of RELAY_MAX_CONNECTIONS; trusted proxies have no limit",
  },
  /** Of all clients, per process. */
  maxConnections: {
    ...setting("RELAY_MAX_CONNECTIONS", String(DEFAULT_LIMITS.maxConnections), integer(1, 1_000_000)),
    about:
      "most open TCP connections of all clients to each process; below the usual 4,096 descriptors, with room for sockets to providers",
  },
  writeTimeoutMs: {
    ...setting("RELAY_WRITE_TIMEOUT_MS", String(DEFAULT_LIMITS.writeTimeoutMs), integer(1000, 600_000)),
    about:
      "a client that reads none of its answer for this long is disconnected, streams included; slow readers are not. Unread answers occupy memory that others need",
  },
  /** Number of serving processes; with 1 there are no workers. */
  workers: {
    ...setting("RELAY_WORKERS", "1", format(parseWorkers, `auto or a whole number from 1 to ${MAX_WORKERS}`)),
    about:
      "processes on the port: a number, or auto for one per core. With two or more, SIGHUP restarts them one by one; a single process ignores it",
  },
  httpStatus: {
    ...setting("RELAY_HTTP_STATUS", "envelope", oneOf("envelope", "mirror")),
    about: "HTTP status of the JSON route: 200 for every envelope, or mirror the row's statusCode",
  },
  mcp: {
    ...setting("RELAY_MCP", "off", ON_OFF),
    about:
      "on or off; POST /mcp on the public port, where agents call with a call token; off by default, because few relays serve agents",
  },
  mcpMaxAnswerBytes: {
    ...setting("RELAY_MCP_MAX_ANSWER_BYTES", String(64 * 1024), integer(1024, MIB)),
    about:
      "most bytes of a provider's answer that are shown to an agent; about 20,000 tokens, so a model's context holds several answers",
  },
  logLevel: {
    ...setting("RELAY_LOG_LEVEL", "info", format(oneOf(...LOG_LEVELS).parse, `one of ${LOG_LEVELS.join(", ")}`)),
    about: `one of ${LOG_LEVELS.join(", ")}; info has one line per call`,
  },
  metrics: {
    ...setting("RELAY_METRICS", "on", ON_OFF),
    about: "on or off; GET /metrics on the administration port",
  },
  traces: {
    ...setting("RELAY_TRACES", "off", ON_OFF),
    about: "on or off; spans of calls, for an OpenTelemetry SDK that you load into the relay",
  },
  callRecords: {
    ...setting("RELAY_CALL_RECORDS", "on", ON_OFF),
    about: "on or off; records of the last calls of each application, for 'relay calls' and the administration port",
  },
  callRecordsPerApplication: {
    ...setting("RELAY_CALL_RECORDS_PER_APPLICATION", "10000", integer(100, 1_000_000)),
    about: "most records kept per application, one to two megabytes; the oldest are deleted first",
  },
  callRecordsDays: {
    ...setting("RELAY_CALL_RECORDS_DAYS", "7", integer(1, 365)),
    about: "how long records are kept; a week is enough to look into a complaint",
  },
  deadlineMs: {
    ...setting("RELAY_DEADLINE_MS", "30000", integer(100, 120_000)),
    about: "deadline of a whole call; below the 150 s after which clients repeat a call",
  },
  refreshTimeoutMs: {
    ...setting("RELAY_REFRESH_TIMEOUT_MS", "120000", integer(1000, MAX_REFRESH_TIMEOUT_MS)),
    about:
      "how long to wait for the answer to a refresh request, even when no caller waits any more: sending it uses up the refresh token, and only the answer contains the next one",
  },
  connectTimeoutMs: {
    ...setting("RELAY_CONNECT_TIMEOUT_MS", "5000", integer(50, 60_000)),
    about: "time limit for DNS, TCP and TLS to a provider; a healthy one needs far less",
  },
  maxRequestBytes: {
    ...setting("RELAY_MAX_REQUEST_BYTES", String(10 * MIB), integer(1024, 1024 * MIB)),
    about: "largest request body; room for a file as base64",
  },
  maxStreamRequestBytes: {
    ...setting("RELAY_MAX_STREAM_REQUEST_BYTES", String(1024 * MIB), integer(1024, 1024 * 1024 * MIB)),
    about: "largest request body of the pass-through, which is streamed; room for a video, but bounded",
  },
  maxResponseBytes: {
    ...setting("RELAY_MAX_RESPONSE_BYTES", String(10 * MIB), integer(1024, 1024 * MIB)),
    about: "largest provider answer after decoding",
  },
  maxBufferedBytes: {
    ...setting("RELAY_MAX_BUFFERED_BYTES", String(256 * MIB), integer(MIB, 64 * 1024 * MIB)),
    about: "memory for the bodies of all calls in flight, shared among applications; beyond it calls answer OVERLOADED",
  },
  maxInFlight: {
    ...setting("RELAY_MAX_IN_FLIGHT", "1000", integer(1, 100_000)),
    about:
      "most calls at once, shared among applications (a single one gets 8/9 of them); beyond it calls answer OVERLOADED. Also the most idle sockets to providers",
  },
  /** Per provider origin and process. */
  maxOriginCalls: {
    ...setting("RELAY_MAX_ORIGIN_CALLS", String(CALL_LIMITS.maxConcurrent), integer(1, 100_000)),
    about:
      "most calls at once to one origin, per process, shared like RELAY_MAX_IN_FLIGHT, at most half of them streams; a slow provider must not take every socket",
  },
  maxOriginWaiting: {
    ...setting("RELAY_MAX_ORIGIN_WAITING", String(CALL_LIMITS.maxWaiting), integer(0, 100_000)),
    about:
      "most calls waiting for one origin, per process; beyond it calls answer OVERLOADED, so that calls to other origins find room in RELAY_MAX_IN_FLIGHT",
  },
} as const;

/** The values of all settings. */
export type Settings = {
  readonly [Member in keyof typeof TABLE]: ValueOf<(typeof TABLE)[Member]>;
};

type ValueOf<Entry> =
  Entry extends Format<infer Value> ? Value | (Entry extends { isOptional: true } ? undefined : never) : never;

/** All settings, in display order. */
export const SETTINGS: readonly Setting<unknown>[] = Object.values(TABLE);

function setting<Value>(name: string, fallback: string, format: Format<Value>): Omit<Setting<Value>, "about"> {
  return { name, fallback, ...format };
}

/** A setting without a default: undefined when not set. */
function optional(name: string, format: Format<string>) {
  return { ...setting(name, "", format), isOptional: true as const };
}

function format<Value>(parse: Format<Value>["parse"], expected: string): Format<Value> {
  return { parse, expected };
}

/** One of the given words, exactly. */
function oneOf<const Word extends string>(...words: Word[]): Format<Word> {
  const expected = new Intl.ListFormat("en-GB", { type: "disjunction" }).format(words);
  return format((text) => words.find((word) => word === text), expected);
}

function integer(min: number, max: number): Format<number> {
  return format((text) => parseInteger(text, min, max), `a whole number from ${min} to ${max}`);
}

function parseAdminListen(text: string): ReturnType<typeof parseAddress> | "off" {
  return text === "off" ? text : parseAddress(text);
}

function parseWorkers(text: string): number | undefined {
  return text === "auto" ? availableParallelism() : parseInteger(text, 1, MAX_WORKERS);
}

/** Parses `host:port`, with IPv6 hosts in brackets, of which it returns the usual spelling. Undefined when malformed. */
function parseAddress(text: string): { host: string; port: number } | undefined {
  const [, inBrackets, plain = "", digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([a-z0-9.]+)):(\d{1,5})$/.exec(text) ?? [];
  const [host, port] = [inBrackets ?? plain, Number(digits)];
  const version = isIP(host);
  if (port > 65_535 || (version === 0 && host !== "localhost")) return undefined;
  return { host: version === 6 ? new SocketAddress({ address: host, family: "ipv6" }).address : host, port };
}

/** Parses a whole number within bounds, in plain digits. */
export function parseInteger(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

/** Parses `true` or `false`, also `1` and `0`. */
function parseSwitch(text: string): boolean | undefined {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

/** Parses an https origin, or an http origin on loopback; empty for none. Undefined for anything else. */
export function parsePublicUrl(text: string): string | undefined {
  if (text === "") return text;
  const url = parseUrl(text);
  if (url === undefined) return undefined;
  const { origin, protocol, hostname } = url;
  const isAllowed = protocol === "https:" || (protocol === "http:" && isLoopbackHost(hostname.replace(/^\[|\]$/g, "")));
  return isAllowed && origin === text ? text : undefined;
}
