import type { AuditEntry } from "../model/audit.js";
import type { ChangeOptions } from "../model/change-options.js";

/** What a call must carry, weakest first; stronger proof is always accepted. */
export type CallerAuth = "PUBLIC_KEY" | "SIGNED_USER" | "PRIVATE_KEY";

/** An application: who may call. */
export interface Application {
  readonly id: string;
  readonly name: string;
  readonly publicKey: string;
  /** SHA-256 of the private key, sealed: it verifies both the key and user signatures (see private-key.ts). */
  readonly privateKeyHash: Uint8Array;
  readonly callerAuth: CallerAuth;
  /** Browser origins that may call, such as `https://app.example.com`. Empty: no browser access. */
  readonly allowedOrigins: readonly string[];
  /** Client addresses that may call, as CIDR. Empty: any address. */
  readonly allowedAddresses: readonly string[];
  /** Where a browser may be sent back to after connecting, compared as text. Empty: nowhere. */
  readonly allowedRedirectUris: readonly string[];
  /** Most calls a minute, of all its users together; 0: no limit. */
  readonly callsPerMinute: number;
  /** Most calls a minute for each connection; 0: no limit. */
  readonly connectionCallsPerMinute: number;
  readonly state: "ACTIVE" | "DISABLED";
  /** Until when headers and bodies of its calls are captured, in milliseconds since the epoch; 0: never. */
  readonly captureUntil: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What an operator decides about an application when it is made, and may change afterwards. */
export type ApplicationSettings = Pick<
  Application,
  | "name"
  | "callerAuth"
  | "allowedOrigins"
  | "allowedAddresses"
  | "allowedRedirectUris"
  | "callsPerMinute"
  | "connectionCallsPerMinute"
  | "state"
>;

/** The members of an application that can be changed. */
export type ApplicationPatch = Partial<ApplicationSettings & Pick<Application, "captureUntil" | "privateKeyHash">>;

/** A page of applications, ordered by public key, byte for byte. */
export interface ApplicationPage {
  /** Only those whose public key begins so; empty: all. */
  readonly prefix: string;
  /** From behind this public key on, which begins so, too; undefined: from the first one on. */
  readonly after: string | undefined;
  /** At most this many rows. */
  readonly limit: number;
}

/**
 * Where applications are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used;
 * a public key is compared byte for byte.
 */
export interface ApplicationStore {
  findByPublicKey(publicKey: string): Promise<Application | undefined>;
  /** The public key of an application, by its id. */
  publicKeyOf(id: string): Promise<string | undefined>;
  /** Whether any active application lists this browser origin (for a preflight that names no application). */
  listsOrigin(origin: string): Promise<boolean>;
  list(): Promise<Application[]>;
  page(page: ApplicationPage): Promise<Application[]>;
  /** Rejects with ApplicationExistsError when the public key is taken. */
  create(application: Application, audit?: AuditEntry): Promise<void>;
  /**
   * Resolves to the changed application, undefined when there is none with this public key. Rejects with
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
    super("An application with this public key exists already. Choose another key or update that application.");
    this.name = "ApplicationExistsError";
  }
}
