import {
  type Provider as Definition,
  ProviderSchema,
  type ExpirySignal as SignalDefinition,
} from "../../gen/relay/admin/v1/provider_pb.js";
import { isTemplate, namesIn } from "./connection-value.js";
import { isDroppedHeader, mayHoldKey } from "./credential.js";
import { parseDefinitionJson } from "./definition-json.js";
import { type ConnectionParts, FIELD_NAME, parseConnectionParts, parseOAuth1 } from "./definition-kind.js";
import { parseOAuth2 } from "./definition-oauth2.js";
import { checkLookups } from "./definition-values.js";
import { boundsOf, hostTemplateOf, isMemberPath, MEMBER_PATH_HINT } from "./endpoint.js";
import { type HostBounds, isCanonical, parseOrigin, wholeHostOf } from "./origin.js";
import {
  type ExpirySignal,
  endpointsOf,
  isProviderName,
  type OriginRule,
  PROVIDER_NAME_HINT,
  type Provider,
  type ProviderProblem,
  type Report,
} from "./provider.js";

/** Which definitions are accepted. */
export interface DefinitionOptions {
  /** Allows http, and loopback hosts (RELAY_ALLOW_LOOPBACK); for development and tests. */
  readonly allowLoopback: boolean;
}

const FIELD_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const PLACEHOLDERS = ["id_token", "access_token"] as const;

/**
 * Parses a provider definition, the ProtoJSON of relay.admin.v1.Provider. Returns the provider, or all problems at
 * once. `file` names the definition in problems.
 */
export function parseProvider(
  jsonText: string,
  file: string,
  options: DefinitionOptions,
): { readonly provider: Provider } | { readonly problems: readonly ProviderProblem[] } {
  const problems: ProviderProblem[] = [];
  const report: Report = (field, message) => problems.push({ file, field, message });
  const definition = parseDefinitionJson(ProviderSchema, jsonText, report);
  if (definition === undefined) return { problems };
  const provider = providerFromDefinition(definition, options, report);
  return problems.length > 0 ? { problems } : { provider };
}

function providerFromDefinition(definition: Definition, options: DefinitionOptions, report: Report): Provider {
  const { name, aliases, documentationUri, allowPrivateNetwork } = definition;
  checkNames(name, aliases, report);
  if (documentationUri !== "") checkPage("documentationUri", documentationUri, report);
  const bounds = boundsOf(definition.connectionValues);
  const origins = parseOrigins(definition, { ...options, bounds }, report);
  const { oauth2, oauth1 } = definition;
  const hostTemplates = hostTemplatesOf(origins, endpointsOf(definition), bounds);
  const parts = parseConnectionParts(definition, { origins, hostTemplates }, report);
  const exactOrigins = origins.flatMap((rule) => (rule.kind === "exact" ? [rule.origin] : []));
  const names = new Set(parts.connectionValues.map(({ name }) => name));
  const policy = { allowLoopback: options.allowLoopback, names, bounds };
  checkLookups(parts.connectionValues, definition.apiOrigins, policy, report);
  return {
    name,
    aliases,
    displayName: definition.displayName || name,
    documentationUri,
    sources: parseSources(definition.sources, report),
    ...parts,
    origins,
    exactOrigins: new Set(exactOrigins),
    plainOrigins: new Set(exactOrigins.filter(isCanonical)),
    hostTemplates,
    ...parseDefaultHeaders(definition.defaultHeaders, parts, hostTemplates, report),
    oauth2: oauth2 && parseOAuth2(oauth2, policy, report),
    oauth1: oauth1 && parseOAuth1(oauth1, policy, report),
    allowPrivateNetwork,
    urlPlaceholders: parsePlaceholders(definition.urlPlaceholders, report),
    passTraceContext: definition.passTraceContext,
    expirySignals: parseExpirySignals(definition.expirySignals, report),
    notes: definition.notes,
  };
}

function checkNames(name: string, aliases: readonly string[], report: Report): void {
  if (!isProviderName(name)) report("name", PROVIDER_NAME_HINT);
  aliases.forEach((alias, at) => {
    if (!isProviderName(alias)) report(`aliases[${at}]`, PROVIDER_NAME_HINT);
    else if (alias === name || aliases.indexOf(alias) !== at) report(`aliases[${at}]`, "appears twice");
  });
}

function parseSources(sources: readonly string[], report: Report): readonly string[] {
  sources.forEach((page, at) => {
    if (sources.indexOf(page) !== at) report(`sources[${at}]`, "appears twice");
    else checkPage(`sources[${at}]`, page, report);
  });
  return [...sources];
}

function checkPage(field: string, url: string, report: Report): void {
  if (!url.startsWith("https://")) report(field, "must be an https url");
}

function parseOrigins(
  definition: Definition,
  { allowLoopback, bounds }: DefinitionOptions & { readonly bounds: HostBounds },
  report: Report,
): OriginRule[] {
  const { apiOrigins, allowPrivateNetwork } = definition;
  if (apiOrigins.length === 0) report("apiOrigins", "must list at least one origin, such as https://api.example.com");
  return apiOrigins.flatMap((text, at) => {
    const rule = parseOrigin(text, { allowLoopback, allowPrivateNetwork, bounds });
    const problem = apiOrigins.indexOf(text) !== at ? "appears twice" : rule;
    if (typeof problem !== "string") return [problem];
    report(`apiOrigins[${at}]`, problem);
    return [];
  });
}

/** The distinct templates of origins and endpoints. */
function hostTemplatesOf(
  origins: readonly OriginRule[],
  endpoints: readonly string[],
  bounds: HostBounds,
): Provider["hostTemplates"] {
  const rules = [
    ...origins.flatMap((rule) => (rule.kind === "template" ? [rule] : [])),
    ...endpoints.flatMap((url) => hostTemplateOf(url, bounds) ?? []),
  ];
  return rules.filter(({ template }, at) => rules.findIndex((rule) => rule.template === template) === at);
}

function parseDefaultHeaders(
  headers: Readonly<Record<string, string>>,
  { credential, furtherCredentials, connectionValues }: ConnectionParts,
  hostTemplates: Provider["hostTemplates"],
  report: Report,
): Pick<Provider, "defaultHeaders" | "hasHeaderTemplates"> {
  const places = [credential, ...furtherCredentials];
  const isAnybodys = mayBeAnyHost(connectionValues, hostTemplates);
  const values = new Set(connectionValues.flatMap(({ name, isSecret }) => (isSecret ? [] : [name])));
  const seen = new Set<string>();
  const defaultHeaders = Object.entries(headers).map(([written, value]) => {
    const name = written.toLowerCase();
    const field = `defaultHeaders.${written}`;
    const unknown = namesIn(value).find((each) => !values.has(each));
    if (!FIELD_NAME.test(name)) report(field, "must be a header name");
    else if (isDroppedHeader(name) || name === "content-type") report(field, "must not be set by a definition");
    else if (places.some((place) => place.kind === "header" && place.name === name))
      report(field, "is the credential's header");
    else if (seen.has(name)) report(field, "appears twice");
    if (!FIELD_VALUE.test(value)) report(field, "must be printable ASCII without leading or trailing spaces");
    else if (isAnybodys && mayHoldKey(name) && !isTemplate(value))
      report(
        field,
        "may be a key, which would be sent to any host a user names; restrict the host with hosts or choices",
      );
    else if (unknown !== undefined) report(field, `{${unknown}} must be a connection value that is not secret`);
    seen.add(name);
    return [name, value] as const;
  });
  return { defaultHeaders, hasHeaderTemplates: defaultHeaders.some(([, value]) => isTemplate(value)) };
}

/** Whether a user may choose any host at all. */
function mayBeAnyHost(values: ConnectionParts["connectionValues"], templates: Provider["hostTemplates"]): boolean {
  return values
    .filter(({ hosts, choices, source }) => hosts.length + choices.length === 0 && source.kind !== "client")
    .some(({ name }) => templates.some(({ template }) => wholeHostOf(template) === name));
}

function parsePlaceholders(names: readonly string[], report: Report): Provider["urlPlaceholders"] {
  names.forEach((name, at) => {
    if (!PLACEHOLDERS.some((known) => known === name)) {
      report(`urlPlaceholders[${at}]`, `must be one of ${PLACEHOLDERS.join(", ")}`);
    }
  });
  return new Set(PLACEHOLDERS.filter((known) => names.includes(known)));
}

const MAX_VALUE_LENGTH = 256;

/** Parses the `expirySignals` of a definition. */
function parseExpirySignals(signals: readonly SignalDefinition[], report: Report): readonly ExpirySignal[] {
  return signals.map((signal, at) => {
    const reportMember: Report = (field, message) => report(`expirySignals[${at}].${field}`, message);
    return parseExpirySignal(signal, reportMember);
  });
}

function parseExpirySignal(
  { statusCode, member, values, pastLifetime }: SignalDefinition,
  report: Report,
): ExpirySignal {
  if (statusCode < 200 || statusCode > 599) report("statusCode", "must be 200 to 599");
  if (member === "") {
    // Every successful answer would be a signal.
    if (statusCode < 400) report("member", "must name a member: a status below 400 alone is not an expiry signal");
    if (values.length > 0) report("values", "are allowed only together with member");
    return { statusCode, pastLifetime, member: undefined };
  }
  if (!isMemberPath(member)) report("member", MEMBER_PATH_HINT);
  if (values.length === 0) report("values", "must list at least one value of member");
  values.forEach((value, at) => {
    if (value === "" || value.length > MAX_VALUE_LENGTH) report(`values[${at}]`, "must be 1 to 256 characters");
    else if (values.indexOf(value) !== at) report(`values[${at}]`, "appears twice");
  });
  return { statusCode, pastLifetime, member, values: new Set(values) };
}
