import { createHash } from "node:crypto";
import { bufferOf } from "../lib/chunks.js";
import { parseJson } from "../lib/parse-json.js";
import type { OAuth2 } from "../providers/provider.js";
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
  withoutMark,
} from "./token-response.js";

/** What a token endpoint sent back. */
export interface TokenEndpointAnswer {
  readonly statusCode: number;
  /** Decoded body, at most as long as a token response can be. */
  readonly body: Uint8Array;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
  /** Value of the Date field, empty without one. */
  readonly date?: string;
}

/** How a provider's answers are read, from its definition. */
export interface TokenAnswerHabits
  extends Pick<OAuth2, "tokenResponseMember" | "tokenErrorMember" | "expiresAtMember" | "refreshEndedErrors"> {
  /** Requests carry a signed assertion, which is valid for a limited time by the provider's clock. */
  readonly isTimed?: boolean;
}

/**
 * What an answer to a token request means (threats 3.5):
 *
 * - `granted`: new tokens;
 * - `ended`: the provider no longer accepts the code or refresh token, by an error code of RFC 6749 or its definition;
 * - `misconfigured`: the provider refuses the client, which the operator must fix;
 * - `refused`: it refuses this request with another error, which may or may not be temporary;
 * - `failed`: it could not answer the request now. A refresh token that came all the same is never thrown away.
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
 * Why there is no verdict on the request; `unreadable`: the answer is not that of a token endpoint; `clock_differs`:
 * the assertion may have been refused only because the clocks differ.
 */
type FailedAnswer = "no_answer" | "server_error" | "rate_limited" | "unreadable" | "clock_differs";

/** Codes that blame the client, not the user (RFC 6749 section 5.2), and what GitHub and Slack send instead. */
const MISCONFIGURED = new Set(
  "invalid_client incorrect_client_credentials invalid_client_id bad_client_secret".split(" "),
);
/** Codes that are shown unchanged: those of RFC 6749 section 5.2 and of OpenID Connect Core section 3.1.2.6. */
const KNOWN = new Set(
  `invalid_request unauthorized_client unsupported_grant_type invalid_scope
   access_denied interaction_required login_required account_selection_required consent_required`.split(/\s+/),
);
const TRANSIENT = /^(?:temporarily_unavailable|server_error|service_unavailable|internal_(?:server_)?error)$/i;
const RATE_LIMITED = /^slow_down$|rate.?limit|too.?many|throttl|quota/i;
/** Longest Retry-After that is honoured, in milliseconds. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/** Judges the answer to a token request. Pure; never throws. `now` is milliseconds since the epoch. */
export function decideTokenAnswer(answer: TokenEndpointAnswer, now: number, habits: TokenAnswerHabits): TokenVerdict {
  const { statusCode, body } = answer;
  const text = withoutMark(bufferOf(body).toString()).trim();
  const whole = membersFrom(text);
  const members = tokenResponseMember(whole ?? {}, habits.tokenResponseMember);
  const told = toldMembersOf(whole, text);
  const ownCode = habits.tokenErrorMember === undefined ? "" : told(habits.tokenErrorMember);
  const code = ownCode || errorCodeFrom(whole ?? {}) || errorCodeFrom(members);
  const refreshToken = refreshTokenFrom(members) ?? refreshTokenFrom(whole ?? {});
  const failed = (why: FailedAnswer): TokenVerdict => {
    return { kind: "failed", answer: why, retryAfterMs: parseRetryAfter(answer.retryAfter, now), refreshToken };
  };
  if (statusCode >= 300 && statusCode < 400) return failed("unreadable");
  // The provider has rotated the refresh token, whatever error it reports as well.
  const isRotation = refreshToken !== undefined && tokensFrom(members) !== undefined;
  if (statusCode < 300 && (code === "" || isRotation)) {
    const verdict = decideTokens(members, told, () => failed("unreadable"));
    return verdict.kind === "granted" ? { ...verdict, tokens: withEnd(verdict, habits, now) } : verdict;
  }
  if (statusCode === 429 || RATE_LIMITED.test(code)) return failed("rate_limited");
  if (statusCode >= 500 || statusCode === 408 || TRANSIENT.test(code)) return failed("server_error");
  if (code !== "") return isOtherTime(answer, habits, now) ? failed("clock_differs") : decideCode(code, habits);
  // A proxy's page says nothing about the request; nor does a status that RFC 6749 section 5.2 does not list.
  const isBare = whole !== undefined || text === "";
  return isBare && (statusCode === 400 || statusCode === 401)
    ? refusedWith(`status_${statusCode}`)
    : failed("unreadable");
}

/** Assertions allow for half a minute of clock difference. */
const MAX_CLOCK_DIFFERENCE_MS = 30_000;

/**
 * Whether our clock differs from the provider's by too much for a signed request: a clock that is wrong for a moment
 * must not end connections (threats 3.7). Without a Date field the clocks are assumed to agree.
 */
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

/** A fingerprint that shows whether the same was said again; the text itself is not kept. */
export function fingerprintOf(said: string): string {
  return createHash("sha256").update(said.slice(0, 256)).digest("hex").slice(0, 16);
}

/** Parses Retry-After (RFC 9110 section 10.2.3), seconds or a date, to milliseconds; 0 for anything else. */
export function parseRetryAfter(text: string, now: number): number {
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0;
}

/** A malformed member that calls do not need must not cost the tokens beside it. */
function decideTokens(members: Members, told: ToldMembers, failed: () => TokenVerdict): TokenVerdict {
  const { access_token, refresh_token, expires_in } = members;
  const tokens = tokensFrom(members) ?? tokensFrom({ access_token, refresh_token, expires_in });
  return tokens === undefined ? failed() : { kind: "granted", tokens, told };
}

/** Takes the lifetime from the definition's own member, unless that is missing or in the past. */
function withEnd(
  { tokens, told }: Extract<TokenVerdict, { kind: "granted" }>,
  { expiresAtMember }: TokenAnswerHabits,
  now: number,
): TokenResponse {
  const endsAt = expiresAtMember === undefined ? Number.NaN : timeFrom(told(expiresAtMember));
  const expiresInS = expiresInFrom((endsAt - now) / 1000);
  return expiresInS === undefined ? tokens : { ...tokens, expiresInS };
}

/** Parses seconds or milliseconds since the epoch, told apart by their size, or a date. In milliseconds. */
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

/** Reads JSON, whatever its media type, or the form encoding that GitHub sends; undefined for anything else. */
function membersFrom(text: string): Members | undefined {
  if (text.startsWith("{")) return parseJson(text) as Members | undefined;
  return /^[\w.~-]+=/.test(text) ? Object.fromEntries(new URLSearchParams(text)) : undefined;
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
