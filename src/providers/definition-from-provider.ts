import type { Provider } from "./provider.js";

/** ProtoJSON of `relay.admin.v1.Provider`: what `relay provider check` accepts. */
export function definitionFromProvider(provider: Provider) {
  const { name, aliases, displayName, documentationUri, sources, credential, oauth2, notes } = provider;
  return {
    name,
    aliases,
    displayName,
    documentationUri,
    sources: [...sources],
    apiOrigins: originTextsOf(provider),
    credential:
      credential.kind === "header"
        ? { header: credential.name, scheme: credential.scheme }
        : { queryParameter: credential.parameter },
    defaultHeaders: Object.fromEntries(provider.defaultHeaders),
    // Its members have the names of the schema.
    ...(oauth2 && { oauth2: { ...oauth2, refreshEndedErrors: [...oauth2.refreshEndedErrors] } }),
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

/** The origins as a definition writes them. */
export function originTextsOf({ origins }: Provider): readonly string[] {
  return origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template));
}
