import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type OAuthClient as OAuthClientMessage, OAuthClientSchema } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { parseOriginParameters } from "../providers/origin-parameters.js";
import type { Provider } from "../providers/provider.js";
import type { StoredOAuthClient } from "../tokens/oauth-client.js";
import { Secret } from "../tokens/secret.js";
import { etagFrom } from "./etag.js";
import { invalidArgument } from "./invalid-argument.js";
import type { OAuthClientFields } from "./put-oauth-client.js";

/** VSCHAR of RFC 6749 appendix A.1 and A.2. */
const CREDENTIAL = /^[\x20-\x7e]{1,4096}$/;
const SCOPE = /^[\x20-\x7e]{0,4096}$/;

/** Fields of a client that an operator can write. */
export const CLIENT_FIELDS = ["client_id", "client_secret", "scope", "origin_parameters"] as const;

/** A client as operators see it; the secret is not among its members. */
export function messageFromClient(client: StoredOAuthClient, publicKey: string): OAuthClientMessage {
  return create(OAuthClientSchema, {
    publicKey,
    providerName: client.providerName,
    clientId: client.clientId,
    hasClientSecret: client.clientSecret !== undefined,
    scope: client.scope,
    originParameters: { ...client.originParameters },
    updateTime: timestampFromMs(client.updatedAt),
    ...(client.refusedSince !== undefined && { refusedTime: timestampFromMs(client.refusedSince) }),
    etag: clientEtag(client),
  });
}

/** A secret that is sealed again under another key is no change. */
export function clientEtag({
  id,
  clientId,
  clientSecret,
  scope,
  originParameters,
  updatedAt,
}: StoredOAuthClient): string {
  const parameters = Object.entries(originParameters).sort();
  return etagFrom([id, clientId, clientSecret !== undefined, scope, parameters, updatedAt]);
}

/** Reads a whole client. Throws INVALID_ARGUMENT that names the field. */
export function clientFieldsFrom(message: OAuthClientMessage, provider: Provider): OAuthClientFields {
  return clientPatchFrom(message, provider, CLIENT_FIELDS) as OAuthClientFields;
}

/** Reads fields of a client. Throws INVALID_ARGUMENT that names the field. */
export function clientPatchFrom(
  message: OAuthClientMessage,
  provider: Provider,
  fields: ReadonlyArray<(typeof CLIENT_FIELDS)[number]>,
): Partial<OAuthClientFields> {
  const has = (field: (typeof CLIENT_FIELDS)[number]) => fields.includes(field);
  return {
    ...(has("client_id") ? { clientId: matching(message.clientId, CREDENTIAL, "client_id") } : {}),
    ...(has("client_secret") ? { clientSecret: secretFrom(message.clientSecret) } : {}),
    ...(has("scope") ? { scope: matching(message.scope, SCOPE, "scope") } : {}),
    ...(has("origin_parameters") ? { originParameters: clientParametersFrom(message, provider) } : {}),
  };
}

/** Reads parameters of templated origins. Throws INVALID_ARGUMENT. */
export function originParametersFrom(
  given: Readonly<Record<string, string>>,
  provider: Provider,
  field: string,
): Readonly<Record<string, string>> {
  const parsed = parseOriginParameters(new Map(Object.entries(given)), provider);
  if ("values" in parsed) return parsed.values;
  throw invalidArgument(`${field}.${parsed.parameter}`, parsed.problem);
}

/** Without any, the client is for all of the provider's customers. */
function clientParametersFrom({ originParameters }: OAuthClientMessage, provider: Provider) {
  if (Object.keys(originParameters).length === 0) return {};
  return originParametersFrom(originParameters, provider, "oauth_client.origin_parameters");
}

function secretFrom(text: string): Secret | undefined {
  return text === "" ? undefined : new Secret(matching(text, CREDENTIAL, "client_secret"));
}

/** The text is quoted nowhere: it may be a secret, or one in the wrong field. */
function matching(text: string, pattern: RegExp, field: string): string {
  if (pattern.test(text)) return text;
  throw invalidArgument(
    `oauth_client.${field}`,
    text === "" ? "is missing" : "must be printable ASCII of at most 4096 characters",
  );
}
