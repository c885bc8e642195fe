/** Nobody counts further: beyond it there are many. */
export const MANY = 100;

/** What is found in the store that needs an operator; each list has 20 at most, each count goes to {@link MANY}. */
export interface Findings {
  /** Active connections whose last refresh failed. */
  readonly failing: number;
  /** Connections whose users must connect again. */
  readonly ended: number;
  readonly refusedClients: ReadonlyArray<{
    readonly applicationId: string;
    readonly providerName: string;
    readonly since: number;
  }>;
  /** Applications with events that wait, and since when the oldest of those that were due first does. */
  readonly waitingEvents: ReadonlyArray<{
    readonly applicationId: string;
    readonly count: number;
    readonly since: number;
  }>;
  /** Events that were given up. */
  readonly givenUpEvents: number;
  /** When the key was first used that is used last, milliseconds since the epoch. */
  readonly keyCreatedAt: number | undefined;
  /** What the database's clock says, milliseconds since the epoch; undefined where it has none of its own. */
  readonly clock: number | undefined;
}

/** Looks for what needs attention, by indexes alone. Rejects with RelayError STORE_UNAVAILABLE. */
export type Inspect = (currentKeyId: string) => Promise<Findings>;
