import type { AttemptOutcome, RefreshAttempt, RefreshCause } from "../oauth/connection.js";

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
