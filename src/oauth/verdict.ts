/** A refusal of a connection's tokens: what the provider said, and what else is known. */
export interface RefusalCase {
  /**
   * Whether the words mean that the tokens are no longer valid: `invalid_grant` of RFC 6749 section 5.2, or a code that
   * the provider's definition lists. Other words may be temporary, or concern something else.
   */
  readonly isKnown: boolean;
  /** A fingerprint of what was said. */
  readonly words: string;
  readonly before: Refusal | undefined;
  readonly evidence: RefusalEvidence;
  /** When the operator last changed the OAuth client, milliseconds since the epoch. */
  readonly clientUpdatedAt: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The decision: whether the connection has ended, and the refusal to remember. */
export interface RefusalDecision {
  readonly isOver: boolean;
  readonly refusal: Refusal;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** Unknown words end a connection only when they came this often, and over this long, in milliseconds. */
const MIN_COUNT = 3;
const MIN_UNKNOWN_MS = DAY_MS;
/** Known words that many connections get at once count after this long: a weekend for the operator to look. */
const MIN_DOUBTED_MS = 3 * DAY_MS;
/** Up to this many connections refused in the same words are a coincidence. */
const MAX_ALIKE = 2;
/** More are a coincidence, too, as long as this many times more were refreshed. */
const MIN_WELL_SHARE = 5;
/** A trouble is reported after this long, in milliseconds: by then, temporary ones have passed. */
const TOLD_AFTER_MS = HOUR_MS;

/**
 * Decides whether a refusal ends a connection. Pure. Only the user can restore an ended connection, so the trouble must
 * be this connection's own:
 *
 * - Known words end it at once, unless they seem to concern the client: more than two others got the same words since
 *   one was last refreshed, or the client was changed since then. In that case they end it after three times over three
 *   days.
 * - Other words end it when they came three times over a day or more, each time after another connection of the same
 *   application and provider was refreshed, and not many are refused in the same words.
 */
export function decideRefusal(given: RefusalCase): RefusalDecision {
  return given.isKnown ? decideKnown(given) : decideUnknown(given);
}

function decideKnown(given: RefusalCase): RefusalDecision {
  const { evidence, clientUpdatedAt, now } = given;
  const { othersRefused, othersRefreshedAt } = evidence;
  const refusal = refusalAfter(given, true);
  // A change further ahead than a doubt may last was stored by a wrong clock.
  const isOfChanged =
    othersRefreshedAt !== undefined && othersRefreshedAt < clientUpdatedAt && clientUpdatedAt <= now + MIN_DOUBTED_MS;
  const isDoubted = othersRefused > MAX_ALIKE || isOfChanged;
  const isLong = refusal.count >= MIN_COUNT && now - refusal.since >= MIN_DOUBTED_MS;
  return { isOver: !isDoubted || isLong, refusal };
}

function decideUnknown(given: RefusalCase): RefusalDecision {
  const { evidence, now } = given;
  const { othersRefreshedAt, othersRefreshed, allRefused } = evidence;
  const before = sameBefore(given);
  const counts = before === undefined || (othersRefreshedAt ?? 0) > before.countedAt;
  const refusal = refusalAfter(given, counts);
  const isLong = refusal.count >= MIN_COUNT && now - refusal.since >= MIN_UNKNOWN_MS;
  const isOwn = allRefused <= MAX_ALIKE || allRefused * MIN_WELL_SHARE <= othersRefreshed;
  return { isOver: counts && isLong && isOwn, refusal };
}

/** A refusal, by a provider's API, of an access token that cannot be refreshed. */
interface RefusedTokenCase extends Pick<RefusalCase, "words" | "before" | "now"> {
  readonly evidence: Pick<RefusalEvidence, "allRefused">;
  /** When the provider last accepted the token of another connection, as far as known; milliseconds since the epoch. */
  readonly othersTakenAt: number | undefined;
}

/** Minimum time between two refusals of an access token that count, in milliseconds. */
export const REFUSED_TOKEN_APART_MS = 5 * 60_000;

/**
 * Decides whether refusals of an access token end a connection that has no refresh token; call it only for those that
 * count. Pure. The words concern the token (RFC 6750 section 3.1), but a malfunctioning provider sends them to
 * everybody. Three refusals end the connection if another connection's token was accepted since the second. Otherwise
 * they must span a day, or three days while many are refused.
 */
export function decideRefusedToken(given: RefusedTokenCase): RefusalDecision {
  const { before, evidence, othersTakenAt, now } = given;
  const refusal = refusalAfter(given, true);
  const isOwn = before !== undefined && othersTakenAt !== undefined && othersTakenAt > before.countedAt;
  const minMs = evidence.allRefused > MAX_ALIKE ? MIN_DOUBTED_MS : MIN_UNKNOWN_MS;
  return { isOver: refusal.count >= MIN_COUNT && (isOwn || now - refusal.since >= minMs), refusal };
}

function refusalAfter(given: Pick<RefusalCase, "words" | "before" | "now">, counts: boolean): Refusal {
  const { words, now } = given;
  const before = sameBefore(given) ?? { words, since: now, lastAt: now, countedAt: now, count: 0 };
  return counts ? { ...before, lastAt: now, countedAt: now, count: before.count + 1 } : { ...before, lastAt: now };
}

function sameBefore({ before, words }: Pick<RefusalCase, "words" | "before">): Refusal | undefined {
  return before?.words === words ? before : undefined;
}

/** The trouble after one more failure; after a while it gets a `toldAt`. Pure. */
export function troubleAfter(
  before: Trouble | undefined,
  { refusal = before?.refusal, clientUpdatedAt }: Pick<Trouble, "refusal" | "clientUpdatedAt">,
  now: number,
): Trouble {
  const since = Math.min(before?.since ?? now, now);
  return {
    since,
    toldAt: before?.toldAt ?? (now - since >= TOLD_AFTER_MS ? now : undefined),
    clientUpdatedAt,
    refusal,
  };
}

/** What is known about a connection whose token is refused, or cannot be refreshed, since it last worked. */
export interface Trouble {
  /** When it began, milliseconds since the epoch. */
  readonly since: number;
  /** When its application was notified by webhook, milliseconds since the epoch. */
  readonly toldAt?: number | undefined;
  /** `updatedAt` of the OAuth client of the last try: a client that was changed since may be accepted. */
  readonly clientUpdatedAt?: number | undefined;
  /** The refusal that the provider repeats. */
  readonly refusal?: Refusal | undefined;
}

/** Repeated refusals in the same words of a provider. Times are milliseconds since the epoch. */
export interface Refusal {
  /** A fingerprint of the words; never the words. */
  readonly words: string;
  /** When they came first. */
  readonly since: number;
  /** When they came last. */
  readonly lastAt: number;
  /** When they last came and counted. */
  readonly countedAt: number;
  /** How often they came and counted (verdict.ts). */
  readonly count: number;
}

/** What other connections of the same provider show about a refusal. */
export interface RefusalEvidence {
  /** When another connection of the application at this provider was last refreshed; undefined: never. */
  readonly othersRefreshedAt: number | undefined;
  /** How many of them were refreshed since the refusal began; counted to 1000. */
  readonly othersRefreshed: number;
  /** How many of them were refused in the same words since another one was last refreshed, within a day. */
  readonly othersRefused: number;
  /** How many connections of any application were refused in the same words within a day; counted to 1000. */
  readonly allRefused: number;
}
