/** Counts stop here. */
export const MANY = 100;

/**
 * What in the store needs an operator's attention. Each list has at most 20 entries, each count stops at {@link MANY}.
 */
export interface Findings {
  /** Active connections whose last refresh failed. */
  readonly failing: number;
  /** Connections whose users must reauthorize. */
  readonly ended: number;
  readonly refusedClients: ReadonlyArray<{
    readonly applicationId: string;
    readonly providerName: string;
    readonly since: number;
  }>;
  /** Applications with waiting events, and since when the oldest event among those due first waits. */
  readonly waitingEvents: ReadonlyArray<{
    readonly applicationId: string;
    readonly count: number;
    readonly since: number;
  }>;
  /** Events that are no longer retried. */
  readonly givenUpEvents: number;
  /** When the current key was first used, milliseconds since the epoch. */
  readonly keyCreatedAt: number | undefined;
  /** The database's clock, milliseconds since the epoch; undefined if it has none of its own. */
  readonly clock: number | undefined;
}

/** Finds what needs attention, using only indexes. Rejects with RelayError STORE_UNAVAILABLE. */
export type Inspect = (currentKeyId: string) => Promise<Findings>;
