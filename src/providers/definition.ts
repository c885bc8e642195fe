import {
  type CredentialPlacement,
  type Provider as Definition,
  ProviderSchema,
} from "../../gen/relay/admin/v1/provider_pb.js";
import { isDroppedHeader } from "./credential.js";
import { parseExpirySignals } from "./definition-expiry-signals.js";
import { parseDefinitionJson } from "./definition-json.js";
import { parseOAuth2 } from "./definition-oauth2.js";
import { isCanonical, parseOrigin } from "./origin.js";
import {
  type Credential,
  type HeaderPairs,
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

/** A token of RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const FIELD_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}$/;
const QUERY_PARAMETER = /^[A-Za-z0-9._~-]{1,64}$/;
const PLACEHOLDERS = ["id_token", "access_token"] as const;

/**
 * Reads a provider definition: the ProtoJSON of relay.admin.v1.Provider. Answers with the provider, or with every
 * problem at once. `file` names the definition in problems.
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
  const credential = parseCredential(definition.credential, report);
  const origins = parseOrigins(definition, options, report);
  const exactOrigins = origins.flatMap((rule) => (rule.kind === "exact" ? [rule.origin] : []));
  const policy = { allowLoopback: options.allowLoopback, parameters: parametersOf(origins) };
  return {
    name,
    aliases,
    displayName: definition.displayName || name,
    documentationUri,
    sources: parseSources(definition.sources, report),
    origins,
    exactOrigins: new Set(exactOrigins),
    plainOrigins: new Set(exactOrigins.filter(isCanonical)),
    credential,
    defaultHeaders: parseDefaultHeaders(definition.defaultHeaders, credential, report),
    oauth2: definition.oauth2 && parseOAuth2(definition.oauth2, policy, report),
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
    else if (alias === name || aliases.indexOf(alias) !== at) report(`aliases[${at}]`, "stands twice");
  });
}

function parseSources(sources: readonly string[], report: Report): readonly string[] {
  sources.forEach((page, at) => {
    if (sources.indexOf(page) !== at) report(`sources[${at}]`, "stands twice");
    else checkPage(`sources[${at}]`, page, report);
  });
  return [...sources];
}

function checkPage(field: string, url: string, report: Report): void {
  if (!url.startsWith("https://")) report(field, "must be an https url");
}

function parseOrigins(definition: Definition, { allowLoopback }: DefinitionOptions, report: Report): OriginRule[] {
  const { apiOrigins, allowPrivateNetwork } = definition;
  if (apiOrigins.length === 0) report("apiOrigins", "must list at least one origin, such as https://api.example.com");
  return apiOrigins.flatMap((text, at) => {
    const rule = parseOrigin(text, { allowLoopback, allowPrivateNetwork });
    const problem = apiOrigins.indexOf(text) !== at ? "stands twice" : rule;
    if (typeof problem !== "string") return [problem];
    report(`apiOrigins[${at}]`, problem);
    return [];
  });
}

function parametersOf(origins: readonly OriginRule[]): ReadonlySet<string> {
  return new Set(origins.flatMap((rule) => (rule.kind === "template" ? rule.parameters : [])));
}

/** `Authorization: Bearer` by default (RFC 6750 section 2.1). */
function parseCredential(placement: CredentialPlacement | undefined, report: Report): Credential {
  if (placement === undefined) return { kind: "header", name: "authorization", scheme: "Bearer" };
  const { scheme, queryParameter } = placement;
  if (queryParameter !== "") {
    if (placement.header !== "") report("credential.queryParameter", "not together with header");
    if (scheme !== "") report("credential.scheme", "not together with queryParameter");
    if (!QUERY_PARAMETER.test(queryParameter)) report("credential.queryParameter", "must be letters, digits and -._~");
    return { kind: "query", parameter: queryParameter };
  }
  const name = (placement.header || "authorization").toLowerCase();
  if (!FIELD_NAME.test(name)) report("credential.header", "must be a header name");
  else if (name !== "authorization" && !isCredentialHeader(name)) {
    report("credential.header", "must not be a header that the relay or the connection sets itself");
  }
  if (!SCHEME.test(scheme)) report("credential.scheme", "must be one word, such as Bearer");
  return { kind: "header", name, scheme };
}

function isCredentialHeader(name: string): boolean {
  return !isDroppedHeader(name) && name !== "content-type" && name !== "accept";
}

function parseDefaultHeaders(
  headers: Readonly<Record<string, string>>,
  credential: Credential,
  report: Report,
): HeaderPairs {
  const seen = new Set<string>();
  return Object.entries(headers).map(([written, value]) => {
    const name = written.toLowerCase();
    const field = `defaultHeaders.${written}`;
    if (!FIELD_NAME.test(name)) report(field, "must be a header name");
    else if (isDroppedHeader(name) || name === "content-type") report(field, "must not be set by a definition");
    else if (credential.kind === "header" && credential.name === name) report(field, "is the credential's header");
    else if (seen.has(name)) report(field, "stands twice");
    if (!FIELD_VALUE.test(value)) report(field, "must be printable ASCII without spaces around it");
    seen.add(name);
    return [name, value] as const;
  });
}

function parsePlaceholders(names: readonly string[], report: Report): Provider["urlPlaceholders"] {
  names.forEach((name, at) => {
    if (!PLACEHOLDERS.some((known) => known === name)) {
      report(`urlPlaceholders[${at}]`, `must be one of ${PLACEHOLDERS.join(", ")}`);
    }
  });
  return new Set(PLACEHOLDERS.filter((known) => names.includes(known)));
}
