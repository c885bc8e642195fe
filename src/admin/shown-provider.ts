import { MASK } from "../call/explanation.js";
import { isKeyField, mayHoldKey } from "../providers/key-header.js";
import type { OAuth2, Provider } from "../providers/provider.js";
import { isSensitiveField } from "../records/sensitive-name.js";
import type { Role } from "./operator.js";

/** Whether a field with this value is hidden. */
export type IsHidden = (name: string, value: string) => boolean;

/**
 * A provider as a role may see it: whoever only reads sees {@link MASK} for default headers and parameters of token
 * requests that may hold a key of the operator's own. Pure.
 */
export function providerShownTo(role: Role | undefined, provider: Provider): Provider {
  if (role === "operator") return provider;
  const { defaultHeaders, oauth2 } = provider;
  const headers = defaultHeaders.map(([name, value]) => [name, mayHoldKey(name) ? MASK : value] as const);
  return { ...provider, defaultHeaders: headers, oauth2: oauth2 && withMaskedParameters(oauth2) };
}

/** Whether a field of an explained request is one of the definition's that the role may not see. Pure. */
export function hiddenFieldsFor(role: Role | undefined, provider: Provider | undefined): IsHidden {
  if (role === "operator" || provider === undefined) return () => false;
  return (name, value) => isKeyField(provider, name, value);
}

/** Those of the authorization request are in every browser's address. */
function withMaskedParameters(oauth2: OAuth2): OAuth2 {
  const { tokenParameters, codeParameters, refreshParameters } = oauth2;
  return {
    ...oauth2,
    tokenParameters: masked(tokenParameters),
    codeParameters: masked(codeParameters),
    refreshParameters: masked(refreshParameters),
  };
}

function masked(parameters: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const pairs = Object.entries(parameters);
  return Object.fromEntries(pairs.map(([name, value]) => [name, isSensitiveField(name) && value ? MASK : value]));
}
