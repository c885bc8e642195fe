import type { OAuth2 as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import type { OAuth2, Report } from "./provider.js";

const PARAMETER = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** Parameters of the authorization request that the relay sets itself (RFC 6749 section 4.1.1, RFC 7636). */
const AUTHORIZATION_PARAMETERS: ReadonlySet<string> = new Set([
  "response_type",
  "client_id",
  "redirect_uri",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
]);
/** Those of token requests (RFC 6749 sections 2.3.1, 4.1.3 and 6, RFC 7636 section 4.5, RFC 7521 section 4.2). */
const TOKEN_PARAMETERS: ReadonlySet<string> = new Set([
  "grant_type",
  "code",
  "redirect_uri",
  "client_id",
  "client_secret",
  "client_assertion",
  "client_assertion_type",
  "code_verifier",
  "refresh_token",
]);
/**
 * The members of `oauth2` that hold parameters, and what each must leave alone. grant_type is one for each grant, and a
 * refresh request has no redirect_uri, but some providers ask for it.
 */
const MEMBERS = {
  authorizationParameters: AUTHORIZATION_PARAMETERS,
  tokenParameters: TOKEN_PARAMETERS,
  codeParameters: without(TOKEN_PARAMETERS, "grant_type"),
  refreshParameters: without(TOKEN_PARAMETERS, "grant_type", "redirect_uri"),
} as const;

/** Reads the members of a definition's `oauth2` that name parameters of requests. */
export function parseOAuth2Parameters(
  definition: Definition,
  report: Report,
): Pick<OAuth2, keyof typeof MEMBERS | "clientIdParameter"> {
  const clientIdParameter = parseClientIdParameter(definition.clientIdParameter, report);
  const parameters = (member: keyof typeof MEMBERS) => {
    const own = new Set([...MEMBERS[member], clientIdParameter]);
    return parseParameters(member, definition[member], own, report);
  };
  return {
    clientIdParameter,
    authorizationParameters: parameters("authorizationParameters"),
    tokenParameters: parameters("tokenParameters"),
    codeParameters: parameters("codeParameters"),
    refreshParameters: parameters("refreshParameters"),
  };
}

function without(names: ReadonlySet<string>, ...left: readonly string[]): ReadonlySet<string> {
  return new Set([...names].filter((name) => !left.includes(name)));
}

function parseClientIdParameter(text: string, report: Report): string {
  if (text === "" || text === "client_id") return "client_id";
  const field = "oauth2.clientIdParameter";
  if (!PARAMETER.test(text)) report(field, "must be letters, digits and ._-");
  else if (AUTHORIZATION_PARAMETERS.has(text) || TOKEN_PARAMETERS.has(text)) report(field, "is set by the relay");
  return text;
}

function parseParameters(
  member: string,
  parameters: Readonly<Record<string, string>>,
  own: ReadonlySet<string>,
  report: Report,
): Readonly<Record<string, string>> {
  for (const name of Object.keys(parameters)) {
    const field = `oauth2.${member}.${name}`;
    if (!PARAMETER.test(name)) report(field, "must be letters, digits and ._-");
    else if (own.has(name)) report(field, problemOfOwn(member, name));
  }
  return { ...parameters };
}

function problemOfOwn(member: string, name: string): string {
  const isInWrongPlace = member === "tokenParameters" && name === "grant_type";
  return isInWrongPlace ? "must stand in codeParameters or refreshParameters" : "is set by the relay";
}
