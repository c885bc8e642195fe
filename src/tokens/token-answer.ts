import { bufferOf } from "../buffer-of.js";
import { Secret } from "./secret.js";
import { type TokenResponse, TokenResponseError, tokenResponseFrom } from "./token-response.js";
import { type Members, tokenResponseMember } from "./token-response-member.js";

/** What a token endpoint sent back. */
export interface TokenEndpointAnswer {
  readonly statusCode: number;
  /** Body after decoding; only so much of it as can be a token response. */
  readonly body: Uint8Array;
  /** Value of the Retry-After field, empty without one. */
  readonly retryAfter: string;
}

/**
 * What an answer to a token request means (threats 3.5):
 *
 * - `granted`: new tokens;
 * - `ended`: the provider no longer takes the code or refresh token (`invalid_grant` and its relatives);
 * - `misconfigured`: the provider refuses the client, which is the operator's to mend;
 * - `refused`: it refuses this request in another way, which may pass or not;
 * - `failed`: it could not do it now. A refresh token that came along all the same is never thrown away.
 */
export type TokenVerdict =
  | { readonly kind: "granted"; readonly tokens: TokenResponse }
  | { readonly kind: "ended" }
  | { readonly kind: "misconfigured" }
  | { readonly kind: "refused" }
  | { readonly kind: "failed"; readonly retryAfterMs: number; readonly refreshToken: Secret | undefined };

/** Error codes that mean that the code or refresh token is of no more use: RFC 6749 section 5.2, and GitHub's own. */
const ENDED = new Set(["invalid_grant", "bad_refresh_token", "token_expired", "invalid_refresh_token"]);
/** The client, not the user (RFC 6749 section 5.2), and what GitHub and Slack say instead. */
const MISCONFIGURED = new Set([
  "invalid_client",
  "unauthorized_client",
  "incorrect_client_credentials",
  "invalid_client_id",
  "bad_client_secret",
]);
const TRANSIENT = new Set(["temporarily_unavailable", "server_error", "slow_down"]);
/** A larger answer is no token response (threats 3.5). */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** Longest time a provider's Retry-After is followed, in milliseconds. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;

/**
 * Judges the answer to a token request. Pure; never throws. `now` is milliseconds since the epoch, `member` the dotted
 * path of the object that holds the token response, undefined for the whole answer.
 */
export function decideTokenAnswer(answer: TokenEndpointAnswer, now: number, member: string | undefined): TokenVerdict {
  const { statusCode, body } = answer;
  const failed = (refreshToken?: Secret): TokenVerdict => {
    return { kind: "failed", retryAfterMs: parseRetryAfter(answer.retryAfter, now), refreshToken };
  };
  const isTransientStatus = statusCode >= 500 || statusCode === 429 || statusCode === 408;
  if (body.length > MAX_ANSWER_BYTES || (statusCode >= 300 && statusCode < 400)) return failed();
  const whole = membersFrom(bufferOf(body).toString("utf8"));
  const members = tokenResponseMember(whole, member);
  const code = errorCodeFrom(whole) || errorCodeFrom(members);
  if (statusCode < 300 && code === "") {
    return decideTokens(members, () => failed(refreshTokenFrom(members) ?? refreshTokenFrom(whole)));
  }
  if (isTransientStatus || TRANSIENT.has(code)) return failed();
  if (ENDED.has(code)) return { kind: "ended" };
  if (MISCONFIGURED.has(code) || (statusCode === 401 && code === "")) return { kind: "misconfigured" };
  return code !== "" || statusCode === 400 ? { kind: "refused" } : failed();
}

/** RFC 9110 section 10.2.3: seconds or a date; 0 for anything else. */
export function parseRetryAfter(text: string, now: number): number {
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now;
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0;
}

/** A member that is of no use to a call must not cost the tokens beside it. */
function decideTokens(members: Members, failed: () => TokenVerdict): TokenVerdict {
  const { access_token, refresh_token, expires_in } = members;
  const tokens = tokensFrom(members) ?? tokensFrom({ access_token, refresh_token, expires_in });
  return tokens === undefined ? failed() : { kind: "granted", tokens };
}

function tokensFrom(members: Members): TokenResponse | undefined {
  try {
    return tokenResponseFrom(members);
  } catch (error) {
    if (error instanceof TokenResponseError) return undefined;
    throw error;
  }
}

/** JSON whatever its media type, or the form encoding that GitHub answers with; no members for anything else. */
function membersFrom(text: string): Members {
  const trimmed = text.replace(/^\ufeff/, "").trim();
  if (trimmed.startsWith("{")) return objectFrom(trimmed);
  return /^[\w.~-]+=/.test(trimmed) ? Object.fromEntries(new URLSearchParams(trimmed)) : {};
}

function objectFrom(text: string): Members {
  try {
    return JSON.parse(text) as Members;
  } catch {
    // Not JSON, so no token response; the parser's words quote it.
    return {};
  }
}

/** `error` is a code in RFC 6749, and an object with a code or type elsewhere. */
function errorCodeFrom({ error }: Members): string {
  if (typeof error === "string") return error;
  if (typeof error !== "object" || error === null) return "";
  const { code, type } = error as Members;
  return String(type ?? code ?? "unknown");
}

/** The last resort when an answer is malformed: a rotation that the provider performed must not be lost. */
function refreshTokenFrom({ refresh_token: token }: Members): Secret | undefined {
  return typeof token === "string" && /^[\x20-\x7e]{1,16384}$/.test(token) ? new Secret(token) : undefined;
}
