import type { OAuth1 as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { namesIn } from "./connection-value.js";
import { type EndpointPolicy, endpointProblem } from "./endpoint.js";
import { type OAuth1, type Report, SIGNATURE_METHODS, type SignatureMethod } from "./provider.js";

const ENDPOINTS = ["temporaryCredentialEndpoint", "authorizationEndpoint", "tokenEndpoint"] as const;
/** What stands between quotes (RFC 9110 section 5.6.4), without the quotes and backslashes that would need one. */
const REALM = /^[\x20\x21\x23-\x5b\x5d-\x7e]{0,256}$/;
/** The parameters of RFC 5849 are the relay's own. */
const PARAMETER = /^(?!oauth_)[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/** Reads the `oauth1` member of a definition. */
export function parseOAuth1(definition: Definition, policy: EndpointPolicy, report: Report): OAuth1 {
  const { realm, scopeParameter } = definition;
  const [temporaryCredentialEndpoint, authorizationEndpoint, tokenEndpoint] = ENDPOINTS.map((field) =>
    parseEndpoint(definition, field, policy, report),
  );
  const unknown = namesIn(realm).find((name) => !policy.names.has(name));
  if (!REALM.test(realm)) report("oauth1.realm", "must be printable ASCII without quotes and backslashes");
  else if (unknown !== undefined) report("oauth1.realm", `{${unknown}} is no connection value`);
  if (scopeParameter !== "" && !PARAMETER.test(scopeParameter))
    report("oauth1.scopeParameter", "must be letters, digits and ._-, and none of RFC 5849");
  return {
    temporaryCredentialEndpoint,
    authorizationEndpoint,
    tokenEndpoint,
    signatureMethod: parseSignatureMethod(definition.signatureMethod, report),
    realm,
    scopeParameter: scopeParameter || undefined,
  };
}

/** All three, or none. */
function parseEndpoint(
  definition: Definition,
  field: (typeof ENDPOINTS)[number],
  policy: EndpointPolicy,
  report: Report,
): string | undefined {
  const text = definition[field];
  const problem = text === "" ? undefined : endpointProblem(text, policy);
  if (problem !== undefined) report(`oauth1.${field}`, problem);
  else if (text === "" && ENDPOINTS.some((other) => definition[other] !== ""))
    report(`oauth1.${field}`, "is missing: name all three endpoints, or none");
  else if (/[?&]oauth_/i.test(text)) report(`oauth1.${field}`, "must leave the parameters of RFC 5849 to the relay");
  return text || undefined;
}

function parseSignatureMethod(text: string, report: Report): SignatureMethod {
  const known = SIGNATURE_METHODS.find((name) => name === (text || SIGNATURE_METHODS[0]));
  if (known === undefined) report("oauth1.signatureMethod", `must be one of ${SIGNATURE_METHODS.join(", ")}`);
  return known ?? SIGNATURE_METHODS[0];
}
