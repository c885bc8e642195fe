import { keepNewest } from "../lib/keep-newest.js";
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
  /** Inserts a client, or replaces the one of the same application and provider, which keeps its id. */
  put(client: StoredOAuthClient): Promise<void>;
  /**
   * Reads one client and stores what `decide` returns, in one transaction. `decide` may be called more than once; if it
   * throws, nothing is changed. Resolves to what is stored.
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
  if (clientSecret === undefined) return { clientId, clientSecret: undefined };
  return {
    clientId,
    clientSecret: new Secret(openSealed(sealer, clientSecret, bindingOf(stored), DOES_NOT_OPEN).toString()),
  };
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

/**
 * Holds back a client that the provider refuses (`invalid_client`), so that not every connection sends it. Each
 * endpoint counts by itself: an address with a part that one user chose says nothing about those of other users.
 */
export interface ClientHolds {
  /** Milliseconds until the client may be sent; 0 when it may be sent now, which counts as a probe while it is held. */
  waitMs(place: RefreshPlace, now: number): number;
  /** Like `waitMs`, but starts no probe. */
  peekMs(place: RefreshPlace, now: number): number;
  /**
   * The provider refused the client for this connection. The client is held from now on; if the endpoint has accepted
   * it before, only once it is refused for a second connection. Returns whether the client is held at every known
   * endpoint; false, and nothing changes, if a newer one is known: the verdict is on the old one.
   */
  recordRefused(place: RefreshPlace, connectionId: string, now: number): boolean;
  /** The provider accepted the client. Does nothing if a newer one is known. */
  recordTaken(place: RefreshPlace): void;
}

/** While a client is held, one connection per interval probes whether it is still refused. Milliseconds. */
const CLIENT_PROBE_EVERY_MS = 30_000;
/** Most clients, and most endpoints of each, that are remembered; the one that was used longest ago is evicted. */
const MAX_CLIENTS = 10_000;
const MAX_ENDPOINTS = 1000;

interface Known {
  /** The last connection it was refused for; undefined: not refused since it was last accepted. */
  refusedFor: string | undefined;
  isHeld: boolean;
  nextProbeAt: number;
}

const TAKEN: Known = { refusedFor: undefined, isHeld: false, nextProbeAt: 0 };

/** Remembers for each client what this process has seen; times are milliseconds since the epoch. */
export function createClientHolds(): ClientHolds {
  const clients = new Map<string, { readonly updatedAt: number; readonly endpoints: Map<string, Known> }>();
  const endpointsOf = ({ client }: RefreshPlace) => {
    const known = clients.get(client.id);
    return known?.updatedAt === client.updatedAt ? known.endpoints : undefined;
  };
  const knownOf = (place: RefreshPlace) => endpointsOf(place)?.get(place.endpoint);
  /** Undefined, and nothing changes, for a client that has been replaced. */
  const record = (place: RefreshPlace, known: Known) => {
    const { client, endpoint } = place;
    const newest = clients.get(client.id);
    if (newest !== undefined && newest.updatedAt > client.updatedAt) return undefined;
    const endpoints = endpointsOf(place) ?? new Map<string, Known>();
    keepNewest(clients, client.id, { updatedAt: client.updatedAt, endpoints }, MAX_CLIENTS);
    keepNewest(endpoints, endpoint, known, MAX_ENDPOINTS);
    return endpoints;
  };
  const peekMs = (place: RefreshPlace, now: number) => {
    const known = knownOf(place);
    return known?.isHeld && isAhead(known.nextProbeAt, now, CLIENT_PROBE_EVERY_MS) ? known.nextProbeAt - now : 0;
  };
  return {
    peekMs,
    waitMs(place, now) {
      const waitMs = peekMs(place, now);
      const known = knownOf(place);
      if (waitMs === 0 && known?.isHeld) known.nextProbeAt = now + CLIENT_PROBE_EVERY_MS;
      return waitMs;
    },
    recordRefused(place, connectionId, now) {
      const known = knownOf(place);
      const isFirstOfGood = known !== undefined && !known.isHeld && (known.refusedFor ?? connectionId) === connectionId;
      const nextProbeAt = now + CLIENT_PROBE_EVERY_MS;
      const endpoints = record(place, { refusedFor: connectionId, isHeld: !isFirstOfGood, nextProbeAt });
      return endpoints !== undefined && [...endpoints.values()].every(({ isHeld }) => isHeld);
    },
    recordTaken: (place) => void record(place, { ...TAKEN }),
  };
}
