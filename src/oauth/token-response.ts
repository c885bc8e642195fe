import { slicePath } from "../json/json-path.js";
import { textAt } from "../json/json-slice.js";
import { parseJson } from "../lib/parse-json.js";
import { MAX_SECRET_LENGTH } from "../providers/connection-value.js";
import { CONNECTION_KINDS, MAX_EXPIRES_IN_S } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";

/** What a token endpoint granted (RFC 6749 section 5.1). */
export interface TokenResponse {
  readonly accessToken: Secret;
  /** As the provider named it; `Bearer` when it did not. */
  readonly tokenType: string;
  readonly refreshToken: Secret | undefined;
  readonly idToken: Secret | undefined;
  /** Lifetime in whole seconds from the request on, 1 second to 365 days; undefined without a usable value. */
  readonly expiresInS: number | undefined;
  /** Granted scope as the provider wrote it, a list joined by spaces; empty when unknown. */
  readonly scope: string;
}

/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/** Strings and numbers of a JSON answer by dotted path; a number in a path is a list index. Empty if there is none. */
export type ToldMembers = (path: string) => string;

/** The text is not a token response. The message names the member and never holds a value. */
export class TokenResponseError extends Error {
  constructor(field: string, problem: string) {
    super(field === "" ? `The token response ${problem}.` : `The token response's ${field} ${problem}.`);
    this.name = "TokenResponseError";
  }
}

/** Visible ASCII. Narrower than VSCHAR by the space (RFC 6749 appendix A.12): a token stands in a header field. */
const TOKEN = /^[\x21-\x7E]+$/;
/** RFC 6749 appendix A.17: a refresh token may hold spaces. */
const VSCHARS = /^[\x20-\x7E]+$/;

/**
 * Reads a token response that an operator or application stores, as JSON text. Throws TokenResponseError. Unlike for a
 * provider's own answer, an invalid `expires_in` is an error as well, since somebody has probably mistyped it.
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

/** The token types that mark rows of other kinds are reserved: a provider that sends one gets `Bearer`. */
function tokenTypeFrom(members: Members): string {
  const text = textFrom(members, "token_type");
  return text === "" || CONNECTION_KINDS.some((kind) => kind === text) ? "Bearer" : text;
}

function storedMembersFrom(text: string): Members {
  const value = parseJson(withoutMark(text));
  if (value === undefined) throw new TokenResponseError("", "is not valid JSON");
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new TokenResponseError("", "must be a JSON object, such as one with access_token and expires_in");
  }
  return value as Members;
}

function missingTokenProblem(members: Members): string {
  return "error" in members ? "is missing: this is an error response (RFC 6749 section 5.2)" : "is missing";
}

/** An empty token is none: it must never replace a real one. */
function tokenFrom(members: Members, field: string, allowed: RegExp): Secret | undefined {
  const text = textFrom(members, field, allowed);
  return text === "" ? undefined : new Secret(text);
}

/** Missing and null mean the same as "". */
function textFrom(members: Members, field: string, allowed = VSCHARS): string {
  const value = members[field] ?? "";
  if (typeof value !== "string") throw new TokenResponseError(field, "must be a string");
  if (value.length > MAX_SECRET_LENGTH) {
    throw new TokenResponseError(field, `must be at most ${MAX_SECRET_LENGTH} characters`);
  }
  if (value !== "" && !allowed.test(value)) {
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
export function expiresInFrom(value: unknown): number | undefined {
  const seconds = Math.floor(numberFrom(value));
  return seconds > 0 ? Math.min(seconds, MAX_EXPIRES_IN_S) : undefined;
}

/** Reads a number, or a string that is a decimal number; NaN for anything else. */
export function numberFrom(value: unknown): number {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\d{1,18}(?:\.\d{1,18})?$/.test(value.trim()) ? Number(value) : Number.NaN;
}

/**
 * The object that holds a token response: the one at a dotted path, or the whole answer if there is no object there. A
 * provider may wrap one answer and not another: Slack wraps a user's tokens when they are issued, but not when they are
 * refreshed.
 *
 * @param path undefined for the whole answer.
 */
export function tokenResponseMember(answer: Members, path: string | undefined): Members {
  const value = path === undefined ? answer : memberAt(answer, path);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : answer;
}

function memberAt(answer: unknown, path: string): unknown {
  let value = answer;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Members)[name];
  }
  return value;
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

/** Reads the members of a JSON answer; any other text has none. */
export function toldMembersFrom(text: string): ToldMembers {
  const json = withoutMark(text);
  return toldMembersOf(parseJson(json), json);
}

/** Reads the members of an answer. @param text what it was parsed from: a number may be the id of an account. */
export function toldMembersOf(answer: unknown, text: string): ToldMembers {
  return (path) => {
    const value = memberAt(answer, path);
    if (typeof value === "number" && !Number.isSafeInteger(value)) return writtenAt(text, path);
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
}

/** The number at a path as it stands in the text: a double would round a long one. */
function writtenAt(text: string, path: string): string {
  const json = Buffer.from(text);
  const range = slicePath(json, path);
  return range === undefined ? "" : textAt(json, range);
}

/** Without the byte order mark that some servers put in front of UTF-8. */
export function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "");
}
