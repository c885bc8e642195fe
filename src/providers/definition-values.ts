import type {
  CredentialPlacement,
  ConnectionValue as Definition,
  Provider as ProviderDefinition,
} from "../../gen/relay/admin/v1/provider_pb.js";
import { isBasic, isTemplate, namesIn, problemOfValue } from "./connection-value.js";
import { isDroppedHeader } from "./credential.js";
import { boundsOf, type EndpointPolicy, endpointProblem, isMemberPath, MEMBER_PATH_HINT } from "./endpoint.js";
import { CONNECT_PARAMETERS, type HostBounds } from "./origin.js";
import {
  CONNECTION_KINDS,
  type ConnectionKind,
  type ConnectionValue,
  type Credential,
  type Provider,
  type Report,
  type ValueSource,
} from "./provider.js";

/** What goes with a call at each kind, where the definition does not say. */
const DEFAULT_VALUE: Readonly<Record<ConnectionKind, string>> = {
  oauth2: "{access_token}",
  client_credentials: "{access_token}",
  api_key: "{api_key}",
  basic: "{username}:{password}",
};
/** Values of each kind that a definition need not name. */
const OWN_VALUES: Readonly<Record<ConnectionKind, readonly Partial<Definition>[]>> = {
  oauth2: [],
  client_credentials: [
    { name: "client_id", label: "Client ID", optional: true },
    { name: "client_secret", label: "Client secret", secret: true, optional: true },
  ],
  api_key: [{ name: "api_key", label: "API key", secret: true }],
  basic: [
    // RFC 7617 section 2: what comes after a colon would be taken for the password.
    { name: "username", label: "User name", pattern: "[^:]*" },
    { name: "password", label: "Password", secret: true },
  ],
};

const NAME = /^[a-z][a-z0-9_]{0,31}$/;
/** Names of what is no value of a connection. */
const RESERVED: ReadonlySet<string> = new Set([...CONNECT_PARAMETERS, "access_token", "id_token", "refresh_token"]);
/** A token of RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}$/;
const QUERY_PARAMETER = /^[A-Za-z0-9._~-]{1,64}$/;
const CREDENTIAL_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;
const LABEL = /^[^\p{C}\p{Zl}\p{Zp}]{0,200}$/u;
const HELP = /^[^\p{C}\p{Zl}\p{Zp}]{0,500}$/u;
const CALLBACK_PARAMETER = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;
/** RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207. */
const ANSWER_PARAMETERS: ReadonlySet<string> = new Set(["code", "state", "error", "error_description", "iss"]);
/** RFC 6749 section 5.1. */
const TOKEN_MEMBER = /(?:^|\.)(?:access_token|refresh_token|id_token)$/;
const MAX_VALUES = 16;
const MAX_CHOICES = 100;

/** What of a provider says what users connect with, and where it goes. */
export interface ConnectionParts {
  readonly kind: ConnectionKind;
  readonly connectionValues: readonly ConnectionValue[];
  readonly credential: Credential;
  readonly furtherCredentials: readonly Credential[];
}

/** Reads `kind`, `connectionValues`, `credential` and `furtherCredentials` of a definition. */
export function parseConnectionParts(
  definition: ProviderDefinition,
  hosts: Pick<Provider, "origins" | "hostTemplates">,
  report: Report,
): ConnectionParts {
  const kind = parseKind(definition, report);
  const values = valueDefinitions(kind, definition);
  const first = values.find(({ secret }) => secret === true)?.name;
  const defaultValue = kind === "api_key" && first !== undefined ? `{${first}}` : DEFAULT_VALUE[kind];
  const credential = parseCredential(kind, definition.credential, defaultValue, "credential", report);
  const furtherCredentials = definition.furtherCredentials.map((placement, at) =>
    parseCredential(kind, placement, "", `furtherCredentials[${at}]`, report),
  );
  const places = [credential, ...furtherCredentials];
  const headers = Object.values(definition.defaultHeaders);
  const connectionValues = parseValues(kind, values, { ...hosts, places, headers }, report);
  checkPlaces(kind, places, connectionValues, report);
  return { kind, connectionValues, credential, furtherCredentials };
}

function parseKind({ kind: text, oauth2 }: ProviderDefinition, report: Report): ConnectionKind {
  const known = CONNECTION_KINDS.find((kind) => kind === (text || "oauth2"));
  if (known === undefined) report("kind", `must be one of ${CONNECTION_KINDS.join(", ")}`);
  else if (hasTokens(known)) {
    if (known !== "oauth2" && !oauth2?.tokenEndpoint)
      report("oauth2.tokenEndpoint", `is missing for the kind ${known}`);
  } else if (oauth2 !== undefined) report("oauth2", `not together with the kind ${known}`);
  return known ?? "oauth2";
}

function hasTokens(kind: ConnectionKind): boolean {
  return kind === "oauth2" || kind === "client_credentials";
}

/** Those that the kind has by itself stand last, unless the definition names other keys in their place. */
function valueDefinitions(
  kind: ConnectionKind,
  { connectionValues }: ProviderDefinition,
): readonly Partial<Definition>[] {
  if (!hasTokens(kind) && connectionValues.some(({ secret }) => secret)) return connectionValues;
  const named = new Set(connectionValues.map(({ name }) => name));
  const own = OWN_VALUES[kind];
  // The application's OAuth client stands in for a client that the connection has none of.
  const given = connectionValues.map((value) =>
    own.some(({ name, optional }) => name === value.name && optional) ? { ...value, optional: true } : value,
  );
  return [...given, ...own.filter(({ name = "" }) => !named.has(name))];
}

/** Where the values are used. */
interface Uses extends Pick<Provider, "origins" | "hostTemplates"> {
  readonly places: readonly Credential[];
  /** Values of default headers. */
  readonly headers: readonly string[];
}

/** Judges where values are looked up: the token goes there, so it must be one of the origins, as the definition writes it. */
export function checkLookups(
  values: readonly ConnectionValue[],
  apiOrigins: readonly string[],
  policy: EndpointPolicy,
  report: Report,
): void {
  values.forEach(({ source }, at) => {
    if (source.kind !== "lookup") return;
    const problem = endpointProblem(source.url, policy);
    const isListed = apiOrigins.some((origin) => source.url.startsWith(`${origin}/`));
    if (problem !== undefined) report(`connectionValues[${at}].lookup.url`, problem);
    else if (!isListed) report(`connectionValues[${at}].lookup.url`, "must be at one of apiOrigins");
  });
}

/** What a definition says of its values as a part of hosts, before anything else is read. */
export function boundsFromDefinition({ connectionValues }: ProviderDefinition): HostBounds {
  return boundsOf(connectionValues);
}

function parseValues(
  kind: ConnectionKind,
  definitions: readonly Partial<Definition>[],
  uses: Uses,
  report: Report,
): readonly ConnectionValue[] {
  if (definitions.length > MAX_VALUES) report("connectionValues", `must be at most ${MAX_VALUES}`);
  const names = definitions.map(({ name }) => name);
  const parsed = definitions.map((definition, at) => {
    const reportMember: Report = (field, message) => report(`connectionValues[${at}].${field}`, message);
    if (names.indexOf(definition.name) !== at) reportMember("name", "stands twice");
    return parseValue(kind, definition, uses, reportMember);
  });
  const hostNames = uses.origins.flatMap((rule) => (rule.kind === "template" ? rule.parameters : []));
  const others = [...new Set(hostNames)].filter((name) => !names.includes(name));
  return [...parsed, ...others.map((name) => parseValue(kind, { name }, uses, () => {}))];
}

function parseValue(
  kind: ConnectionKind,
  definition: Partial<Definition>,
  uses: Uses,
  report: Report,
): ConnectionValue {
  const {
    name = "",
    label = "",
    help = "",
    defaultValue = "",
    choices = [],
    secret = false,
    optional = false,
  } = definition;
  if (!NAME.test(name)) report("name", "must be a lower-case letter, then letters, digits and '_', 32 at most");
  else if (RESERVED.has(name)) report("name", "must be another one: the relay has a parameter of this name");
  if (!LABEL.test(label)) report("label", "must be one line of at most 200 characters");
  if (!HELP.test(help)) report("help", "must be one line of at most 500 characters");
  if (secret && kind === "oauth2") report("secret", "not for the kind oauth2");
  if (secret && defaultValue !== "") report("defaultValue", "not for a secret value");
  if (secret && choices.length > 0) report("choices", "not for a secret value");
  if (choices.length > MAX_CHOICES) report("choices", `must be at most ${MAX_CHOICES}`);
  const isHost = uses.hostTemplates.some(({ parameters }) => parameters.includes(name));
  if (secret && isHost) report("secret", "not for a part of a host");
  const source = parseSource(definition, report);
  const { hosts = [] } = definition;
  if (hosts.length > 0 && choices.length > 0) report("hosts", "not together with choices");
  if (hosts.length > MAX_CHOICES) report("hosts", `must be at most ${MAX_CHOICES}`);
  const isWhole = uses.hostTemplates.some(({ template }) => new RegExp(`^https://\\{${name}\\}(?::|$)`).test(template));
  if (hosts.length > 0 && !isWhole) report("hosts", `only for a value that is a whole host: https://{${name}}`);
  const isTold = source.kind !== "asked" && source.kind !== "client";
  if (isWhole && isTold && hosts.length === 0 && choices.length === 0)
    report("hosts", "must list the hosts that it can be: else the answer of anybody would say where tokens go");
  const named = choices.map((choice) => ({ value: choice.value, label: choice.label || choice.value }));
  const value: ConnectionValue = {
    name,
    label,
    help,
    pattern: parsePattern(definition.pattern ?? "", report),
    defaultValue,
    choices: named,
    isSecret: secret,
    isOptional: optional,
    isPrintable: [...uses.places.filter(isAsIs).map((place) => place.value), ...uses.headers].some((text) =>
      namesIn(text).includes(name),
    ),
    isHost,
    hosts,
    source,
  };
  named.forEach((choice, at) => {
    const problem = choice.value === "" ? "is empty" : problemOfValue(value, choice.value);
    if (problem !== undefined) report(`choices[${at}].value`, problem);
    else if (named.findIndex((other) => other.value === choice.value) !== at)
      report(`choices[${at}].value`, "stands twice");
    if (!LABEL.test(choice.label)) report(`choices[${at}].label`, "must be one line of at most 200 characters");
  });
  const problem = defaultValue === "" ? undefined : problemOfValue(value, defaultValue);
  if (problem !== undefined) report("defaultValue", problem);
  return value;
}

function parseSource(definition: Partial<Definition>, report: Report): ValueSource {
  const { callbackParameter = "", tokenMember = "", lookup, client = false, secret = false } = definition;
  const named = [callbackParameter !== "", tokenMember !== "", lookup !== undefined, client].filter(Boolean);
  if (named.length > 1) report("client", "only one of callbackParameter, tokenMember, lookup and client");
  if (named.length > 0 && secret) report("secret", "only for a value that is asked of the user");
  if (callbackParameter !== "") {
    if (!CALLBACK_PARAMETER.test(callbackParameter)) report("callbackParameter", "must be letters, digits and ._-");
    else if (ANSWER_PARAMETERS.has(callbackParameter)) report("callbackParameter", "is one of RFC 6749");
    return { kind: "callback", parameter: callbackParameter };
  }
  if (tokenMember !== "") {
    if (!isMemberPath(tokenMember)) report("tokenMember", MEMBER_PATH_HINT);
    if (TOKEN_MEMBER.test(tokenMember)) report("tokenMember", "is a token, which is never shown");
    return { kind: "token", member: tokenMember };
  }
  if (lookup !== undefined) {
    if (!isMemberPath(lookup.member)) report("lookup.member", MEMBER_PATH_HINT);
    return { kind: "lookup", url: lookup.url, member: lookup.member };
  }
  return { kind: client ? "client" : "asked" };
}

/** In base64 and percent-encoded, any text will do. */
function isAsIs(place: Credential): boolean {
  return place.kind === "header" && !isBasic(place);
}

/** What a matcher may have to try more than once. */
const CHOICE = /[*+?|]|\{(\d+),(\d*)\}/g;
/** Longest text that is matched against a pattern, in characters. */
const MAX_MATCHED = 1024;
/** Of one text, in steps: some 10 ms. */
const MAX_WORK = 2 ** 17;

/**
 * As HTML reads it (HTML standard, attribute `pattern`). What users write is matched against it, so it must be one that takes
 * no long time whatever they write.
 */
function parsePattern(text: string, report: Report): RegExp | undefined {
  if (text === "") return undefined;
  const plain = text
    .replace(/\\./g, "x")
    .replace(/\[[^\]]*\]/g, "x")
    .replaceAll("(?:", "(");
  const isSlow = /\)[*+?{]|\(\?/.test(plain) || /\\[1-9k]/.test(text) || workOf(plain) > MAX_WORK;
  if (text.length > 256 || isSlow) {
    report(
      "pattern",
      "must have no group that repeats, looks around or is referred to, one * or + at most, and few ? and |",
    );
    return undefined;
  }
  try {
    return new RegExp(`^(?:${text})$`, "v");
  } catch {
    // The engine's own words differ from one version to the next.
    report("pattern", "is not a regular expression with the flag v, as HTML has it");
    return undefined;
  }
}

/** In how many ways a pattern without groups that repeat may be tried: each choice multiplies those of the others. */
function workOf(plain: string): number {
  return [...plain.matchAll(CHOICE)].reduce((work, [choice, least, most]) => {
    if (choice === "?" || choice === "|") return 2 * work;
    return work * (Number(most || MAX_MATCHED) - Number(least ?? 0) + 1);
  }, 1);
}

/** `Authorization: Bearer` by default (RFC 6750 section 2.1), `Authorization: Basic` for the kind that is (RFC 7617). */
function parseCredential(
  kind: ConnectionKind,
  placement: CredentialPlacement | undefined,
  defaultValue: string,
  field: string,
  report: Report,
): Credential {
  const value = placement?.value || defaultValue;
  if (!CREDENTIAL_VALUE.test(value))
    report(`${field}.value`, "must be printable ASCII such as {api_key}, 256 characters at most");
  if (placement === undefined) {
    return { kind: "header", name: "authorization", scheme: kind === "basic" ? "Basic" : "Bearer", value };
  }
  const { scheme, queryParameter } = placement;
  if (queryParameter !== "") {
    if (placement.header !== "") report(`${field}.queryParameter`, "not together with header");
    if (scheme !== "") report(`${field}.scheme`, "not together with queryParameter");
    if (!QUERY_PARAMETER.test(queryParameter)) report(`${field}.queryParameter`, "must be letters, digits and -._~");
    return { kind: "query", parameter: queryParameter, value };
  }
  const name = (placement.header || "authorization").toLowerCase();
  if (!FIELD_NAME.test(name)) report(`${field}.header`, "must be a header name");
  else if (name !== "authorization" && !isCredentialHeader(name)) {
    report(`${field}.header`, "must not be a header that the relay or the connection sets itself");
  }
  if (!SCHEME.test(scheme)) report(`${field}.scheme`, "must be one word, such as Bearer");
  return { kind: "header", name, scheme, value };
}

function isCredentialHeader(name: string): boolean {
  return !isDroppedHeader(name) && name !== "content-type" && name !== "accept";
}

/** Each place has one credential, and what that is made of is known. */
function checkPlaces(
  kind: ConnectionKind,
  places: readonly Credential[],
  values: readonly ConnectionValue[],
  report: Report,
): void {
  const known = new Set([...values.map(({ name }) => name), ...(hasTokens(kind) ? ["access_token"] : [])]);
  const secret = new Set(["access_token", ...values.flatMap(({ name, isSecret }) => (isSecret ? [name] : []))]);
  places.forEach((place, at) => {
    const field = at === 0 ? "credential" : `furtherCredentials[${at - 1}]`;
    const names = namesIn(place.value);
    const unknown = names.find((name) => !known.has(name));
    if (unknown !== undefined) report(`${field}.value`, `{${unknown}} is no value of a connection`);
    else if (!isTemplate(place.value) || !names.some((name) => secret.has(name))) {
      report(`${field}.value`, "must name a secret value, such as {api_key}");
    }
    if (places.findIndex((other) => placeName(other) === placeName(place)) !== at) report(field, "stands twice");
  });
  const placed = new Set(places.flatMap((place) => namesIn(place.value)));
  // Token requests have those of the other kinds.
  const left = hasTokens(kind) ? undefined : values.find(({ name, isSecret }) => isSecret && !placed.has(name));
  if (left !== undefined) report("furtherCredentials", `must place the secret value ${left.name}`);
}

function placeName(place: Credential): string {
  return place.kind === "header" ? `${place.name}:` : `?${place.parameter.toLowerCase()}`;
}
