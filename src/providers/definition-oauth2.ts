import type { Assertion as AssertionDefinition, OAuth2 as Definition } from "../../gen/relay/admin/v1/provider_pb.js";
import { namesIn } from "./connection-value.js";
import { parseChoice } from "./definition-json.js";
import { type EndpointPolicy, endpointProblem, isMemberPath, MEMBER_PATH_HINT } from "./endpoint.js";
import { CONNECT_PARAMETERS } from "./origin.js";
import {
  ASSERTION_ALGORITHMS,
  type Assertion,
  KEY_VALUES,
  MAX_EXPIRES_IN_S,
  type OAuth2,
  type Report,
} from "./provider.js";

const AUTHENTICATIONS = ["client_secret_basic", "client_secret_post", "none"] as const;
const FORMATS = ["form", "json"] as const;
/** A scope-token of RFC 6749 section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;
const SCOPE_HINT = "must be a single scope: printable ASCII without spaces, double quotes and backslashes";
const MAX_ERROR_LENGTH = 256;
const MAX_DESCRIPTIONS = 100;
/** One line without control characters and without format characters such as bidirectional ones. */
const DESCRIPTION = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]{1,200}$/u;

/** Parses the `oauth2` member of a definition; defaults are those of RFC 6749. */
export function parseOAuth2(definition: Definition, policy: EndpointPolicy, report: Report): OAuth2 {
  const { pkce, clientAuthentication, tokenRequestFormat, nonExpiringAccessTokens, refreshTokenRotation } = definition;
  const { authorizationResponseIssParameterSupported } = definition;
  if (authorizationResponseIssParameterSupported && definition.issuer === "")
    report("oauth2.authorizationResponseIssParameterSupported", "needs oauth2.issuer, which iss is compared with");
  const endpoint = (field: EndpointField) => parseEndpoint(field, definition[field], policy, report);
  return {
    authorizationEndpoint: endpoint("authorizationEndpoint"),
    tokenEndpoint: endpoint("tokenEndpoint"),
    refreshEndpoint: endpoint("refreshEndpoint"),
    revocationEndpoint: endpoint("revocationEndpoint"),
    issuer: endpoint("issuer"),
    authorizationResponseIssParameterSupported,
    scopeSeparator: parseScopeSeparator(definition.scopeSeparator, report),
    defaultScopes: parseDefaultScopes(definition, report),
    scopeDescriptions: parseScopeDescriptions(definition, report),
    pkce,
    // By default what every authorization server supports (RFC 6749 section 2.3.1).
    clientAuthentication: parseChoice(AUTHENTICATIONS, clientAuthentication, "oauth2.clientAuthentication", report),
    ...parseOAuth2Parameters(definition, report),
    tokenRequestFormat: parseChoice(FORMATS, tokenRequestFormat, "oauth2.tokenRequestFormat", report),
    tokenResponseMember: parseMember(definition, "tokenResponseMember", report),
    tokenErrorMember: parseMember(definition, "tokenErrorMember", report),
    expiresAtMember: parseMember(definition, "expiresAtMember", report),
    rawClientSecretBasic: definition.rawClientSecretBasic,
    connectParameters: parseConnectParameters(definition, policy, report),
    refreshEndedErrors: parseRefreshEndedErrors(definition, report),
    nonExpiringAccessTokens,
    defaultExpiresIn: parseDefaultExpiresIn(definition, report),
    refreshTokenRotation,
    assertion: definition.assertion && parseAssertion(definition.assertion, policy.names, report),
  };
}

type EndpointField = "authorizationEndpoint" | "tokenEndpoint" | "refreshEndpoint" | "revocationEndpoint" | "issuer";

/**
 * An issuer is a url without query and fragment (RFC 8414 section 2). Kept as written, for exact comparison (RFC 9207
 * section 2.4).
 */
function parseEndpoint(field: EndpointField, text: string, policy: EndpointPolicy, report: Report): string | undefined {
  if (text === "") return undefined;
  const hasQuery = field === "issuer" && text.includes("?");
  const problem = hasQuery ? "must have no query" : endpointProblem(text, policy);
  if (problem !== undefined) report(`oauth2.${field}`, problem);
  return text;
}

/** A space by default (RFC 6749 section 3.3). */
function parseScopeSeparator(text: string, report: Report): string {
  if (!/^[\x20-\x7e]{0,3}$/.test(text))
    report("oauth2.scopeSeparator", "must be at most 3 characters of printable ASCII, such as a space");
  return text === "" ? " " : text;
}

function parseDefaultScopes({ defaultScopes, scopeSeparator }: Definition, report: Report): readonly string[] {
  defaultScopes.forEach((scope, at) => {
    const field = `oauth2.defaultScopes[${at}]`;
    if (!SCOPE.test(scope)) report(field, SCOPE_HINT);
    else if (scopeSeparator !== "" && scope.includes(scopeSeparator)) report(field, "contains the scopeSeparator");
    else if (defaultScopes.indexOf(scope) !== at) report(field, "appears twice");
  });
  return [...defaultScopes];
}

function parseScopeDescriptions({ scopeDescriptions }: Definition, report: Report): Readonly<Record<string, string>> {
  const entries = Object.entries(scopeDescriptions);
  if (entries.length > MAX_DESCRIPTIONS)
    report("oauth2.scopeDescriptions", `must have at most ${MAX_DESCRIPTIONS} entries`);
  for (const [scope, description] of entries) {
    const field = `oauth2.scopeDescriptions.${scope}`;
    if (!SCOPE.test(scope)) report(field, SCOPE_HINT);
    else if (!DESCRIPTION.test(description)) report(field, "must be one line of 1 to 200 characters");
  }
  return { ...scopeDescriptions };
}

function parseMember(
  definition: Definition,
  field: "tokenResponseMember" | "tokenErrorMember" | "expiresAtMember",
  report: Report,
): string | undefined {
  const text = definition[field];
  if (text === "") return undefined;
  if (!isMemberPath(text)) report(`oauth2.${field}`, MEMBER_PATH_HINT);
  return text;
}

function parseRefreshEndedErrors({ refreshEndedErrors }: Definition, report: Report): ReadonlySet<string> {
  refreshEndedErrors.forEach((code, at) => {
    const field = `oauth2.refreshEndedErrors[${at}]`;
    if (code === "" || code.length > MAX_ERROR_LENGTH) report(field, `must be 1 to ${MAX_ERROR_LENGTH} characters`);
    else if (refreshEndedErrors.indexOf(code) !== at) report(field, "appears twice");
  });
  return new Set(refreshEndedErrors);
}

function parseDefaultExpiresIn(
  { defaultExpiresIn, nonExpiringAccessTokens }: Definition,
  report: Report,
): number | undefined {
  if (defaultExpiresIn === 0) return undefined;
  const field = "oauth2.defaultExpiresIn";
  if (defaultExpiresIn < 0 || defaultExpiresIn > MAX_EXPIRES_IN_S)
    report(field, `must be 1 to ${MAX_EXPIRES_IN_S} seconds`);
  else if (nonExpiringAccessTokens) report(field, "is not allowed together with nonExpiringAccessTokens");
  return defaultExpiresIn;
}

const PARAMETER = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** Parameters of the authorization request that the relay sets itself (RFC 6749 section 4.1.1, RFC 7636). */
const AUTHORIZATION_PARAMETERS: ReadonlySet<string> = new Set(
  "response_type client_id scope state code_challenge code_challenge_method".split(" "),
);
/**
 * Parameters of token requests that the relay sets itself (RFC 6749 sections 2.3.1, 4.1.3 and 6, RFC 7636 section 4.5,
 * RFC 7521 section 4.2).
 */
const TOKEN_PARAMETERS: ReadonlySet<string> = new Set(
  `grant_type code redirect_uri client_id client_secret client_assertion client_assertion_type
   code_verifier refresh_token`.split(/\s+/),
);
/**
 * The members of `oauth2` that hold parameters, each with the names it must not contain. codeParameters and
 * refreshParameters may set grant_type, which differs per grant. They may also set redirect_uri: some providers have
 * their own name for an address (eBay's RuName), or want it in refresh requests too.
 */
const MEMBERS = {
  authorizationParameters: AUTHORIZATION_PARAMETERS,
  tokenParameters: TOKEN_PARAMETERS,
  codeParameters: without(TOKEN_PARAMETERS, "grant_type", "redirect_uri"),
  refreshParameters: without(TOKEN_PARAMETERS, "grant_type", "redirect_uri"),
} as const;

/** Parses the members of `oauth2` that name request parameters. */
function parseOAuth2Parameters(
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

/** Applications pass these in the connect url, next to the relay's own parameters and the connection values. */
function parseConnectParameters(
  { connectParameters, clientIdParameter }: Definition,
  { names }: EndpointPolicy,
  report: Report,
): readonly string[] {
  connectParameters.forEach((name, at) => {
    const field = `oauth2.connectParameters[${at}]`;
    const isOwn = AUTHORIZATION_PARAMETERS.has(name) || CONNECT_PARAMETERS.has(name) || name === clientIdParameter;
    if (!PARAMETER.test(name)) report(field, "must be letters, digits and ._-");
    else if (isOwn || names.has(name)) report(field, "is reserved for the relay or a connection value");
    else if (connectParameters.indexOf(name) !== at) report(field, "appears twice");
  });
  return [...connectParameters];
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
  return isInWrongPlace ? "must be in codeParameters or refreshParameters" : "is set by the relay";
}

const USES = ["grant", "client_authentication", "access_token"] as const;
const MEMBER = /^[A-Za-z][A-Za-z0-9._:/#-]{0,127}$/;
const MAX_MEMBERS = 16;
const MAX_TEXT_LENGTH = 1024;
/** Header parameters of RFC 7515 section 4.1 that decide how the signature is verified. */
const OWN_HEADER: ReadonlySet<string> = new Set(["alg", "typ", "crit", "b64", "jwk", "jku", "x5u"]);
/** Claims of RFC 7519 section 4.1 that the relay sets. */
const OWN_CLAIMS: ReadonlySet<string> = new Set(["iat", "exp", "nbf", "jti"]);
/** In seconds. Providers accept an hour at most; Box wants 60 at least. */
const LIFETIME = { least: 60, most: 3600, default: 300 } as const;

/**
 * Parses `oauth2.assertion` of a definition.
 *
 * @param names connection values that header and claims may use.
 */
function parseAssertion(definition: AssertionDefinition, names: ReadonlySet<string>, report: Report): Assertion {
  const { algorithm: name, jti } = definition;
  const algorithm = ASSERTION_ALGORITHMS.find((known) => known === name);
  if (algorithm === undefined)
    report("oauth2.assertion.algorithm", `must be one of ${ASSERTION_ALGORITHMS.join(", ")}`);
  const use = parseChoice(USES, definition.use, "oauth2.assertion.use", report);
  return {
    algorithm: algorithm ?? "RS256",
    header: parseMembers("header", definition.header, OWN_HEADER, names, report),
    claims: parseMembers("claims", definition.claims, OWN_CLAIMS, names, report),
    lifetimeSeconds: parseLifetime(definition, report),
    jti,
    use,
  };
}

function parseMembers(
  member: "header" | "claims",
  texts: Readonly<Record<string, string>>,
  own: ReadonlySet<string>,
  names: ReadonlySet<string>,
  report: Report,
): Readonly<Record<string, string>> {
  const entries = Object.entries(texts);
  const isKey = (name: string) => Object.values(KEY_VALUES).some((known) => known === name);
  if (entries.length > MAX_MEMBERS) report(`oauth2.assertion.${member}`, `must have at most ${MAX_MEMBERS} entries`);
  for (const [name, value] of entries) {
    const field = `oauth2.assertion.${member}.${name}`;
    const unknown = namesIn(value).find((each) => !names.has(each) || isKey(each));
    if (!MEMBER.test(name)) report(field, "must be a name of letters, digits and ._:/#-");
    else if (own.has(name)) report(field, "is set by the relay");
    if (value === "" || value.length > MAX_TEXT_LENGTH) report(field, `must be 1 to ${MAX_TEXT_LENGTH} characters`);
    if (unknown !== undefined) report(field, `{${unknown}} is not a connection value that may be in an assertion`);
  }
  return { ...texts };
}

function parseLifetime({ lifetimeSeconds: seconds }: AssertionDefinition, report: Report): number {
  const { least, most } = LIFETIME;
  if (seconds === 0) return LIFETIME.default;
  if (seconds < least || seconds > most)
    report("oauth2.assertion.lifetimeSeconds", `must be ${least} to ${most} seconds`);
  return seconds;
}
