import type { Secret } from "../sealing/secret.js";
import type { ConnectionKey } from "./connection.js";
import { type OAuthClient, type RefreshHabits, type TokenRequest, tokenRequestFrom } from "./token-request.js";

/** What became of a token at the provider that nobody needs any more. */
export type Revocation = "REVOKED" | "NOT_SUPPORTED" | "FAILED";

/** Tokens of one grant, in the clear. */
export interface TokenPair {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret | undefined;
}

/** Where and how the tokens of one connection are revoked. */
interface RevocationTarget extends RefreshHabits {
  readonly tokenEndpoint: string;
  /** RFC 7009; undefined: tokens cannot be revoked. */
  readonly revocationEndpoint: string | undefined;
  readonly client: OAuthClient;
}

/** Asks the token endpoint of the target; rejects when there is no answer. */
type Send<Target> = (target: Target, request: TokenRequest) => Promise<{ readonly statusCode: number }>;

/**
 * Asks an authorization server once to revoke the tokens of a grant (RFC 7009 section 2.1): by the refresh token where
 * there is one, since the access tokens that it gave end with it. Rejects when there is no answer.
 */
export async function revoke<Target extends RevocationTarget>(
  send: Send<Target>,
  target: Target,
  { accessToken, refreshToken }: TokenPair,
): Promise<Revocation> {
  if (target.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  const token = refreshToken ?? accessToken;
  if (token === undefined) return "NOT_SUPPORTED";
  const parameters = [
    ["token", token.reveal()],
    ["token_type_hint", refreshToken === undefined ? "access_token" : "refresh_token"],
  ] as const;
  // What a definition adds to token requests means nothing here.
  const request = tokenRequestFrom(target.client, { ...target, tokenParameters: {} }, parameters);
  const { statusCode } = await send({ ...target, tokenEndpoint: target.revocationEndpoint }, request);
  return statusCode >= 200 && statusCode < 300 ? "REVOKED" : "FAILED";
}

/**
 * Revokes tokens that came for a connection which is gone: nobody could use or disconnect them, and they would be good
 * for as long as the provider lets them. Once, if it can be; never rejects.
 */
export async function revokeOrphans<Target extends RevocationTarget>(
  {
    send,
    onRevocation,
  }: {
    readonly send: Send<Target>;
    readonly onRevocation: (connection: ConnectionKey, revocation: Revocation) => void;
  },
  connection: ConnectionKey,
  tokens: TokenPair,
  target: Target,
): Promise<void> {
  onRevocation(connection, await revoke(send, target, tokens).catch(() => "FAILED" as const));
}
