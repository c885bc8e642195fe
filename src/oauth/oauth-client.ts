import type { AuditEntry, ChangeOptions } from "../model/audit.js";
import { openSealed, type SealBinding, type Sealer, Secret } from "../sealing/seal.js";
import { isAhead } from "./connection.js";
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
  /** Parameters of the provider's templated origins that the client is for; its connections must have the same. */
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the operator changed it last, milliseconds since the epoch. */
  readonly updatedAt: number;
  /** Since when the provider refuses the client as it is now, milliseconds since the epoch; undefined: it does not. */
  readonly refusedSince?: number | undefined;
}

/** Where OAuth clients are kept. Rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface OAuthClientStore {
  find(applicationId: string, providerName: string): Promise<StoredOAuthClient | undefined>;
  /** Inserts, or replaces the one of the same application and provider, whose id stays. */
  put(client: StoredOAuthClient): Promise<void>;
  /**
   * Reads one client and stores what `decide` makes of it, in one transaction. It may be asked more than once; what it
   * throws ends the change. Resolves to what is stored.
   */
  change(
    applicationId: string,
    providerName: string,
    decide: (current: StoredOAuthClient | undefined) => StoredOAuthClient,
    audit?: AuditEntry,
  ): Promise<StoredOAuthClient>;
  /**
   * Writes down that the provider refuses the client, or, with undefined, no longer, unless the client was changed
   * since. What is written already stays.
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
  if (clientSecret === undefined) return { clientId, clientSecret: undefined };
  return {
    clientId,
    clientSecret: new Secret(openSealed(sealer, clientSecret, bindingOf(stored), DOES_NOT_OPEN).toString()),
  };
}

function bindingOf({ applicationId, providerName }: ClientKey): SealBinding {
  return { table: "oauth_clients", column: "client_secret", applicationId, userId: "", providerName };
}

/** Which OAuth client, and as the operator changed it last: what was known of it before counts no more. */
export type RegisteredClient = Pick<StoredOAuthClient, "applicationId" | "providerName" | "updatedAt" | "refusedSince">;

/** Keeps a client that the provider refuses (`invalid_client`) from being shown to it by every connection. */
export interface ClientHolds {
  /** Milliseconds until the client may be shown again; 0 when it may be now. Counts as a probe after a hold. */
  waitMs(client: RegisteredClient, now: number): number;
  /** The same for those who only want to know: no probe. */
  peekMs(client: RegisteredClient, now: number): number;
  /**
   * The provider refused the client for this connection. Returns whether that is held to be true of all: not while the
   * client was taken for others, until it is refused for a second one.
   */
  recordRefused(client: RegisteredClient, connectionId: string, now: number): boolean;
  /** The provider took the client. */
  recordTaken(client: RegisteredClient): void;
}

/** While a client is refused, one connection in this time finds out whether it still is. Milliseconds. */
const CLIENT_PROBE_EVERY_MS = 30_000;

interface Known {
  readonly updatedAt: number;
  /** Undefined: not refused since it was taken last. */
  refusedFor: string | undefined;
  isHeld: boolean;
  nextProbeAt: number;
}

/** Remembers of each client what this process has seen; times are milliseconds since the epoch. */
export function createClientHolds(): ClientHolds {
  const clients = new Map<string, Known>();
  const knownOf = (client: RegisteredClient): Known | undefined => {
    const known = clients.get(keyOf(client));
    return known?.updatedAt === client.updatedAt ? known : undefined;
  };
  const peekMs = (client: RegisteredClient, now: number) => {
    const known = knownOf(client);
    return known?.isHeld && isAhead(known.nextProbeAt, now, CLIENT_PROBE_EVERY_MS) ? known.nextProbeAt - now : 0;
  };
  return {
    peekMs,
    waitMs(client, now) {
      const waitMs = peekMs(client, now);
      const known = knownOf(client);
      if (waitMs === 0 && known?.isHeld) known.nextProbeAt = now + CLIENT_PROBE_EVERY_MS;
      return waitMs;
    },
    recordRefused(client, connectionId, now) {
      const known = knownOf(client);
      const isFirstOfGood = known !== undefined && !known.isHeld && (known.refusedFor ?? connectionId) === connectionId;
      const { updatedAt } = client;
      const nextProbeAt = now + CLIENT_PROBE_EVERY_MS;
      clients.set(keyOf(client), { updatedAt, refusedFor: connectionId, isHeld: !isFirstOfGood, nextProbeAt });
      return !isFirstOfGood;
    },
    recordTaken: (client) =>
      void clients.set(keyOf(client), {
        updatedAt: client.updatedAt,
        refusedFor: undefined,
        isHeld: false,
        nextProbeAt: 0,
      }),
  };
}

function keyOf({ applicationId, providerName }: RegisteredClient): string {
  return `${applicationId} ${providerName}`;
}
