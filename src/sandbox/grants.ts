import { createHash } from "node:crypto";
import { keepNewest } from "../lib/keep-newest.js";
import { type Answer, errorAnswer, type SandboxRequest } from "./router.js";

/** What an account allowed a client; revoking it invalidates all its tokens. */
export interface Grant {
  readonly account: Account;
  readonly client_id: string;
  /** Space-separated (RFC 6749 section 3.3). */
  readonly scope: string;
  revoked: boolean;
}

/** A successful token response (RFC 6749 section 5.1). */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

/** Overrides for a grant's tokens. */
interface IssueOptions {
  readonly expiresInSeconds?: number | undefined;
  readonly scope?: string | undefined;
}

/** Tokens of the sandbox, in memory. */
export interface Grants {
  /** Issues an access and a refresh token from a grant; `scope` narrows the access token's. */
  issue(grant: Grant, options?: IssueOptions): TokenResponse;
  /** Accepts an access token made elsewhere; it has no refresh token and never expires. */
  accept(accessToken: string, grant: Grant): void;
  /** The account behind an access token that is known, not expired and not revoked. */
  findAccount(accessToken: string): Account | undefined;
  /** Refreshes with rotation (RFC 6749 section 6). Throws {@link OAuthError} `invalid_grant` or `invalid_scope`. */
  refresh(refreshToken: string, client_id: string, scope: string | undefined): TokenResponse;
  /** Revokes a token (RFC 7009 section 2.1): only the access token, or with a refresh token the whole grant. */
  revoke(token: string): void;
  /** The client a token was issued to. */
  findClientId(token: string): string | undefined;
}

/** Default lifetime of an access token. */
const LIFETIME_SECONDS = 3600;

/** Options of a token store. */
interface GrantsOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly randomId: () => string;
  /** How long after its first use a refresh token may be used again, in milliseconds; default 0: never. */
  readonly refreshGraceMs?: number | undefined;
  /** Whether using a refresh token twice revokes its grant (the default) or is only refused. */
  readonly endsReusedGrants?: boolean | undefined;
}

/** State of a token store. */
interface Tokens extends GrantsOptions {
  readonly access: Map<string, { readonly grant: Grant; readonly expiresAtMs: number }>;
  readonly refresh: Map<string, { readonly grant: Grant; usedAtMs: number | undefined }>;
}

/** Creates an empty token store. */
export function createGrants(options: GrantsOptions): Grants {
  const tokens: Tokens = { access: new Map(), refresh: new Map(), ...options };
  return {
    issue: (grant, options) => issue(tokens, grant, options),
    accept: (accessToken, grant) => {
      tokens.access.set(accessToken, { grant, expiresAtMs: Number.POSITIVE_INFINITY });
    },
    findAccount: (accessToken) => findAccount(tokens, accessToken),
    refresh: (refreshToken, client_id, scope) => refresh(tokens, refreshToken, client_id, scope),
    revoke: (token) => revoke(tokens, token),
    findClientId: (token) => (tokens.access.get(token) ?? tokens.refresh.get(token))?.grant.client_id,
  };
}

function issue(tokens: Tokens, grant: Grant, options: IssueOptions = {}): TokenResponse {
  const { expiresInSeconds: expires_in = LIFETIME_SECONDS, scope = grant.scope } = options;
  const access_token = `sandbox_at_${tokens.randomId()}`;
  const refresh_token = `sandbox_rt_${tokens.randomId()}`;
  tokens.access.set(access_token, { grant, expiresAtMs: tokens.now() + expires_in * 1000 });
  tokens.refresh.set(refresh_token, { grant, usedAtMs: undefined });
  return { access_token, token_type: "Bearer", expires_in, refresh_token, scope };
}

function findAccount(tokens: Tokens, accessToken: string): Account | undefined {
  const found = tokens.access.get(accessToken);
  if (found === undefined || found.grant.revoked || found.expiresAtMs <= tokens.now()) return undefined;
  return found.grant.account;
}

function refresh(tokens: Tokens, refreshToken: string, client_id: string, scope: string | undefined): TokenResponse {
  const found = tokens.refresh.get(refreshToken);
  if (found === undefined || found.grant.client_id !== client_id) {
    throw new OAuthError("invalid_grant", "The refresh token is unknown or belongs to another client.");
  }
  // https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2: a token used twice may be stolen, so the grant is revoked.
  const { refreshGraceMs = 0, endsReusedGrants = true } = tokens;
  const { usedAtMs = tokens.now() } = found;
  const isReused = found.usedAtMs !== undefined && tokens.now() >= usedAtMs + refreshGraceMs;
  if (isReused && endsReusedGrants) found.grant.revoked = true;
  if (isReused || found.grant.revoked)
    throw new OAuthError("invalid_grant", "The refresh token was already used or is revoked.");
  const narrowed = scope && narrowedScope(found.grant.scope, scope);
  found.usedAtMs = usedAtMs;
  return issue(tokens, found.grant, { scope: narrowed });
}

function revoke(tokens: Tokens, token: string): void {
  tokens.access.delete(token);
  const found = tokens.refresh.get(token);
  if (found !== undefined) found.grant.revoked = true;
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-6: a refresh may ask for less, never for more. */
function narrowedScope(granted: string, asked: string): string {
  const allowed = new Set(granted.split(" "));
  if (asked.split(" ").every((token) => allowed.has(token))) return asked;
  throw new OAuthError("invalid_scope", "The scope exceeds what was granted.");
}

/** What an authorization code stands for. */
interface AuthorizationRequest {
  readonly account: Account;
  readonly client_id: string;
  readonly redirect_uri: string;
  readonly scope: string;
  /** S256 challenge (RFC 7636 section 4.2); undefined without PKCE. */
  readonly code_challenge: string | undefined;
}

/** The token request that redeems a code (RFC 6749 section 4.1.3). */
interface CodeRedemption {
  readonly code: string;
  readonly client_id: string;
  readonly redirect_uri: string | undefined;
  readonly code_verifier: string | undefined;
}

/** Authorization codes, in memory. */
export interface AuthorizationCodes {
  create(request: AuthorizationRequest): string;
  /** Turns a code into a grant, once. Throws {@link OAuthError} `invalid_grant`. */
  redeem(redemption: CodeRedemption): Grant;
}

/** Shorter than the 10 minutes RFC 6749 section 4.1.2 allows: the client redeems it at once. */
const LIFETIME_MS = 60_000;

/** Most codes in memory, since anybody can call the authorization endpoint; the oldest is evicted first. */
const MAX_CODES = 10_000;

interface IssuedCode {
  readonly request: AuthorizationRequest;
  readonly expiresAtMs: number;
  grant: Grant | undefined;
}

/** Creates an empty store of codes. `now` is in milliseconds since the epoch. */
export function createAuthorizationCodes(context: { now: () => number; randomId: () => string }): AuthorizationCodes {
  const codes = new Map<string, IssuedCode>();
  return {
    create(request) {
      const code = `sandbox_ac_${context.randomId()}`;
      keepNewest(codes, code, { request, expiresAtMs: context.now() + LIFETIME_MS, grant: undefined }, MAX_CODES);
      return code;
    },
    redeem(redemption) {
      const issued = codes.get(redemption.code);
      if (issued === undefined) throw new OAuthError("invalid_grant", "The authorization code is unknown.");
      refuseReuse(issued);
      refuseMismatch(issued, redemption, context.now());
      const { account, client_id, scope } = issued.request;
      issued.grant = { account, client_id, scope, revoked: false };
      return issued.grant;
    },
  };
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2: using a code twice revokes the tokens issued for it. */
function refuseReuse({ grant }: IssuedCode): void {
  if (grant === undefined) return;
  grant.revoked = true;
  throw new OAuthError("invalid_grant", "The authorization code was already used.");
}

function refuseMismatch({ request, expiresAtMs }: IssuedCode, redemption: CodeRedemption, nowMs: number): void {
  if (expiresAtMs <= nowMs) throw new OAuthError("invalid_grant", "The authorization code has expired.");
  if (request.client_id !== redemption.client_id) {
    throw new OAuthError("invalid_grant", "The authorization code belongs to another client.");
  }
  if (request.redirect_uri !== redemption.redirect_uri) {
    throw new OAuthError("invalid_grant", "redirect_uri differs from that of the authorization request.");
  }
  // https://www.rfc-editor.org/rfc/rfc9700#section-4.8.2: a verifier without a challenge is a downgrade, so it fails too.
  if (request.code_challenge !== challengeFromVerifier(redemption.code_verifier)) {
    throw new OAuthError("invalid_grant", "code_verifier does not match the code_challenge.");
  }
}

/** https://www.rfc-editor.org/rfc/rfc7636#section-4.6 */
function challengeFromVerifier(code_verifier: string | undefined): string | undefined {
  if (code_verifier === undefined) return undefined;
  return createHash("sha256").update(code_verifier).digest("base64url");
}

/** A user of the sandbox, as its API returns it. */
export interface Account {
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly email: string;
}

/** Creates an account; given members replace the default ones. */
export function createAccount(members: Partial<Account> = {}): Account {
  return { id: "1001", login: "ada", name: "Ada Example", email: "ada@example.com", ...members };
}

/** Error codes of RFC 6749 section 5.2 that the sandbox uses. */
type OAuthErrorCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unsupported_grant_type"
  | "invalid_scope";

/** A refusal of the token or revocation endpoint; the message never repeats what was sent. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode;

  constructor(code: OAuthErrorCode, message: string) {
    super(message);
    this.name = "OAuthError";
    this.code = code;
  }
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-5.1 */
export const NO_STORE = ["Cache-Control", "no-store", "Pragma", "no-cache"] as const;

/** https://www.rfc-editor.org/rfc/rfc6749#section-5.2: 400, but 401 with a challenge for an unknown client. */
export function answerFromOAuthError(error: OAuthError): Answer {
  if (error.code !== "invalid_client") return errorAnswer(400, error.code, error.message, NO_STORE);
  const challenge = ["WWW-Authenticate", 'Basic realm="sandbox", charset="UTF-8"'];
  return errorAnswer(401, error.code, error.message, [...NO_STORE, ...challenge]);
}

/** An invalid request parameter; the sandbox answers 400. The message never repeats the value. */
export class InvalidParameter extends Error {
  constructor(name: string, expected: string) {
    super(`${name} must be ${expected}`);
    this.name = "InvalidParameter";
  }
}

/** A range of integers, with the default for a missing parameter. */
interface IntegerRange {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
}

/** Reads an integer from the query. Throws {@link InvalidParameter} when it is not an integer or out of range. */
export function integerParameter(query: URLSearchParams, name: string, range: IntegerRange): number {
  const text = query.get(name);
  return text === null ? range.fallback : parseInteger(text, name, range);
}

/** Parses decimal digits into an integer of the range. Throws {@link InvalidParameter}. */
export function parseInteger(text: string, name: string, { min, max }: Omit<IntegerRange, "fallback">): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new InvalidParameter(name, `an integer from ${min} to ${max}`);
  return value;
}

/** Every value of the field `name` (lower-case) in a flat list of field lines, in the order received. */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i] ?? "";
    if (candidate.length === name.length && candidate.toLowerCase() === name) values.push(rawHeaders[i + 1] ?? "");
  }
  return values;
}

/** The media type of a message without parameters, lower-case; empty when none is named (RFC 9110 section 8.3.1). */
export function mediaType(rawHeaders: readonly string[]): string {
  const [value = ""] = fieldValues(rawHeaders, "content-type");
  return (value.split(";", 1)[0] ?? "").trim().toLowerCase();
}

/** Whether a media type is JSON: `application/json`, `text/json` or a `+json` suffix (RFC 6839 section 3.1). */
export function isJsonType(type: string): boolean {
  return type === "application/json" || type === "text/json" || type.endsWith("+json");
}

/** Parameters of an OAuth request. */
export type Parameters = ReadonlyMap<string, string>;

/** Reads the content of a token or revocation request. Throws {@link OAuthError} `invalid_request`. */
export function parseForm({ rawHeaders, body }: SandboxRequest): Parameters {
  if (mediaType(rawHeaders) !== "application/x-www-form-urlencoded") {
    throw new OAuthError("invalid_request", "The content must be application/x-www-form-urlencoded.");
  }
  const parameters = parseParameters(new URLSearchParams(body.toString()));
  if (parameters === undefined) throw new OAuthError("invalid_request", "A parameter is repeated.");
  return parameters;
}

/**
 * https://www.rfc-editor.org/rfc/rfc6749#section-3.2: parameters without a value count as omitted. Undefined when a
 * parameter is repeated.
 */
export function parseParameters(pairs: URLSearchParams): Parameters | undefined {
  const parameters = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (parameters.has(name)) return undefined;
    if (value !== "") parameters.set(name, value);
  }
  return parameters;
}

/** The value of a required parameter. Throws {@link OAuthError} `invalid_request`. */
export function requiredParameter(parameters: Parameters, name: string): string {
  const value = parameters.get(name);
  if (value === undefined) throw new OAuthError("invalid_request", `The parameter ${name} is missing.`);
  return value;
}
