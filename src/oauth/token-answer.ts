import { createHash } from "node:crypto";
import { bufferOf } from "../lib/chunks.js";
import { CONNECTION_KINDS } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";

/** What a token endpoint sent back. */
export interface TokenEndpointAnswer {
  readonly statusCode: number;
  /** Body after decoding; only so much of it as can be a token response. */
  readonly body: Uint8Array;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
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

/** Texts and numbers of a JSON answer by dotted path; a number in a path is the element of a list. Empty: no such thing. */
export type ToldMembers = (path: string) => string;

/** Why no verdict on the request could be had; `unreadable`: the answer is none of a token endpoint. */
type FailedAnswer = "no_answer" | "server_error" | "rate_limited" | "unreadable";

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
  if (code !== "") return decideCode(code, habits);
  // A page of a proxy on the way says nothing; nor does a status that RFC 6749 section 5.2 does not know.
  const isBare = whole !== undefined || text === "";
  return isBare && (statusCode === 400 || statusCode === 401)
    ? refusedWith(`status_${statusCode}`)
    : failed("unreadable");
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

/** Reads an answer that is JSON; anything else has no members. */
export function toldMembersFrom(text: string): ToldMembers {
  try {
    return toldMembersOf(JSON.parse(text));
  } catch {
    // Nothing is told; the parser's words quote the text.
    return () => "";
  }
}

function toldMembersOf(answer: unknown): ToldMembers {
  return (path) => {
    let value = answer;
    for (const name of path.split(".")) {
      if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return "";
      value = (value as Members)[name];
    }
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
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

/** What a token endpoint granted (RFC 6749 section 5.1). */
export interface TokenResponse {
  readonly accessToken: Secret;
  /** As the provider named it; `Bearer` when it did not. */
  readonly tokenType: string;
  readonly refreshToken: Secret | undefined;
  readonly idToken: Secret | undefined;
  /** Whole seconds from the request on, 1 to 365 days; undefined when the provider did not say in a usable way. */
  readonly expiresInS: number | undefined;
  /** Granted scope as the provider wrote it, a list joined by spaces; empty when unknown. */
  readonly scope: string;
}

/** Text that is no token response. The message names the member and never holds a value. */
export class TokenResponseError extends Error {
  constructor(field: string, problem: string) {
    super(field === "" ? `The token response ${problem}.` : `The token response's ${field} ${problem}.`);
    this.name = "TokenResponseError";
  }
}

/** Largest token, in characters. Providers stay far below; it must fit one request header. */
const MAX_TOKEN_LENGTH = 16_384;
const MAX_EXPIRES_IN_S = 365 * 24 * 60 * 60;

/** Visible ASCII. Narrower than VSCHAR by the space (RFC 6749 appendix A.12): a token stands in a header field. */
const TOKEN = /^[\x21-\x7E]+$/;
/** RFC 6749 appendix A.17: a refresh token may hold spaces. */
const VSCHARS = /^[\x20-\x7E]+$/;

/**
 * Reads a token response that somebody stores, given as JSON text. Throws TokenResponseError; also for an `expires_in`
 * that is no lifetime, which is a slip of whoever wrote it, while a provider's own answer would be taken as it is.
 *
 * @param member dotted path of the object that holds it; undefined for the whole text.
 */
export function parseTokenResponse(text: string, member?: string): TokenResponse {
  const members = tokenResponseMember(storedMembersFrom(text), member);
  const expiresIn = members["expires_in"] ?? "";
  if (expiresIn !== "" && !(numberFrom(expiresIn) >= 0)) {
    throw new TokenResponseError(
      "expires_in",
      "must be a number of seconds, 0 or more; leave it out when it is unknown",
    );
  }
  return tokenResponseFrom(members);
}

/** Reads the members of a token response, wherever they came from. Throws TokenResponseError. */
export function tokenResponseFrom(members: Members): TokenResponse {
  const accessToken = tokenFrom(members, "access_token", TOKEN);
  if (accessToken === undefined) throw new TokenResponseError("access_token", missingTokenProblem(members));
  return {
    accessToken,
    tokenType: tokenTypeFrom(members),
    refreshToken: tokenFrom(members, "refresh_token", VSCHARS),
    idToken: tokenFrom(members, "id_token", TOKEN),
    expiresInS: expiresInFrom(members["expires_in"]),
    scope: Array.isArray(members["scope"]) ? scopeFromList(members["scope"]) : textFrom(members, "scope"),
  };
}

/** Words that tell rows of other kinds from those with tokens are none of a provider's to say. */
function tokenTypeFrom(members: Members): string {
  const text = textFrom(members, "token_type");
  return text === "" || CONNECTION_KINDS.some((kind) => kind === text) ? "Bearer" : text;
}

/** The parser's own error quotes the text, so it goes nowhere: not even into `cause`. */
function storedMembersFrom(text: string): Members {
  let value: unknown;
  try {
    value = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
  } catch {
    throw new TokenResponseError("", "is not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TokenResponseError("", "must be a JSON object, such as one with access_token and expires_in");
  }
  return value as Members;
}

function missingTokenProblem(members: Members): string {
  return "error" in members ? "is missing: this is an error response (RFC 6749 section 5.2)" : "is missing";
}

/** Missing, null and "" all mean that there is none: an empty one must never replace a real one. */
function tokenFrom(members: Members, field: string, allowed: RegExp): Secret | undefined {
  const value = members[field];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw new TokenResponseError(field, "must be a string");
  if (value.length > MAX_TOKEN_LENGTH) {
    throw new TokenResponseError(field, `must be at most ${MAX_TOKEN_LENGTH} characters`);
  }
  if (!allowed.test(value)) throw new TokenResponseError(field, "must be printable ASCII, without line breaks");
  return new Secret(value);
}

function textFrom(members: Members, field: string): string {
  const value = members[field] ?? "";
  if (typeof value !== "string") throw new TokenResponseError(field, "must be a string");
  if (value !== "" && (value.length > MAX_TOKEN_LENGTH || !VSCHARS.test(value))) {
    throw new TokenResponseError(field, "must be printable ASCII, without line breaks");
  }
  return value;
}

/** Some providers send a JSON array where RFC 6749 section 3.3 has a space-separated string. */
function scopeFromList(list: readonly unknown[]): string {
  if (!list.every((entry) => typeof entry === "string")) {
    throw new TokenResponseError("scope", "must be a string or a list of strings");
  }
  return textFrom({ scope: list.join(" ") }, "scope");
}

/**
 * Providers send numbers, strings, fractions and nonsense here (threats 3.7). Nonsense, zero and below mean that the
 * lifetime is unknown: the token is used until the provider refuses it.
 */
function expiresInFrom(value: unknown): number | undefined {
  const seconds = Math.floor(numberFrom(value));
  return seconds > 0 ? Math.min(seconds, MAX_EXPIRES_IN_S) : undefined;
}

function numberFrom(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\d{1,18}(?:\.\d{1,18})?$/.test(value.trim()) ? Number(value) : Number.NaN;
}

/** The members of a JSON object. */
type Members = Readonly<Record<string, unknown>>;

/**
 * The object that holds a token response: the one at a dotted path, or the whole answer where there is none, since a
 * provider may wrap one answer and not another (Slack wraps a user's tokens when they are issued, and not when they are
 * refreshed).
 *
 * @param path undefined for the whole answer.
 */
function tokenResponseMember(answer: Members, path: string | undefined): Members {
  let members = answer;
  for (const name of path?.split(".") ?? []) {
    const value = Object.hasOwn(members, name) ? members[name] : undefined;
    if (typeof value !== "object" || value === null || Array.isArray(value)) return answer;
    members = value as Members;
  }
  return members;
}

/**
 * When an access token ends, in milliseconds since the epoch; undefined: not known. Counted from `obtainedAt`, the time
 * of the request (threats 3.7). `defaultExpiresInS` is the lifetime in seconds to assume when the response has none.
 */
export function expiresAtFrom(
  { expiresInS }: Pick<TokenResponse, "expiresInS">,
  defaultExpiresInS: number | undefined,
  obtainedAt: number,
): number | undefined {
  const lifeS = expiresInS ?? defaultExpiresInS;
  return lifeS === undefined ? undefined : obtainedAt + lifeS * 1000;
}
