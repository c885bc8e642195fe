import type { Secret } from "./secret.js";

/** The application's registration at a provider (RFC 6749 section 2). */
export interface OAuthClient {
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
}

/** What of a provider's definition shapes a token request. */
export interface TokenEndpointHabits {
  readonly clientAuthentication: "client_secret_basic" | "client_secret_post" | "none";
  /** Name of the client_id parameter. */
  readonly clientIdParameter: string;
  readonly tokenParameters: Readonly<Record<string, string>>;
}

/** A token request as it is sent. Holds secrets: never log it. */
export interface TokenRequest {
  /** Flat list name, value, …. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
}

/** Builds a refresh request (RFC 6749 section 6). The scope stays what was granted, so none is named. */
export function refreshRequestFrom(
  client: OAuthClient,
  refreshToken: Secret,
  habits: TokenEndpointHabits,
): TokenRequest {
  return tokenRequestFrom(client, habits, [
    ["grant_type", "refresh_token"],
    ["refresh_token", refreshToken.reveal()],
  ]);
}

/**
 * Builds a token request (RFC 6749 section 3.2). JSON is asked for, since GitHub answers with a form otherwise. The
 * client authenticates in one way only: trying a second one would use the refresh token twice (threats 3.5).
 */
export function tokenRequestFrom(
  client: OAuthClient,
  habits: TokenEndpointHabits,
  parameters: ReadonlyArray<readonly [string, string]>,
): TokenRequest {
  const form = new URLSearchParams(parameters.map(([name, value]): [string, string] => [name, value]));
  for (const [name, value] of Object.entries(habits.tokenParameters)) form.set(name, value);
  const headers = ["content-type", "application/x-www-form-urlencoded", "accept", "application/json"];
  headers.push("user-agent", "provider-call-relay", "accept-encoding", "identity");
  if (habits.clientAuthentication === "client_secret_basic" && client.clientSecret !== undefined) {
    headers.push("authorization", basicFrom(client.clientId, client.clientSecret));
  } else {
    form.set(habits.clientIdParameter, client.clientId);
    const isPost = habits.clientAuthentication === "client_secret_post" && client.clientSecret !== undefined;
    if (isPost) form.set("client_secret", client.clientSecret.reveal());
  }
  return { headers, body: Buffer.from(form.toString()) };
}

/** RFC 6749 section 2.3.1: both are form-encoded before they are joined. */
function basicFrom(clientId: string, clientSecret: Secret): string {
  const encode = (text: string) => new URLSearchParams([["", text]]).toString().slice(1);
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret.reveal())}`).toString("base64")}`;
}
