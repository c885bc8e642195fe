import type { AttemptOutcome, Connection, NewConnection, RefreshAttempt, RefreshCause } from "../oauth/connection.js";
import type { RefusalEvidence, Trouble } from "../oauth/verdict.js";
import { createStatement, first, type Operation } from "./database.js";

/** The columns of `connections` that are written for a new connection. */
export const CONNECTION_COLUMNS = `id, application_id, user_id, provider_name, state, access_token, refresh_token,
  id_token, token_type, scope, origin_parameters, obtained_at, expires_at, version, created_at, updated_at`;

/** The columns that are read of a connection, and the time of the database's clock if it has one. */
export const CONNECTION_READ = `${CONNECTION_COLUMNS}, state_reason, fail_count, last_failed_at, last_error_class,
  next_try_at, lease_until, unanswered_since, trouble, refreshed_at, :clock AS clock`;

/** A row of `connections` as it is written. */
export type ConnectionRow = Omit<NewConnection, "originParameters"> &
  Pick<Connection, "version" | "createdAt" | "updatedAt"> & { /** JSON. */ readonly originParameters: string };

/** The columns that are read in another form. */
interface ReadColumns extends Pick<ConnectionRow, "originParameters">, Pick<Connection, "nextTryAt"> {
  readonly leaseUntil?: number | undefined;
  /** JSON of a `Trouble`. */
  readonly trouble: string | undefined;
  readonly clock?: number;
}

/** A row of `connections` as it is read. */
export type ConnectionRead = Omit<Connection, keyof ReadColumns> & ReadColumns;

/**
 * Converts a row to a connection. The ends of leases and waits are converted from the store's clock to this process's,
 * since they are compared with its other times.
 *
 * @param now the clock of this process, milliseconds since the epoch.
 */
export function connectionFromRow<Row extends ReadColumns>({ clock, ...row }: Row, now: () => number) {
  // With a spread, V8 makes a hidden class per connection, and each read of a member misses: 3.4 of a call's 190 µs.
  return Object.assign(row, {
    originParameters: JSON.parse(row.originParameters) as Record<string, string>,
    nextTryAt: localTime(row.nextTryAt, clock, now),
    leaseUntil: localTime(row.leaseUntil, clock, now),
    trouble: troubleFrom(row.trouble),
  });
}

/** Converts a time of the store's clock to this process's. @param clock undefined when both are the same. */
function localTime(time: number | undefined, clock: number | undefined, now: () => number): number | undefined {
  return time === undefined || clock === undefined ? time : time - clock + now();
}

/** A new row: version 1, created and updated now. */
export function rowFromConnection(connection: NewConnection, now: number): ConnectionRow {
  const originParameters = JSON.stringify(connection.originParameters);
  return { ...connection, originParameters, version: 1, createdAt: now, updatedAt: now };
}

/** The columns for a connection's trouble. */
export function columnsFromTrouble(trouble: Trouble | undefined) {
  return {
    trouble: trouble && JSON.stringify(trouble),
    refusal: trouble?.refusal?.words,
    refusedAt: trouble?.refusal?.lastAt,
  };
}

/** Hardly any connection has trouble. */
function troubleFrom(json: string | undefined): Trouble | undefined {
  return json === undefined ? undefined : (JSON.parse(json) as Trouble);
}

/** Parameters of the queries for evidence: the connection, and the fingerprint of the provider's words. */
interface EvidenceBounds extends Pick<Connection, "id" | "applicationId" | "providerName"> {
  readonly refusal: string;
  readonly since: number;
  /** A day before now. */
  readonly dayStart: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** When another connection was last refreshed. */
const OTHERS_REFRESHED_AT = createStatement<EvidenceBounds, { refreshedAt: number }>(`
   SELECT refreshed_at FROM connections
   WHERE application_id = :application_id AND provider_name = :provider_name AND refreshed_at IS NOT NULL AND id <> :id
   ORDER BY refreshed_at DESC LIMIT 1`);

/** How many others were refreshed since; counted to 1000, since more make no difference. */
const OTHERS_REFRESHED = createStatement<EvidenceBounds, { count: number }>(`SELECT count(*) AS count FROM (
   SELECT 1 FROM connections WHERE application_id = :application_id AND provider_name = :provider_name
     AND refreshed_at > :since AND id <> :id LIMIT 1000) AS others`);

/** How many others were refused in the same words within a day, in all applications and in this one. */
const REFUSED = createStatement<EvidenceBounds, { allRefused: number; othersRefused: number }>(`
   SELECT count(*) AS all_refused,
     coalesce(sum(CASE WHEN application_id = :application_id AND refused_at > :since THEN 1 ELSE 0 END), 0) AS others_refused
   FROM (SELECT application_id, refused_at FROM connections WHERE provider_name = :provider_name AND refusal = :refusal
     AND refused_at > :day_start AND id <> :id ORDER BY refused_at DESC LIMIT 1000) AS refused`);

/** Reads what other connections show about a refusal. Indexes and limits bound its cost. */
export function* findEvidence(
  { id, applicationId, providerName }: Connection,
  refusal: string,
  since: number,
  now: number,
): Operation<RefusalEvidence> {
  const bounds = { id, applicationId, providerName, refusal, since, dayStart: now - DAY_MS };
  const at = (yield* first(OTHERS_REFRESHED_AT, bounds))?.refreshedAt;
  const counts = yield* first(REFUSED, { ...bounds, since: at ?? 0 });
  return {
    othersRefreshedAt: at,
    othersRefreshed: (yield* first(OTHERS_REFRESHED, bounds))?.count ?? 0,
    othersRefused: counts?.othersRefused ?? 0,
    allRefused: counts?.allRefused ?? 0,
  };
}

/** Refreshes kept per connection. */
const KEPT = 20;
/** Older ones are no longer shown, in milliseconds; they leave the row as new ones come. */
const SHOWN_MS = 90 * 24 * 60 * 60 * 1000;

/** The index is what is stored, so new entries must be added at the end. */
const OUTCOMES: readonly AttemptOutcome[] = ["refreshed", "failed", "ended"];
const CAUSES: readonly RefreshCause[] = ["due", "expired", "refused", "requested", "abandoned"];
const UNKNOWN_ANSWER = "unknown_error";
const ANSWERS: readonly string[] = [
  ...["", UNKNOWN_ANSWER, "no_answer", "server_error", "rate_limited", "unreadable", "clock_differs"],
  ...["invalid_grant", "invalid_client", "invalid_request", "unauthorized_client", "unsupported_grant_type"],
  ...["invalid_scope", "access_denied", "interaction_required", "login_required", "account_selection_required"],
  ...["consent_required", "status_400", "status_401", "internal_error"],
];

/** Number of base-36 digits of each part of a refresh: time, duration, outcome, cause, answer. */
const PARTS: readonly number[] = [8, 4, 1, 1, 1];
const LENGTH = 15;

/**
 * Puts a refresh in front of those that are kept, and drops the oldest. All have the same length, so the statement that
 * stores a token or a failure can do so without reading them first. A connection has at most 300 bytes of them.
 */
export const KEEP_ATTEMPT = `refreshes = substr(CAST(:attempt AS TEXT) || coalesce(refreshes, ''), 1, ${KEPT * LENGTH})`;

/** Encodes a refresh for storage; empty for none. Pure. */
export function textFromAttempt(attempt: RefreshAttempt | undefined): string {
  if (attempt === undefined) return "";
  const { at, durationMs, outcome, cause, answer } = attempt;
  const known = ANSWERS.indexOf(answer);
  const answerAt = known < 0 ? ANSWERS.indexOf(UNKNOWN_ANSWER) : known;
  const numbers = [at, durationMs, OUTCOMES.indexOf(outcome), CAUSES.indexOf(cause), answerAt];
  return PARTS.map((digits, part) => digitsOf(numbers[part] ?? 0, digits)).join("");
}

function digitsOf(value: number, digits: number): string {
  const whole = Math.min(Math.max(0, Math.round(value)), 36 ** digits - 1);
  return whole.toString(36).padStart(digits, "0");
}

/** Decodes the refreshes to show at `now` (milliseconds since the epoch), newest first. Pure. */
export function attemptsFrom(text: string | undefined, now: number): RefreshAttempt[] {
  const stored = (text ?? "").match(new RegExp(`.{${LENGTH}}`, "g")) ?? [];
  return stored.map(attemptFrom).filter(({ at }) => now - at < SHOWN_MS);
}

function attemptFrom(text: string): RefreshAttempt {
  let from = 0;
  const [at = 0, durationMs = 0, outcome = 0, cause = 0, answer = 0] = PARTS.map((digits) => {
    from += digits;
    return Number.parseInt(text.slice(from - digits, from), 36);
  });
  return {
    at,
    durationMs,
    // A newer relay may have written values that this one does not know.
    outcome: OUTCOMES[outcome] ?? "failed",
    cause: CAUSES[cause] ?? "expired",
    answer: ANSWERS[answer] ?? UNKNOWN_ANSWER,
  };
}
