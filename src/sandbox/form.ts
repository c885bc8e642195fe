import { mediaType } from "./fields.js";
import { OAuthError } from "./oauth-error.js";
import type { SandboxRequest } from "./sandbox-request.js";

/** Parameters of an OAuth request. */
export type Parameters = ReadonlyMap<string, string>;

/** Reads the content of a token or revocation request. Throws {@link OAuthError} `invalid_request`. */
export function parseForm({ rawHeaders, body }: SandboxRequest): Parameters {
  if (mediaType(rawHeaders) !== "application/x-www-form-urlencoded") {
    throw new OAuthError("invalid_request", "The content must be application/x-www-form-urlencoded.");
  }
  const parameters = parseParameters(new URLSearchParams(body.toString()));
  if (parameters === undefined) throw new OAuthError("invalid_request", "A parameter is repeated.");
  return parameters;
}

/**
 * https://www.rfc-editor.org/rfc/rfc6749#section-3.2: parameters without a value count as left out, and none may be
 * repeated: undefined when one is.
 */
export function parseParameters(pairs: URLSearchParams): Parameters | undefined {
  const parameters = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (parameters.has(name)) return undefined;
    if (value !== "") parameters.set(name, value);
  }
  return parameters;
}

/** The value of a parameter that must be there. Throws {@link OAuthError} `invalid_request`. */
export function requiredParameter(parameters: Parameters, name: string): string {
  const value = parameters.get(name);
  if (value === undefined) throw new OAuthError("invalid_request", `The parameter ${name} is missing.`);
  return value;
}
