/** What is known of a connection whose token is refused, or cannot be refreshed, since it worked last. */
export interface Trouble {
  /** When it began, milliseconds since the epoch. */
  readonly since: number;
  /** When its application was told by webhook, milliseconds since the epoch. */
  readonly toldAt?: number | undefined;
  /** `updatedAt` of the OAuth client of the last try: a client that was changed since may be taken. */
  readonly clientUpdatedAt?: number | undefined;
  /** The refusal that the provider repeats. */
  readonly refusal?: Refusal | undefined;
}

/** The same words of a provider, again and again. Times are milliseconds since the epoch. */
export interface Refusal {
  /** A fingerprint of the words; never the words. */
  readonly words: string;
  /** When they came first. */
  readonly since: number;
  /** When they came last. */
  readonly lastAt: number;
  /** When they came last and counted. */
  readonly countedAt: number;
  /** How often they came and counted (verdict.ts). */
  readonly count: number;
}

/** What other connections of the same provider show about a refusal. */
export interface RefusalEvidence {
  /** When another connection of the application at this provider was refreshed last; undefined: never. */
  readonly othersRefreshedAt: number | undefined;
  /** How many of them were refreshed since the refusal began; counted to 1000. */
  readonly othersRefreshed: number;
  /** How many of them were refused in the same words since another one was refreshed last, within a day. */
  readonly othersRefused: number;
  /** How many connections of any application were refused in the same words within a day; counted to 1000. */
  readonly allRefused: number;
}
