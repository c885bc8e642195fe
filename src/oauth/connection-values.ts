import { fillTemplate, textIn, type ValueTexts, withDefaults, withTold } from "../providers/connection-value.js";
import { placeCredential } from "../providers/credential.js";
import { decideBoundOrigin, decideEgress } from "../providers/egress.js";
import { fillEndpoint } from "../providers/endpoint.js";
import type { HeaderPairs, Provider, ValueSource } from "../providers/provider.js";
import type { Secret } from "../sealing/seal.js";
import { credentialsOf, textsOf } from "./credentials.js";
import type { StoredOAuthClient } from "./oauth-client.js";
import type { TokenEndpointAnswer } from "./token-answer.js";
import { freeHostParameter, type TokenEndpoint } from "./token-endpoint.js";
import type { OAuthClient, TokenRequest } from "./token-request.js";
import { type ToldMembers, toldMembersFrom } from "./token-response.js";

const LOOKUP_HEADERS: HeaderPairs = [
  ["accept", "application/json"],
  ["accept-encoding", "identity"],
  ["user-agent", "provider-call-relay"],
];

/**
 * The values that the operator has fixed with the application's OAuth client; they take precedence over all others. The
 * client id is one of them for client credentials, and wherever the definition lists it as a value of the client.
 */
export function boundValuesOf(
  { kind, connectionValues }: Pick<Provider, "kind" | "connectionValues">,
  { originParameters, clientId }: Pick<StoredOAuthClient, "originParameters" | "clientId">,
): ValueTexts {
  const isNamed = connectionValues.some(({ name, source }) => name === "client_id" && source.kind === "client");
  return isNamed || kind === "client_credentials" ? { ...originParameters, client_id: clientId } : originParameters;
}

/** The values that an OAuth client still lacks before users can connect: `name=VALUE`, or `name=HOST` for its host. */
export function unboundValuesOf(
  provider: Provider,
  client: Pick<StoredOAuthClient, "originParameters" | "clientId">,
): readonly string[] {
  const bound = boundValuesOf(provider, client);
  const values = provider.connectionValues.filter(
    ({ name, source, isOptional }) => source.kind === "client" && !isOptional && !Object.hasOwn(bound, name),
  );
  const host = freeHostParameter(provider, client);
  const others = values.flatMap(({ name }) => (name === host ? [] : `${name}=VALUE`));
  return host === undefined ? others : [...others, `${host}=HOST`];
}

/**
 * Adds to the known values those that an authorization response or a token response contains. Pure.
 *
 * @param fixed values that the response cannot change.
 */
export function withAnswer(
  provider: Provider,
  known: ValueTexts,
  fixed: ValueTexts,
  from: Extract<ValueSource["kind"], "callback" | "token">,
  textOf: ToldMembers,
): ValueTexts {
  const told = new Map<string, string>();
  for (const { name, source } of provider.connectionValues) {
    if (source.kind !== from || Object.hasOwn(fixed, name)) continue;
    const text = textOf(source.kind === "callback" ? source.parameter : source.member);
    if (text !== "") told.set(name, text);
  }
  return told.size === 0 ? known : withTold(known, told, provider);
}

/** Fills values into request parameters; one whose value is unknown becomes empty, and is left out later. Pure. */
export function filledParameters(
  parameters: Readonly<Record<string, string>>,
  texts: ValueTexts,
): Readonly<Record<string, string>> {
  const textOf = textIn(texts);
  return Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, fillTemplate(value, textOf) ?? ""]),
  );
}

/** What a lookup of values needs. */
interface LookupOptions {
  readonly send: (endpoint: TokenEndpoint, request: TokenRequest) => Promise<TokenEndpointAnswer>;
  readonly provider: Provider;
  readonly server: TokenEndpoint;
  /** Signs requests; undefined when requests are not signed. */
  readonly client: OAuthClient | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly accessToken: Secret;
  readonly tokenType: string;
}

/**
 * Adds to the known values those that the provider's API returns for the new token. Each address is requested once, and
 * only when the values known so far allow the token to be sent there. Never rejects: a failed lookup adds no value.
 */
export async function withLookups(options: LookupOptions, known: ValueTexts): Promise<ValueTexts> {
  const answers = new Map<string, ToldMembers>();
  let texts = known;
  for (const { name, source } of options.provider.connectionValues) {
    if (source.kind !== "lookup" || Object.hasOwn(texts, name)) continue;
    const told = answers.get(source.url) ?? (await lookUp(options, source.url, texts).catch(() => () => ""));
    answers.set(source.url, told);
    texts = withTold(texts, new Map([[name, told(source.member)]]), options.provider);
  }
  return texts;
}

async function lookUp(
  { send, provider, server, client, now, accessToken, tokenType }: LookupOptions,
  template: string,
  known: ValueTexts,
): Promise<ToldMembers> {
  const texts = withDefaults(known, provider);
  const url = fillEndpoint(template, texts, provider.connectionValues);
  const egress = url === undefined ? undefined : decideEgress(url, provider);
  if (egress?.result !== "allow" || decideBoundOrigin(egress, texts).result !== "allow") return () => "";
  const open = () => accessToken;
  const credentials = credentialsOf(provider, { tokenType, originParameters: texts }, open, undefined, client);
  const signable = { method: "GET", origin: egress.origin, path: egress.path, form: undefined };
  const { path, headers } = placeCredential({
    ...{ provider, headers: [], defaults: LOOKUP_HEADERS, path: egress.path },
    ...{ texts: textsOf(credentials, signable, now()), values: texts },
  });
  const request = { method: "GET", headers, body: Buffer.alloc(0) } as const;
  const { statusCode, body } = await send({ ...server, tokenEndpoint: egress.origin + path }, request);
  return statusCode === 200 ? toldMembersFrom(Buffer.from(body).toString()) : () => "";
}
