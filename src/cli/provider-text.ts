import type { OAuth2, Provider } from "../providers/provider.js";
import { textFields } from "./text-table.js";

/** ProtoJSON of `relay.admin.v1.Provider`: what `relay provider check` accepts. */
export function definitionFromProvider(provider: Provider) {
  const { name, aliases, displayName, documentationUri, origins, credential, oauth2, notes } = provider;
  return {
    name,
    aliases,
    displayName,
    documentationUri,
    apiOrigins: origins.map((rule) => (rule.kind === "exact" ? rule.origin : rule.template)),
    credential:
      credential.kind === "header"
        ? { header: credential.name, scheme: credential.scheme }
        : { queryParameter: credential.parameter },
    defaultHeaders: Object.fromEntries(provider.defaultHeaders),
    ...(oauth2 === undefined ? undefined : { oauth2: definitionFromOAuth2(oauth2) }),
    allowPrivateNetwork: provider.allowPrivateNetwork,
    urlPlaceholders: [...provider.urlPlaceholders],
    notes,
  };
}

/** A provider for a person; what is empty is left out. */
export function textFromProvider(provider: Provider): string {
  const { name, aliases, displayName, documentationUri, apiOrigins, credential, defaultHeaders, oauth2, notes } =
    definitionFromProvider(provider);
  const fields: ReadonlyArray<readonly [string, string]> = [
    ["name", name],
    ["aliases", aliases.join(", ")],
    ["display name", displayName],
    ["documentation", documentationUri],
    ["api origins", apiOrigins.join(", ")],
    [
      "token placed in",
      credential.header ? `${credential.header}: ${credential.scheme}` : `?${credential.queryParameter}=`,
    ],
    [
      "default headers",
      Object.entries(defaultHeaders)
        .map(([field, value]) => `${field}: ${value}`)
        .join(", "),
    ],
    ["authorization", oauth2?.authorizationEndpoint ?? ""],
    ["token endpoint", oauth2?.tokenEndpoint ?? ""],
    ["private network", provider.allowPrivateNetwork ? "allowed" : ""],
    ["notes", notes],
  ];
  return textFields(fields.filter(([, value]) => value !== ""));
}

function definitionFromOAuth2({ authorizationEndpoint, tokenEndpoint, revocationEndpoint, ...habits }: OAuth2) {
  return {
    ...(authorizationEndpoint === undefined ? undefined : { authorizationEndpoint }),
    ...(tokenEndpoint === undefined ? undefined : { tokenEndpoint }),
    ...(revocationEndpoint === undefined ? undefined : { revocationEndpoint }),
    scopeSeparator: habits.scopeSeparator,
    pkce: habits.pkce,
    clientAuthentication: habits.clientAuthentication,
    authorizationParameters: habits.authorizationParameters,
  };
}
