import type { Account } from "./account.js";
import { OAuthError } from "./oauth-error.js";

/** What an account allowed a client; every token that comes from it ends with it. */
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

/** What may differ from the grant's usual tokens. */
interface IssueOptions {
  readonly expiresInSeconds?: number;
  readonly scope?: string;
}

/** Tokens of the sandbox, in memory. */
export interface Grants {
  /** Issues an access and a refresh token from a grant; `scope` narrows the access token's. */
  issue(grant: Grant, options?: IssueOptions): TokenResponse;
  /** Takes an access token made elsewhere; it has no refresh token and never expires. */
  accept(accessToken: string, grant: Grant): void;
  /** The account behind an access token that is known, not expired and not revoked. */
  findAccount(accessToken: string): Account | undefined;
  /** Refreshes with rotation (RFC 6749 section 6). Throws {@link OAuthError} `invalid_grant` or `invalid_scope`. */
  refresh(refreshToken: string, client_id: string, scope: string | undefined): TokenResponse;
  /** Ends a token (RFC 7009 section 2.1): an access token alone, a refresh token with its whole grant. */
  revoke(token: string): void;
  /** The client a token was issued to. */
  findClientId(token: string): string | undefined;
}

/** How long an access token is valid unless asked otherwise. */
const LIFETIME_SECONDS = 3600;

/** What the functions of a store work on. */
interface Tokens {
  readonly access: Map<string, { readonly grant: Grant; readonly expiresAtMs: number }>;
  readonly refresh: Map<string, { readonly grant: Grant; usedAtMs: number | undefined }>;
  readonly now: () => number;
  readonly randomId: () => string;
  readonly refreshGraceMs: number;
  readonly endsReusedGrants: boolean;
}

/** What a store of tokens needs. */
export interface GrantsOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly randomId: () => string;
  /** How long after its first use a refresh token may be used again, in milliseconds; 0, the default, is never. */
  readonly refreshGraceMs?: number | undefined;
  /** Whether a refresh token that is used twice ends its grant, as by default, or is only refused. */
  readonly endsReusedGrants?: boolean | undefined;
}

/** Creates an empty store of tokens. */
export function createGrants({ refreshGraceMs = 0, endsReusedGrants = true, ...source }: GrantsOptions): Grants {
  const tokens: Tokens = { access: new Map(), refresh: new Map(), ...source, refreshGraceMs, endsReusedGrants };
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
  // https://www.rfc-editor.org/rfc/rfc9700#section-4.14.2: a token used twice may be stolen, so the grant ends.
  const { usedAtMs = tokens.now() } = found;
  const isReused = found.usedAtMs !== undefined && tokens.now() >= usedAtMs + tokens.refreshGraceMs;
  if (isReused && tokens.endsReusedGrants) found.grant.revoked = true;
  if (isReused || found.grant.revoked) throw new OAuthError("invalid_grant", "The refresh token is used or revoked.");
  const options = scope === undefined ? {} : { scope: narrowedScope(found.grant.scope, scope) };
  found.usedAtMs = usedAtMs;
  return issue(tokens, found.grant, options);
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
  throw new OAuthError("invalid_scope", "The scope is not within what was granted.");
}
