import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadProviders } from "../../src/providers/catalog.js";
import type { OAuth2, Provider } from "../../src/providers/provider.js";

/** The command that writes docs/providers.md. */
export const REGENERATE = "npx tsx test/support/providers-table.ts";

const HEAD = `# Providers

The catalogue that comes with the relay: one file per provider in [src/providers/catalog](../src/providers/catalog).
Each file also has \`notes\`: peculiarities of the provider, and facts that could not be confirmed. Operators add
or override definitions with \`RELAY_PROVIDERS\`.

This page is generated from the files: \`${REGENERATE}\`.

| Name | Provider | API origins | Notes |
|---|---|---|---|
`;

/** docs/providers.md: a table of the providers in the order of their names. */
export function providersTable(providers: readonly Provider[]): string {
  const sorted = [...providers].sort((one, other) => (one.name < other.name ? -1 : 1));
  return HEAD + sorted.map(rowFrom).join("");
}

function rowFrom(provider: Provider): string {
  const { name, aliases, displayName, documentationUri, origins } = provider;
  const cells = [
    [`[\`${name}\`](../src/providers/catalog/${name}.json)`, ...aliases.map((alias) => `\`${alias}\``)].join(", "),
    `[${displayName}](${documentationUri})`,
    origins.map((rule) => `\`${rule.kind === "exact" ? rule.origin : rule.template}\``).join("<br>"),
    habitsOf(provider).join("; "),
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
}

function habitsOf({ credential, defaultHeaders, oauth2, expirySignals }: Provider): string[] {
  const isBearer =
    credential.kind === "header" && credential.name === "authorization" && credential.scheme === "Bearer";
  const place =
    credential.kind === "header"
      ? `token in \`${credential.name}: ${credential.scheme} …\``.replace(":  ", ": ")
      : `token in \`?${credential.parameter}=\``;
  return [
    ...(isBearer ? [] : [place]),
    ...defaultHeaders.map(([name]) => `sends \`${name}\``),
    ...(oauth2 === undefined ? [] : oauth2Habits(oauth2)),
    ...expirySignals.map(
      ({ statusCode, member }) => `ended token: ${statusCode}${member ? ` with \`${member}\`` : ""}`,
    ),
  ];
}

function oauth2Habits(oauth2: OAuth2): string[] {
  if (oauth2.tokenEndpoint === undefined)
    return ["no OAuth 2.0", ...(oauth2.nonExpiringAccessTokens ? ["keys do not expire"] : [])];
  return [
    `\`${oauth2.clientAuthentication}\``,
    ...(oauth2.pkce ? ["PKCE"] : []),
    ...(oauth2.tokenRequestFormat === "form" ? [] : ["JSON token requests"]),
    ...(oauth2.refreshEndpoint === undefined ? [] : ["refresh endpoint of its own"]),
    ...(oauth2.tokenResponseMember === undefined ? [] : [`token response in \`${oauth2.tokenResponseMember}\``]),
    ...(oauth2.tokenErrorMember === undefined ? [] : [`error code in \`${oauth2.tokenErrorMember}\``]),
    ...(oauth2.refreshEndedErrors.size === 0
      ? []
      : [`ended refresh token: ${[...oauth2.refreshEndedErrors].map((code) => `\`${code}\``).join(", ")}`]),
    ...(oauth2.nonExpiringAccessTokens ? ["tokens do not expire"] : []),
    ...(oauth2.defaultExpiresIn === undefined ? [] : [`tokens assumed to last ${oauth2.defaultExpiresIn} s`]),
    ...(oauth2.refreshTokenRotation ? ["refresh tokens rotate"] : []),
    ...(oauth2.revocationEndpoint === undefined ? [] : ["revocation"]),
    ...(oauth2.scopeSeparator === " " ? [] : [`scopes separated by \`${oauth2.scopeSeparator}\``]),
    ...(oauth2.clientIdParameter === "client_id" ? [] : [`client id as \`${oauth2.clientIdParameter}\``]),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { catalog } = loadProviders({ paths: [], allowLoopback: false });
  writeFileSync("docs/providers.md", providersTable(catalog.list()));
}
