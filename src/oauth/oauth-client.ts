import type { AuditEntry, ChangeOptions } from "../model/audit.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import type { OAuthClient } from "./token-request.js";

/** An application's OAuth client at one provider, as it is stored. */
export interface StoredOAuthClient {
  readonly id: string;
  readonly applicationId: string;
  /** The provider's name, never an alias. */
  readonly providerName: string;
  readonly clientId: string;
  /** Sealed; undefined for a public client (RFC 6749 section 2.1). */
  readonly clientSecret: Uint8Array | undefined;
  /** Scope to ask users for, as the provider writes it; empty: the definition's default. */
  readonly scope: string;
  /** Parameters of the provider's templated origins that the client is bound to; its connections must have the same. */
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the operator changed it last, milliseconds since the epoch; the store makes it later with each change. */
  readonly updatedAt: number;
  /** Since when the provider refuses the client as it is now, milliseconds since the epoch; undefined: it does not. */
  readonly refusedSince?: number | undefined;
}

/** Where OAuth clients are kept. Rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface OAuthClientStore {
  find(applicationId: string, providerName: string): Promise<StoredOAuthClient | undefined>;
  /**
   * Reads one client and stores what `decide` returns, in one transaction; an existing one keeps its id. `decide` may be
   * called more than once; if it throws, nothing is changed. Resolves to what is stored.
   */
  change(
    applicationId: string,
    providerName: string,
    decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
    audit?: AuditEntry,
  ): Promise<StoredOAuthClient>;
  /**
   * Records since when the provider refuses the client; an earlier time stays. With undefined, records that the provider
   * accepts the client again. Does nothing if the client was changed after `updatedAt`: the verdict is on the old one.
   */
  noteRefused(
    client: Pick<StoredOAuthClient, "applicationId" | "providerName" | "updatedAt">,
    refusedSince: number | undefined,
  ): Promise<void>;
  list(applicationId: string): Promise<StoredOAuthClient[]>;
  /** Resolves to false when there was none. Rejects with ChangedMeanwhileError. */
  delete(applicationId: string, providerName: string, options?: ChangeOptions<StoredOAuthClient>): Promise<boolean>;
}

const DOES_NOT_OPEN =
  "The stored client secret cannot be opened. The operator must restore the key file, or store the client again.";

type ClientKey = Pick<StoredOAuthClient, "applicationId" | "providerName">;

/** Seals the secret of an application's OAuth client at a provider. */
export function sealClientSecret(sealer: Sealer, key: ClientKey, clientSecret: Secret): Uint8Array {
  return sealer.seal(clientSecret.reveal(), bindingOf(key));
}

/** The client in the clear. Throws RelayError STORE_UNAVAILABLE when its secret does not open. */
export function openOAuthClient(sealer: Sealer, stored: StoredOAuthClient): OAuthClient {
  const { clientId, clientSecret } = stored;
  const opened = clientSecret && openSealed(sealer, clientSecret, bindingOf(stored), DOES_NOT_OPEN);
  return { clientId, clientSecret: opened && new Secret(opened.toString()) };
}

function bindingOf({ applicationId, providerName }: ClientKey): SealBinding {
  return { table: "oauth_clients", column: "client_secret", applicationId, userId: "", providerName };
}

/** Which OAuth client, and when the operator last changed it: what was known of it before that no longer counts. */
export type RegisteredClient = Pick<
  StoredOAuthClient,
  "id" | "applicationId" | "providerName" | "updatedAt" | "refusedSince"
>;

/** Where a connection is refreshed, and with which client; holds no secret. */
export interface RefreshPlace {
  readonly endpoint: string;
  readonly client: RegisteredClient;
}
