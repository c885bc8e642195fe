import { isAhead } from "./connection.js";
import type { StoredOAuthClient } from "./oauth-client.js";

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
const PROBE_EVERY_MS = 30_000;

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
    return known?.isHeld && isAhead(known.nextProbeAt, now, PROBE_EVERY_MS) ? known.nextProbeAt - now : 0;
  };
  return {
    peekMs,
    waitMs(client, now) {
      const waitMs = peekMs(client, now);
      const known = knownOf(client);
      if (waitMs === 0 && known?.isHeld) known.nextProbeAt = now + PROBE_EVERY_MS;
      return waitMs;
    },
    recordRefused(client, connectionId, now) {
      const known = knownOf(client);
      const isFirstOfGood = known !== undefined && !known.isHeld && (known.refusedFor ?? connectionId) === connectionId;
      const { updatedAt } = client;
      const nextProbeAt = now + PROBE_EVERY_MS;
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
