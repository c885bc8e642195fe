import { patternTextOf } from "./connection-value.js";
import type { ConnectionValue, Credential, Provider, ValueSource } from "./provider.js";

/** Converts a provider to ProtoJSON of `relay.admin.v1.Provider`, which `relay provider check` accepts. */
export function definitionFromProvider(provider: Provider) {
  const { name, aliases, displayName, documentationUri, sources, kind, oauth2, oauth1, notes } = provider;
  const inOrigins = new Set(provider.origins.flatMap((rule) => (rule.kind === "template" ? rule.parameters : [])));
  return {
    name,
    aliases,
    displayName,
    documentationUri,
    sources: [...sources],
    kind,
    apiOrigins: originTextsOf(provider),
    connectionValues: provider.connectionValues
      .map(valueFrom)
      .filter((value) => isTelling(value) || !inOrigins.has(value.name)),
    // A definition cannot say where a signature goes.
    credential: oauth1 ? undefined : placementFrom(provider.credential),
    furtherCredentials: provider.furtherCredentials.map(placementFrom),
    defaultHeaders: Object.fromEntries(provider.defaultHeaders),
    // Its members are named as in the schema.
    ...(oauth2 && { oauth2: { ...oauth2, refreshEndedErrors: [...oauth2.refreshEndedErrors] } }),
    ...(oauth1 && { oauth1 }),
    allowPrivateNetwork: provider.allowPrivateNetwork,
    urlPlaceholders: [...provider.urlPlaceholders],
    passTraceContext: provider.passTraceContext,
    expirySignals: provider.expirySignals.map(({ statusCode, pastLifetime, ...body }) => ({
      statusCode,
      ...(body.member !== undefined && { member: body.member, values: [...body.values] }),
      ...(pastLifetime && { pastLifetime }),
    })),
    notes,
  };
}

function placementFrom(credential: Credential) {
  const { value } = credential;
  return credential.kind === "header"
    ? { header: credential.name, scheme: credential.scheme, value }
    : { queryParameter: credential.parameter, value };
}

function valueFrom({
  isSecret,
  isOptional,
  isHost: _host,
  isPrintable: _printable,
  source,
  ...value
}: ConnectionValue) {
  const pattern = value.pattern && patternTextOf(value.pattern);
  return { ...value, pattern, secret: isSecret, optional: isOptional, ...membersFrom(source) };
}

function membersFrom(source: ValueSource) {
  switch (source.kind) {
    case "asked":
      return {};
    case "callback":
      return { callbackParameter: source.parameter };
    case "token":
      return { tokenMember: source.member };
    case "lookup":
      return { lookup: { url: source.url, member: source.member } };
    case "client":
      return { client: true };
  }
}

/** Whether a value says more than its name; otherwise a parameter of an origin need not be listed. */
function isTelling({ name: _name, ...value }: ReturnType<typeof valueFrom>) {
  return Object.values(value).some((member) => (Array.isArray(member) ? member.length > 0 : Boolean(member)));
}

/** The origins as written in a definition. */
export function originTextsOf({ origins }: Provider): readonly string[] {
  return origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template));
}
