import { onlyValue } from "../lib/parse-url.js";
import { MAX_SECRET_LENGTH, parseValues, type ValueTexts } from "../providers/connection-value.js";
import { fillEndpoint } from "../providers/endpoint.js";
import type { OAuth1, Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import type { AuthorizationOptions } from "./authorization-server.js";
import { responseFromSecrets } from "./credentials.js";
import { openOAuthClient, type StoredOAuthClient } from "./oauth-client.js";
import { occasionAt, type SigningCredentials, signedCredentials } from "./signature.js";
import type { StatePayload } from "./tickets.js";
import type { TokenEndpointAnswer } from "./token-answer.js";
import type { TokenEndpoint } from "./token-endpoint.js";
import type { TokenResponse, ToldMembers } from "./token-response.js";

/** What both requests of the flow need (RFC 5849 section 2). */
interface SignedFlow {
  readonly options: Pick<AuthorizationOptions, "send" | "sealer" | "now">;
  readonly provider: Provider;
  /** The application's client; it may be sent to the hosts that these values name. */
  readonly client: StoredOAuthClient;
  /** Values to store with the connection. */
  readonly values: ValueTexts;
  readonly connectionId: string;
}

type Temporary = NonNullable<StatePayload["temporary"]>;

/** An answer that cannot be used; `error` is a code of RFC 6749 section 4.1.2.1 or 5.2, as applications know them. */
export interface Failed {
  readonly error: string;
}

/**
 * Requests temporary credentials (RFC 5849 section 2.1). Rejects with RelayError STORE_UNAVAILABLE when the client's
 * secret does not open.
 *
 * @param callback where the provider sends the browser back to; it identifies the attempt.
 */
export async function requestTemporary(flow: SignedFlow, callback: string): Promise<Temporary | Failed> {
  const answered = await ask(flow, "temporaryCredentialEndpoint", undefined, { oauth_callback: callback });
  if ("error" in answered) return answered;
  return { token: answered.told("oauth_token"), secret: answered.told("oauth_token_secret") };
}

/** The address where the user gives consent (RFC 5849 section 2.2). Undefined when a value is missing. Pure. */
export function agreementUrlFrom(
  { authorizationEndpoint = "", scopeParameter }: OAuth1,
  { connectionValues }: Pick<Provider, "connectionValues">,
  values: ValueTexts,
  { token }: Pick<Temporary, "token">,
  scope: string,
): string | undefined {
  const endpoint = fillEndpoint(authorizationEndpoint, values, connectionValues);
  if (endpoint === undefined) return undefined;
  const url = new URL(endpoint);
  if (scopeParameter !== undefined && scope !== "") url.searchParams.set(scopeParameter, scope);
  url.searchParams.set("oauth_token", token);
  return url.href;
}

/** Redeems the verifier of a callback for a token (RFC 5849 section 2.3), once. Rejects as {@link requestTemporary} does. */
export async function redeemVerifier(
  flow: SignedFlow,
  { token, secret }: Temporary,
  verifier: string,
): Promise<{ readonly tokens: TokenResponse; readonly told: ToldMembers } | Failed> {
  const temporary = { token: new Secret(token), secret: new Secret(secret) };
  const answered = await ask(flow, "tokenEndpoint", temporary, { oauth_verifier: verifier });
  if ("error" in answered) return answered;
  const { told } = answered;
  const given = TOKEN_PARAMETERS.map((name) => [name, told(name)] as const);
  const parsed = parseValues(new Map(given), flow.provider, "secret");
  // A token that could not be redacted from answers, or sent in a header field, cannot be used.
  if ("problem" in parsed) return { error: "invalid_response" };
  return { tokens: responseFromSecrets("oauth1", parsed.values), told };
}

const TOKEN_PARAMETERS = ["oauth_token", "oauth_token_secret"];

async function ask(
  { options, provider, client, values, connectionId }: SignedFlow,
  which: "temporaryCredentialEndpoint" | "tokenEndpoint",
  token: SigningCredentials["token"],
  parameters: Readonly<Record<string, string>>,
): Promise<{ readonly told: ToldMembers } | Failed> {
  const { oauth1, connectionValues, allowPrivateNetwork } = provider;
  const endpoint = fillEndpoint(oauth1?.[which] ?? "", values, connectionValues);
  if (oauth1 === undefined || !endpoint) return { error: "invalid_response" };
  const url = new URL(endpoint);
  const request = { method: "POST", origin: url.origin, path: url.pathname + url.search, form: undefined } as const;
  const signing = { ...openOAuthClient(options.sealer, client), token };
  // The realm of the definition is that of the API, not of these endpoints.
  const habits = { signatureMethod: oauth1.signatureMethod, realm: "" };
  const credentials = signedCredentials(request, signing, habits, occasionAt(options.now()), parameters);
  const headers = ["accept", "*/*", "user-agent", "provider-call-relay", "accept-encoding", "identity"];
  const target: TokenEndpoint = { tokenEndpoint: endpoint, registration: client, connectionId, allowPrivateNetwork };
  try {
    const answer = await options.send(target, {
      headers: [...headers, "authorization", `OAuth ${credentials.reveal()}`],
      body: Buffer.alloc(0),
    });
    return decideAnswer(answer, token === undefined ? "invalid_client" : "invalid_grant");
  } catch {
    // No answer counts as a temporary failure: the next attempt starts over.
    return { error: "temporarily_unavailable" };
  }
}

/** A larger answer is invalid; in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Problems of the client or the relay's clock (OAuth Problem Reporting). */
const OF_CLIENT = /\boauth_problem=(?:consumer_key_|signature_|timestamp_|nonce_|version_)/;

/** Judges an answer (RFC 5849 sections 2.1 and 2.3). Pure. @param refusal the error for a refusal without details. */
function decideAnswer(
  { statusCode, body }: TokenEndpointAnswer,
  refusal: string,
): { readonly told: ToldMembers } | Failed {
  const text = Buffer.from(body.subarray(0, MAX_ANSWER_BYTES)).toString().trim();
  if (statusCode >= 500 || statusCode === 408 || statusCode === 429) return { error: "temporarily_unavailable" };
  if (statusCode >= 400) return { error: OF_CLIENT.test(text) ? "invalid_client" : refusal };
  const parameters = new URLSearchParams(text);
  const told = (name: string) => onlyValue(parameters, name);
  const isWhole = body.length <= MAX_ANSWER_BYTES && TOKEN_PARAMETERS.every((name) => isToken(told(name)));
  return statusCode < 300 && isWhole ? { told } : { error: "invalid_response" };
}

function isToken(text: string): boolean {
  return text.length <= MAX_SECRET_LENGTH && /^[\x20-\x7e]+$/.test(text);
}
