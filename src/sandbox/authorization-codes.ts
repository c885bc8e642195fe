import { createHash } from "node:crypto";
import type { Account } from "./account.js";
import type { Grant } from "./grants.js";
import { OAuthError } from "./oauth-error.js";

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

/** The authorization endpoint takes anyone's requests, so what it leaves in memory is bounded; the oldest goes first. */
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
      codes.set(code, { request, expiresAtMs: context.now() + LIFETIME_MS, grant: undefined });
      const [oldest] = codes.keys();
      if (codes.size > MAX_CODES && oldest !== undefined) codes.delete(oldest);
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

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2: a code used twice ends the tokens it gave. */
function refuseReuse({ grant }: IssuedCode): void {
  if (grant === undefined) return;
  grant.revoked = true;
  throw new OAuthError("invalid_grant", "The authorization code was used before.");
}

function refuseMismatch({ request, expiresAtMs }: IssuedCode, redemption: CodeRedemption, nowMs: number): void {
  if (expiresAtMs <= nowMs) throw new OAuthError("invalid_grant", "The authorization code is expired.");
  if (request.client_id !== redemption.client_id) {
    throw new OAuthError("invalid_grant", "The authorization code belongs to another client.");
  }
  if (request.redirect_uri !== redemption.redirect_uri) {
    throw new OAuthError("invalid_grant", "redirect_uri is not the one of the authorization request.");
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
