import { describe, expect, it } from "vitest";
import { textFromProvider } from "../../src/cli/provider.js";
import { loadProviders } from "../../src/providers/catalog.js";
import { definitionFromProvider } from "../../src/providers/definition-from-provider.js";
import { providerFrom } from "../providers/provider-for-test.js";

function shownValue(members: object) {
  return {
    ...{ label: "", help: "", defaultValue: "", choices: [], hosts: [], secret: false, optional: false },
    ...members,
  };
}

/** A definition in which no member is as it is by default. */
const FULL = {
  name: "acme",
  aliases: ["acme-old"],
  displayName: "Acme",
  documentationUri: "https://acme.example/docs",
  sources: ["https://acme.example/docs/oauth", "https://acme.example/docs/tokens"],
  kind: "oauth2",
  apiOrigins: ["https://api.acme.example", "https://{shop}.acme.example"],
  connectionValues: [
    shownValue({ name: "shop", label: "Shop", help: "In the address.", pattern: "[a-z]+" }),
    shownValue({
      name: "region",
      choices: [
        { value: "eu", label: "Europe" },
        { value: "us", label: "us" },
      ],
      defaultValue: "eu",
    }),
    shownValue({ name: "realm", callbackParameter: "realmId", optional: true }),
    shownValue({ name: "team", tokenMember: "team.id" }),
    shownValue({ name: "org", lookup: { url: "https://api.acme.example/me", member: "id" } }),
    shownValue({ name: "client_id", client: true }),
  ],
  credential: { queryParameter: "token", value: "{access_token}" },
  furtherCredentials: [{ header: "x-team", scheme: "", value: "{team}:{access_token}" }],
  defaultHeaders: { accept: "application/json" },
  oauth2: {
    authorizationEndpoint: "https://acme.example/authorize",
    tokenEndpoint: "https://acme.example/token",
    refreshEndpoint: "https://acme.example/refresh",
    revocationEndpoint: "https://acme.example/revoke",
    issuer: "https://acme.example",
    authorizationResponseIssParameterSupported: true,
    scopeSeparator: ",",
    defaultScopes: ["a", "b"],
    scopeDescriptions: { a: "Read what you have" },
    pkce: true,
    clientAuthentication: "client_secret_post",
    clientIdParameter: "client_key",
    authorizationParameters: { prompt: "consent" },
    connectParameters: ["login_hint"],
    rawClientSecretBasic: true,
    expiresAtMember: "expires_at",
    tokenRequestFormat: "json",
    tokenParameters: { action: "requesttoken" },
    codeParameters: { type: "web_server", grant_type: "" },
    refreshParameters: { type: "refresh" },
    tokenResponseMember: "body",
    tokenErrorMember: "status",
    refreshEndedErrors: ["bad", "gone"],
    defaultExpiresIn: 600,
    refreshTokenRotation: true,
  },
  allowPrivateNetwork: true,
  urlPlaceholders: ["id_token"],
  passTraceContext: true,
  expirySignals: [
    { statusCode: 200, member: "error", values: ["x", "y"] },
    { statusCode: 498, pastLifetime: true },
  ],
  notes: "None.",
};

describe("definitionFromProvider()", () => {
  it("gives back the definition that a provider was read from", () => {
    expect(JSON.parse(JSON.stringify(definitionFromProvider(providerFrom(FULL))))).toEqual({
      ...FULL,
      oauth2: { ...FULL.oauth2, nonExpiringAccessTokens: false },
    });
  });

  it("loses nothing of any shipped definition", async () => {
    const { catalog } = loadProviders({ paths: [], allowLoopback: false });
    for (const provider of await catalog.list())
      expect(providerFrom(definitionFromProvider(provider))).toEqual(provider);
  });
});

describe("textFromProvider()", () => {
  it("shows every member", () => {
    expect(textFromProvider(providerFrom(FULL)).split("\n")).toEqual([
      "name                      acme",
      "aliases                   acme-old",
      "display name              Acme",
      "documentation             https://acme.example/docs",
      "sources                   https://acme.example/docs/oauth, https://acme.example/docs/tokens",
      "api origins               https://api.acme.example, https://{shop}.acme.example",
      "connection values         shop, region (eu|us), realm (optional), team, org, client_id",
      "token placed in           ?token=, x-team: {team}:{access_token}",
      "default headers           accept: application/json",
      "url placeholders          id_token",
      "signs of expiry           200 with error=x|y; 498 past its lifetime",
      "authorization             https://acme.example/authorize",
      "issuer                    https://acme.example (always named)",
      "PKCE                      yes",
      "default scopes            a, b",
      "described scopes          a",
      "scope separator           ,",
      "authorization parameters  prompt=consent",
      "token endpoint            https://acme.example/token",
      "refresh endpoint          https://acme.example/refresh",
      "revocation                https://acme.example/revoke",
      "client authentication     client_secret_post (raw)",
      "client id parameter       client_key",
      "token request format      json",
      "token parameters          action=requesttoken",
      "code parameters           type=web_server, no grant_type",
      "refresh parameters        type=refresh",
      "token response in         body",
      "token error in            status",
      "expiry time in            expires_at",
      "applications may set      login_hint",
      "refresh ended by          bad, gone",
      "access tokens last        600 seconds unless the token response says otherwise",
      "refresh tokens            rotate",
      "private network           allowed",
      "trace context             passed on",
      "notes                     None.",
    ]);
  });

  it("leaves out what is as the RFCs have it", () => {
    const provider = providerFrom({ name: "plain", oauth2: { tokenEndpoint: "https://example.com/token" } });
    expect(textFromProvider(provider).split("\n")).toEqual([
      "name                   plain",
      "display name           plain",
      "api origins            https://api.example.com",
      "token placed in        authorization: Bearer",
      "token endpoint         https://example.com/token",
      "client authentication  client_secret_basic",
    ]);
    expect(textFromProvider(providerFrom({ oauth2: { nonExpiringAccessTokens: true } }))).toContain(
      "access tokens last     until they are revoked",
    );
    expect(textFromProvider(providerFrom({ credential: { header: "x-token" } }))).toMatch(/token placed in +x-token:$/);
  });
});
