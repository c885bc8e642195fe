import { createHash, createHmac, randomBytes } from "node:crypto";
import { bytesFromAddress, parseCidrList } from "../lib/address-list.js";
import { parseUrl } from "../lib/parse-url.js";
import type { AuditEntry, ChangeOptions } from "../model/audit.js";
import { openSealed, type SealBinding, type Sealer } from "../sealing/seal.js";
import type { CallRulesByProvider } from "./call-rules.js";

/** The proof that a call must carry, weakest first; stronger proof is always accepted. */
export type CallerAuth = "PUBLIC_KEY" | "SIGNED_USER" | "PRIVATE_KEY";

/** An application that may call. */
export interface Application {
  readonly id: string;
  readonly name: string;
  readonly publicKey: string;
  /** SHA-256 of the private key, sealed; it verifies both the key and user signatures, see {@link createPrivateKey}. */
  readonly privateKeyHash: Uint8Array;
  readonly callerAuth: CallerAuth;
  /** Browser origins that may call, such as `https://app.example.com`. Empty: no browser access. */
  readonly allowedOrigins: readonly string[];
  /** Client addresses that may call, as CIDR. Empty: any address. */
  readonly allowedAddresses: readonly string[];
  /** Addresses that a browser may be redirected to after connecting, compared as text. Empty: none. */
  readonly allowedRedirectUris: readonly string[];
  /** Most calls a minute, for all its users together; 0: no limit. */
  readonly callsPerMinute: number;
  /** Most calls a minute for each connection; 0: no limit. */
  readonly connectionCallsPerMinute: number;
  /** Rules that all its calls must fit, by provider name; calls to other providers are not restricted. */
  readonly callRules: CallRulesByProvider;
  /** Longest lifetime of a call token, in seconds; 0: a day, which is the maximum. */
  readonly maxCallTokenSeconds: number;
  /** Accent color on the connect page, `#rrggbb` in lower case; empty: the relay's own. */
  readonly accentColor: string;
  readonly state: "ACTIVE" | "DISABLED";
  /** Until when headers and bodies of its calls are captured, in milliseconds since the epoch; 0: not captured. */
  readonly captureUntil: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What an operator sets when creating an application, and may change later. */
export type ApplicationSettings = Omit<
  Application,
  "id" | "publicKey" | "privateKeyHash" | "captureUntil" | "createdAt" | "updatedAt"
> & {
  /** Icon on the connect page: PNG, JPEG or WebP; empty for none. Loaded only where it is shown. */
  readonly icon: Uint8Array;
};

/** The members of an application that can be changed. */
export type ApplicationPatch = Partial<ApplicationSettings & Pick<Application, "captureUntil" | "privateKeyHash">>;

/** Selects a page of applications, ordered by public key, byte for byte. */
export interface ApplicationPage {
  /** Only public keys that begin with this; empty: all. */
  readonly prefix: string;
  /** Starts after this public key, which also begins with `prefix`; undefined: starts with the first. */
  readonly after: string | undefined;
  /** Most rows of the page. */
  readonly limit: number;
}

/**
 * Stores applications. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used; public
 * keys are compared byte for byte.
 */
export interface ApplicationStore {
  findByPublicKey(publicKey: string): Promise<Application | undefined>;
  /** The public key of an application, by its id. */
  publicKeyOf(id: string): Promise<string | undefined>;
  /** The icon of an application, by its id; empty for none. */
  iconOf(id: string): Promise<Uint8Array>;
  /** Whether any active application lists this browser origin (for a preflight that names no application). */
  listsOrigin(origin: string): Promise<boolean>;
  list(): Promise<Application[]>;
  page(page: ApplicationPage): Promise<Application[]>;
  /** Rejects with ApplicationExistsError when the public key is taken. */
  create(application: Application & Partial<ApplicationSettings>, audit?: AuditEntry): Promise<void>;
  /**
   * Resolves to the changed application, or undefined when none has this public key. Rejects with
   * ChangedMeanwhileError.
   */
  update(
    publicKey: string,
    patch: ApplicationPatch,
    now: number,
    options?: ChangeOptions<Application>,
  ): Promise<Application | undefined>;
  /**
   * Also deletes the application's connections and the records of its calls. Resolves to false when there was none.
   * Rejects with ChangedMeanwhileError.
   */
  delete(publicKey: string, options?: ChangeOptions<Application>): Promise<boolean>;
}

/** The public key is already in use. */
export class ApplicationExistsError extends Error {
  constructor() {
    super("An application with this public key already exists. Choose another key or update that application.");
    this.name = "ApplicationExistsError";
  }
}

/** Creates a public key: `relay_pk_` and 32 random characters. It identifies the application but is not a secret. */
export function createPublicKey(): string {
  return `relay_pk_${randomBytes(24).toString("base64url")}`;
}

/** Parses a public key that an operator brings from another service: 8 to 256 characters of visible ASCII. */
export function parsePublicKey(text: string): Parsed {
  if (text.length < 8 || text.length > 256) return { problem: "must have 8 to 256 characters" };
  return /^[\x21-\x7E]+$/.test(text) ? { value: text } : { problem: "must be visible ASCII, without spaces" };
}

const DOES_NOT_OPEN =
  "This application's stored key cannot be opened. The operator must restore the store or its key file, or give the application a new private key.";

/**
 * Creates a private key, to be shown once: `relay_sk_` and 48 random bytes in base64url, 73 characters.
 *
 * It is longer than 64 bytes on purpose. HMAC-SHA256 replaces a key longer than its 64-byte block by the key's SHA-256
 * (RFC 2104 section 2), so HMAC(private key, user id) equals HMAC(SHA-256(private key), user id). The stored hash is
 * therefore enough to verify user signatures, and the key itself is not stored. A shorter key would have to be.
 */
export function createPrivateKey(): string {
  return `relay_sk_${randomBytes(48).toString("base64url")}`;
}

/** SHA-256 of a private key. It can sign for any user, so it is a secret too and stored only sealed. */
export function hashPrivateKey(privateKey: string): Buffer {
  return createHash("sha256").update(privateKey).digest();
}

/**
 * HMAC-SHA256 of a text with the private key's hash. The same as with the key itself, since a key of more than 64 bytes
 * is hashed first (RFC 2104).
 */
export function signText(privateKeyHash: Uint8Array, text: string): Buffer {
  return createHmac("sha256", privateKeyHash).update(text).digest();
}

/** Seals the hash of a private key for the application's row. */
export function sealPrivateKeyHash(sealer: Sealer, applicationId: string, privateKey: string): Uint8Array {
  return sealer.seal(hashPrivateKey(privateKey), bindingOf(applicationId));
}

/** Opens the stored hash. Throws RelayError STORE_UNAVAILABLE when it cannot be opened. */
export function openPrivateKeyHash(
  sealer: Sealer,
  { id, privateKeyHash }: Pick<Application, "id" | "privateKeyHash">,
): Buffer {
  return openSealed(sealer, privateKeyHash, bindingOf(id), DOES_NOT_OPEN);
}

function bindingOf(applicationId: string): SealBinding {
  return { table: "applications", column: "private_key_hash", applicationId, userId: "", providerName: "" };
}

/** Result of parsing one setting: the value as stored, or the problem, with the entry of a list that has it. */
export type Parsed<Value = string> = { readonly value: Value } | { readonly problem: string; readonly entry?: string };

const OUTSIDE = /[?#@\\*,\s]/;

/** Of an address or an origin. PostgreSQL has origins in an index, whose rows have at most 2,704 bytes. */
const MAX_LENGTH = 2048;
const TOO_LONG = { problem: `must have at most ${MAX_LENGTH} characters` };

/**
 * Parses a browser origin that may call, such as `https://app.example.com`. Normalizes it to what browsers send in
 * `Origin` (RFC 6454 section 6.2), since the two are compared as text: host in lower case and punycode, without the
 * default port.
 */
export function parseOrigin(text: string): Parsed {
  if (text === "*") return { problem: "must name one origin; a wildcard would open the application to every website" };
  if (text === "null")
    return { problem: "must not be null: anybody's sandboxed frames and local files have that origin" };
  const url = /^https?:\/\//i.test(text) && !OUTSIDE.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) {
    return { problem: "must be https://host or https://host:port (http for development)" };
  }
  const { origin, pathname } = url;
  if (origin.length > MAX_LENGTH) return TOO_LONG;
  return pathname === "/" ? { value: origin } : { problem: `must have no path: write ${origin}` };
}

/** A URI with a private-use scheme (RFC 8252 section 7.1): a reversed domain name, so that schemes do not collide. */
const PRIVATE_USE = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/{1,3}[\x21-\x7e]*$/;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/**
 * Parses an address that browsers may be redirected to: https, http to this machine for development, or an app's own
 * scheme. It is compared as text (RFC 9700 section 4.1.3), so it must be in the form a URL parser returns.
 */
export function parseRedirectUri(text: string): Parsed {
  if (PRIVATE_USE.test(text) && !text.includes("#") && text.length <= MAX_LENGTH) return { value: text };
  const parsed = parseWebAddress(
    text,
    "an https address, or one of an app's own scheme such as com.example.app:/connected",
  );
  if ("problem" in parsed) return parsed;
  const { href, protocol, hostname } = parsed.value;
  if (protocol === "http:" && !LOOPBACK.has(hostname))
    return { problem: "must use https; http is allowed only for this machine, for development" };
  return href === text ? { value: text } : { problem: `must be written as ${href}` };
}

/** Parses an http or https address of visible ASCII. @param what what it must be, for the problem. */
export function parseWebAddress(text: string, what: string): Parsed<URL> {
  if (text.length > MAX_LENGTH) return TOO_LONG;
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) return { problem: `must be ${what}` };
  const isBare = !text.includes("#") && url.username === "" && url.password === "";
  return isBare ? { value: url } : { problem: "must not have a fragment, a user name or a password" };
}

/**
 * Parses a network of client addresses that may call: `192.0.2.0/24`, `2001:db8::/32`, or one address. An address
 * inside a network, such as `192.0.2.7/8`, is refused: it is a slip that would allow more than intended.
 */
export function parseCidr(text: string): Parsed {
  if (/[,\s%]/.test(text) || parseCidrList(text)?.length !== 1) {
    return { problem: "must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32" };
  }
  const [address = "", prefix] = text.split("/");
  if (prefix === undefined || isNetwork(address, Number(prefix))) return { value: text };
  return { problem: `has address bits beyond its /${prefix}: write the network's first address, or the address alone` };
}

function isNetwork(address: string, prefix: number): boolean {
  const bits = [...(bytesFromAddress(address) ?? [])].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return !bits.slice(prefix).includes("1");
}
