import { dirname, join } from "node:path";
import { isLoopbackHost } from "../lib/address-list.js";
import { decodePercent, parseUrl } from "../lib/parse-url.js";
import { Secret } from "../sealing/seal.js";

/** The location of the store. */
export type DatabaseLocation = SqliteLocation | PostgresLocation;

/** One file on this machine. */
export interface SqliteLocation {
  readonly kind: "sqlite";
  readonly path: string;
}

/** A database on a PostgreSQL server, or on a compatible one. */
export interface PostgresLocation {
  readonly kind: "postgres";
  /** Host name, address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: Secret | undefined;
  readonly database: string;
  /** `verify-full` checks chain and host name, `verify-ca` only the chain, `require` nothing. */
  readonly sslMode: SslMode;
  /** PEM files: the certificate authority's certificate; the client's certificate and key. */
  readonly sslRootCert: string | undefined;
  readonly sslCert: string | undefined;
  readonly sslKey: string | undefined;
  /** Command-line options for the server's session, such as `-c search_path=relay`. */
  readonly options: string | undefined;
}

/** How TLS is used. Modes that silently fall back to cleartext (`prefer`, `allow`) are not supported. */
type SslMode = "disable" | "require" | "verify-ca" | "verify-full";

const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full"] satisfies SslMode[];
const PARAMETERS: ReadonlySet<string> = new Set(["host", "sslmode", "sslrootcert", "sslcert", "sslkey", "options"]);

/** The accepted format, for error messages. These never quote the given value, which may contain a password. */
export const DATABASE_FORMAT =
  "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the parameters sslmode (disable, require, verify-ca or verify-full), sslrootcert, sslcert, sslkey, host and options";

/** Parses `sqlite:PATH` or a `postgres://` URL. Undefined when it is neither. Pure. */
export function parseDatabaseLocation(text: string): DatabaseLocation | undefined {
  if (!text.startsWith("sqlite:")) return parsePostgresUrl(text);
  const path = text.slice("sqlite:".length);
  return path === "" ? undefined : { kind: "sqlite", path };
}

/** The location for display: without user, password and parameters. */
export function textFromDatabaseLocation(location: DatabaseLocation): string {
  if (location.kind === "sqlite") return `sqlite:${location.path}`;
  const { host, port, database } = location;
  const shown = host.includes(":") ? `[${host}]` : host;
  return `postgres://${host.startsWith("/") ? encodeURIComponent(host) : shown}:${port}/${database}`;
}

function parsePostgresUrl(text: string): PostgresLocation | undefined {
  const url = /^postgres(ql)?:\/\//.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) return undefined;
  const { searchParams, hostname, port, username, password, pathname } = url;
  const host = searchParams.get("host") ?? decodePercent(hostname)?.replace(/^\[|\]$/g, "");
  const database = decodePercent(pathname.slice(1));
  const [user, secret] = [decodePercent(username), decodePercent(password)];
  const sslMode = searchParams.get("sslmode") ?? (isLocal(host ?? "") ? "disable" : "verify-full");
  const isKnown = [...searchParams.keys()].every((name) => PARAMETERS.has(name));
  if (!host || !database || !user || secret === undefined || !isKnown || !SSL_MODES.includes(sslMode)) return undefined;
  const parameter = (name: string) => searchParams.get(name) ?? undefined;
  return {
    kind: "postgres",
    host,
    port: port === "" ? 5432 : Number(port),
    user,
    password: secret === "" ? undefined : new Secret(secret),
    database,
    sslMode: sslMode as SslMode,
    sslRootCert: parameter("sslrootcert"),
    sslCert: parameter("sslcert"),
    sslKey: parameter("sslkey"),
    options: parameter("options"),
  };
}

/** Whether connections to this host stay on the machine. */
function isLocal(host: string): boolean {
  return host.startsWith("/") || isLoopbackHost(host);
}

/** The spool folder when RELAY_SPOOL is not set: next to the SQLite file, or data/spool. */
export function defaultSpool(database: DatabaseLocation): string {
  return join(database.kind === "sqlite" ? dirname(database.path) : "data", "spool");
}
