import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadProviders } from "../../src/providers/catalog.js";
import { type ConnectionKind, lacksOf, type Provider } from "../../src/providers/provider.js";

/** The command that writes docs/providers.md. */
export const REGENERATE = "npx tsx test/support/providers-page.ts";

/** docs/providers.md: how many providers there are, and how to find one. */
export function providersPage(providers: readonly Provider[]): string {
  const ofKind = (wanted: ConnectionKind) => providers.filter(({ kind }) => kind === wanted);
  const withCode = ofKind("oauth2").filter((provider) => lacksOf(provider).connect.length === 0);
  const able = (capability: "refresh" | "revoke") =>
    withCode.filter((provider) => lacksOf(provider)[capability].length === 0).length;
  return `# Providers

The catalogue that comes with the relay has ${providers.length} definitions, one file each in
[src/providers/catalog](../src/providers/catalog). Operators add or override definitions with \`RELAY_PROVIDERS\`.

| Users connect with | Definitions |
|---|---|
| OAuth 2.0, authorization code | ${withCode.length} |
| a client id and a client secret, for which the relay gets tokens (client credentials) | ${ofKind("client_credentials").length} |
| a private key, with which the relay signs what it gets tokens for (JWT bearer) | ${ofKind("jwt_bearer").length} |
| an API key | ${ofKind("api_key").length} |
| user name and password | ${ofKind("basic").length} |
| OAuth 1.0a, or a token of it that the provider shows (RFC 5849) | ${ofKind("oauth1").length} |

Of those with OAuth 2.0, ${able("refresh")} have access tokens that the relay refreshes, and ${able("revoke")} an endpoint at which it revokes them when a connection is
deleted.

## Find one

<!-- run with the service stopped -->
\`\`\`sh
npx relay provider list --search google
npx relay provider list --kind basic
npx relay provider show github
npx relay provider check github
\`\`\`

\`list\` looks in names, aliases and API origins: many names of other products, such as \`google-mail\` or \`twitter-v2\`, are
aliases. \`check\` says what a definition lacks for users to connect, and for the relay to refresh and revoke tokens, and which values an
OAuth client needs (eBay's \`--param ru_name=NAME\`).

## Where the facts come from

Each file names its sources: \`documentationUri\` is the page of the provider's API, \`sources\` are those that describe its
authorization and token requests. \`notes\` has the peculiarities, and says what could not be confirmed.

\`npm run providers:report\` compares the definitions with what public references say about the same providers
([provider-facts.jsonl](../test/providers/provider-facts.jsonl): facts as found, some of them old). A test demands a
[reason](../test/providers/fact-differences.ts) for each difference.

This page is generated from the files: \`${REGENERATE}\`.
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { catalog } = loadProviders({ paths: [], allowLoopback: false });
  writeFileSync("docs/providers.md", providersPage(await catalog.list()));
}
