import { fieldValues } from "./fields.js";
import type { Parameters } from "./form.js";
import { OAuthError } from "./oauth-error.js";

/** An OAuth client that the sandbox knows. */
export interface Client {
  readonly client_id: string;
  /** Left out for a public client (RFC 6749 section 2.1). */
  readonly client_secret?: string;
}

/**
 * Authenticates the client of a token or revocation request: `client_secret_basic`, `client_secret_post`, or `none` for
 * a public client (RFC 6749 section 2.3). Throws {@link OAuthError} `invalid_client` or `invalid_request`.
 */
export function authenticateClient(
  rawHeaders: readonly string[],
  parameters: Parameters,
  clients: readonly Client[],
): Client {
  const presented = presentedClient(rawHeaders, parameters);
  const client = clients.find(({ client_id }) => client_id === presented.client_id);
  if (client === undefined || client.client_secret !== presented.client_secret) {
    throw new OAuthError("invalid_client", "The client is unknown or its secret is wrong.");
  }
  return client;
}

/** What the request says about its client. */
interface PresentedClient {
  readonly client_id: string;
  readonly client_secret: string | undefined;
}

function presentedClient(rawHeaders: readonly string[], parameters: Parameters): PresentedClient {
  const values = fieldValues(rawHeaders, "authorization");
  const client_id = parameters.get("client_id");
  const client_secret = parameters.get("client_secret");
  if (values.length === 0) {
    if (client_id === undefined) throw new OAuthError("invalid_client", "The request names no client.");
    return { client_id, client_secret };
  }
  // https://www.rfc-editor.org/rfc/rfc6749#section-2.3: never more than one method in a request.
  if (values.length > 1 || client_secret !== undefined) {
    throw new OAuthError("invalid_request", "The client is authenticated more than once.");
  }
  const basic = parseBasic(values[0] ?? "");
  if (client_id !== undefined && client_id !== basic.client_id) {
    throw new OAuthError("invalid_request", "client_id is not the client of the Authorization field.");
  }
  return basic;
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1: both parts are form-urlencoded before base64. */
function parseBasic(value: string): PresentedClient {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  const pair = Buffer.from(encoded ?? "", "base64").toString();
  const colon = pair.indexOf(":");
  if (colon === -1) throw new OAuthError("invalid_client", "The Authorization field is not Basic credentials.");
  return { client_id: formDecode(pair.slice(0, colon)), client_secret: formDecode(pair.slice(colon + 1)) };
}

function formDecode(text: string): string {
  return new URLSearchParams(`v=${text.replaceAll("&", "%26")}`).get("v") ?? "";
}
