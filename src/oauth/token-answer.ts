import { createHash } from "node:crypto";
import { bufferOf } from "../lib/chunks.js";
import { Secret } from "../sealing/seal.js";
import {
  expiresInFrom,
  type Members,
  numberFrom,
  type TokenResponse,
  TokenResponseError,
  type ToldMembers,
  tokenResponseFrom,
  tokenResponseMember,
  toldMembersOf,
} from "./token-response.js";

/** What a token endpoint sent back. */
export interface TokenEndpointAnswer {
  readonly statusCode: number;
  /** Body after decoding; only so much of it as can be a token response. */
  readonly body: Uint8Array;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
  /** Value of the Date field, empty without one. */
  readonly date?: string;
}

/** How a provider's definition lets its answers be read. */
export interface TokenAnswerHabits {
  /** Dotted path of the object that holds a token response; undefined: the whole answer. */
  readonly tokenResponseMember: string | undefined;
  /** Dotted path of the error code, where it is not `error`; an answer without it is read as RFC 6749 has it. */
  readonly tokenErrorMember: string | undefined;
  /** Dotted path of the time at which the token ends; undefined: only expires_in says it. */
  readonly expiresAtMember?: string | undefined;
  /** Error codes with which this provider says that a refresh token is of no more use, beside `invalid_grant`. */
  readonly refreshEndedErrors: ReadonlySet<string>;
  /** What is asked with is signed, and good for a time by the provider's clock. */
  readonly isTimed?: boolean;
}

/**
 * What an answer to a token request means (threats 3.5):
 *
 * - `granted`: new tokens;
 * - `ended`: the provider no longer takes the code or refresh token, in the words of RFC 6749 or of its definition;
 * - `misconfigured`: the provider refuses the client, which is the operator's to mend;
 * - `refused`: it refuses this request in another way, which may pass or not;
 * - `failed`: it could not do it now. A refresh token that came along all the same is never thrown away.
 *
 * `answer` is a word for people, never provider text; `words` is a fingerprint of what the provider said.
 */
export type TokenVerdict =
  | { readonly kind: "granted"; readonly tokens: TokenResponse; readonly told: ToldMembers }
  | { readonly kind: "ended" | "misconfigured" | "refused"; readonly answer: string; readonly words: string }
  | {
      readonly kind: "failed";
      readonly answer: FailedAnswer;
      readonly retryAfterMs: number;
      readonly refreshToken: Secret | undefined;
    };

/**
 * Why no verdict on the request could be had; `unreadable`: the answer is none of a token endpoint; `clock_differs`: what was
 * signed may be refused for its time alone.
 */
type FailedAnswer = "no_answer" | "server_error" | "rate_limited" | "unreadable" | "clock_differs";

/** The client, not the user (RFC 6749 section 5.2), and what GitHub and Slack say instead. */
const MISCONFIGURED = new Set([
  "invalid_client",
  "incorrect_client_credentials",
  "invalid_client_id",
  "bad_client_secret",
]);
/** Codes that are shown as they are: those of RFC 6749 section 5.2 and of OpenID Connect Core section 3.1.2.6. */
const KNOWN = new Set([
  "invalid_request",
  "unauthorized_client",
  "unsupported_grant_type",
  "invalid_scope",
  "access_denied",
  "interaction_required",
  "login_required",
  "account_selection_required",
  "consent_required",
]);
const TRANSIENT = /^(?:temporarily_unavailable|server_error|service_unavailable|internal_(?:server_)?error)$/i;
const RATE_LIMITED = /^slow_down$|rate.?limit|too.?many|throttl|quota/i;
/** A larger answer is no token response (threats 3.5). */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Longest time a provider's Retry-After is followed, in milliseconds. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/** Judges the answer to a token request. Pure; never throws. `now` is milliseconds since the epoch. */
export function decideTokenAnswer(answer: TokenEndpointAnswer, now: number, habits: TokenAnswerHabits): TokenVerdict {
  const { statusCode, body } = answer;
  const failed = (why: FailedAnswer, refreshToken?: Secret): TokenVerdict => {
    return { kind: "failed", answer: why, retryAfterMs: parseRetryAfter(answer.retryAfter, now), refreshToken };
  };
  if (body.length > MAX_ANSWER_BYTES || (statusCode >= 300 && statusCode < 400)) return failed("unreadable");
  const text = bufferOf(body)
    .toString("utf8")
    .replace(/^\ufeff/, "")
    .trim();
  const whole = membersFrom(text);
  const members = tokenResponseMember(whole ?? {}, habits.tokenResponseMember);
  const code = ownCodeFrom(whole ?? {}, habits) || errorCodeFrom(whole ?? {}) || errorCodeFrom(members);
  const stray = refreshTokenFrom(members) ?? refreshTokenFrom(whole ?? {});
  // A rotation was performed, whatever is said beside it.
  const isRotation = stray !== undefined && tokensFrom(members) !== undefined;
  if (statusCode < 300 && (code === "" || isRotation)) {
    const verdict = decideTokens(members, whole ?? {}, () => failed("unreadable", stray));
    return verdict.kind === "granted" ? { ...verdict, tokens: withEnd(verdict, habits, now) } : verdict;
  }
  if (statusCode === 429 || RATE_LIMITED.test(code)) return failed("rate_limited", stray);
  if (statusCode >= 500 || statusCode === 408 || TRANSIENT.test(code)) return failed("server_error", stray);
  if (code !== "") return isOtherTime(answer, habits, now) ? failed("clock_differs") : decideCode(code, habits);
  // A page of a proxy on the way says nothing; nor does a status that RFC 6749 section 5.2 does not know.
  const isBare = whole !== undefined || text === "";
  return isBare && (statusCode === 400 || statusCode === 401)
    ? refusedWith(`status_${statusCode}`)
    : failed("unreadable");
}

/** Half a minute is what assertions leave for it. */
const MAX_CLOCK_DIFFERENCE_MS = 30_000;

/** A clock that is wrong for a moment must not end connections (threats 3.7). Without a date the clocks are taken to agree. */
function isOtherTime({ date = "" }: TokenEndpointAnswer, { isTimed }: TokenAnswerHabits, now: number): boolean {
  return isTimed === true && Math.abs(Date.parse(date) - now) > MAX_CLOCK_DIFFERENCE_MS;
}

function decideCode(code: string, { refreshEndedErrors }: TokenAnswerHabits): TokenVerdict {
  if (code === "invalid_grant" || refreshEndedErrors.has(code))
    return { kind: "ended", answer: "invalid_grant", words: fingerprintOf("invalid_grant") };
  if (MISCONFIGURED.has(code))
    return { kind: "misconfigured", answer: "invalid_client", words: fingerprintOf("invalid_client") };
  return { ...refusedWith(code), answer: KNOWN.has(code) ? code : "unknown_error" };
}

function refusedWith(said: string) {
  return { kind: "refused", answer: said, words: fingerprintOf(said) } as const;
}

/** Tells whether the same was said again; what was said is not kept. */
export function fingerprintOf(said: string): string {
  return createHash("sha256").update(said.slice(0, 256)).digest("hex").slice(0, 16);
}

/** RFC 9110 section 10.2.3: seconds or a date; 0 for anything else. */
export function parseRetryAfter(text: string, now: number): number {
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0;
}

/** A member that is of no use to a call must not cost the tokens beside it. */
function decideTokens(members: Members, whole: Members, failed: () => TokenVerdict): TokenVerdict {
  const { access_token, refresh_token, expires_in } = members;
  const tokens = tokensFrom(members) ?? tokensFrom({ access_token, refresh_token, expires_in });
  return tokens === undefined ? failed() : { kind: "granted", tokens, told: toldMembersOf(whole) };
}

/** A time that is over, or none, says nothing. */
function withEnd(
  { tokens, told }: Extract<TokenVerdict, { kind: "granted" }>,
  { expiresAtMember }: TokenAnswerHabits,
  now: number,
): TokenResponse {
  const endsAt = expiresAtMember === undefined ? Number.NaN : timeFrom(told(expiresAtMember));
  const expiresInS = expiresInFrom((endsAt - now) / 1000);
  return expiresInS === undefined ? tokens : { ...tokens, expiresInS };
}

/** Seconds or milliseconds since the epoch, which no token's end confuses, or a date. In milliseconds. */
function timeFrom(text: string): number {
  const number = numberFrom(text);
  if (Number.isNaN(number)) return Date.parse(text);
  return number < 1e11 ? number * 1000 : number;
}

function tokensFrom(members: Members): TokenResponse | undefined {
  try {
    return tokenResponseFrom(members);
  } catch (error) {
    if (error instanceof TokenResponseError) return undefined;
    throw error;
  }
}

/** JSON whatever its media type, or the form encoding that GitHub answers with; undefined for anything else. */
function membersFrom(text: string): Members | undefined {
  if (text.startsWith("{")) return objectFrom(text);
  return /^[\w.~-]+=/.test(text) ? Object.fromEntries(new URLSearchParams(text)) : undefined;
}

function objectFrom(text: string): Members | undefined {
  try {
    return JSON.parse(text) as Members;
  } catch {
    // Not JSON, so no token response; the parser's words quote it.
    return undefined;
  }
}

/** The error code where this provider has it; only a text or a number is one. */
function ownCodeFrom(members: Members, { tokenErrorMember }: TokenAnswerHabits): string {
  return tokenErrorMember === undefined ? "" : toldMembersOf(members)(tokenErrorMember);
}

/** `error` is a code in RFC 6749, and an object with a code or type elsewhere. */
function errorCodeFrom({ error }: Members): string {
  if (typeof error === "string") return error;
  if (typeof error !== "object" || error === null) return "";
  const { code, type } = error as Members;
  const word = type ?? code;
  return typeof word === "string" || typeof word === "number" ? String(word) : "unknown";
}

/** The last resort when an answer is malformed: a rotation that the provider performed must not be lost. */
function refreshTokenFrom({ refresh_token: token }: Members): Secret | undefined {
  return typeof token === "string" && /^[\x20-\x7e]{1,16384}$/.test(token) ? new Secret(token) : undefined;
}
