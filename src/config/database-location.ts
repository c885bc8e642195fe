import { dirname, join } from "node:path";
import { isLoopbackHost } from "../lib/address-list.js";
import { decodePercent, parseUrl } from "../lib/parse-url.js";
import { Secret } from "../sealing/seal.js";

/** Where the store is kept. */
export type DatabaseLocation = SqliteLocation | PostgresLocation;

/** One file on this machine. */
export interface SqliteLocation {
  readonly kind: "sqlite";
  readonly path: string;
}

/** One database of a PostgreSQL server, or of one that speaks like it. */
export interface PostgresLocation {
  readonly kind: "postgres";
  /** Name, address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: Secret | undefined;
  readonly database: string;
  /** `verify-full` checks chain and host name, `verify-ca` the chain alone, `require` nothing. */
  readonly sslMode: SslMode;
  /** PEM files: of the certificate authority, and of the client. */
  readonly sslRootCert: string | undefined;
  readonly sslCert: string | undefined;
  readonly sslKey: string | undefined;
  /** Command-line options for the server's session, such as `-c search_path=relay`. */
  readonly options: string | undefined;
}

/** How TLS is used; what falls back to cleartext by itself (`prefer`, `allow`) is left out. */
type SslMode = "disable" | "require" | "verify-ca" | "verify-full";

const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full"] satisfies SslMode[];
const PARAMETERS: ReadonlySet<string> = new Set(["host", "sslmode", "sslrootcert", "sslcert", "sslkey", "options"]);

/** What is accepted, for whoever wrote something else. Never quotes what that was: it may hold a password. */
export const DATABASE_FORMAT =
  "sqlite:PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE, with the parameters sslmode (disable, require, verify-ca or verify-full), sslrootcert, sslcert, sslkey, host and options";

/** Reads `sqlite:PATH` or a `postgres://` URL. Undefined when it is neither. Pure. */
export function parseDatabaseLocation(text: string): DatabaseLocation | undefined {
  if (!text.startsWith("sqlite:")) return parsePostgresUrl(text);
  const path = text.slice("sqlite:".length);
  return path === "" ? undefined : { kind: "sqlite", path };
}

/** The location as it may be shown: without user, password and parameters. */
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

/** What goes there never leaves the machine. */
function isLocal(host: string): boolean {
  return host.startsWith("/") || isLoopbackHost(host);
}

/** The folder of the spool where RELAY_SPOOL names none: beside the SQLite file, or data/spool. */
export function defaultSpool(database: DatabaseLocation): string {
  return join(database.kind === "sqlite" ? dirname(database.path) : "data", "spool");
}
