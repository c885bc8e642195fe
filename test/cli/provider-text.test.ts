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
  it("shows every member of the definition by its path", () => {
    const lines = textFromProvider(providerFrom(FULL)).split("\n");
    expect(new Set(lines.map((line) => line.split(/[ .[]/, 1)[0]))).toEqual(new Set(Object.keys(FULL)));
    const members = lines.flatMap((line) => /^oauth2\.(\w+)/.exec(line)?.[1] ?? []);
    expect(new Set(members)).toEqual(new Set(Object.keys(FULL.oauth2)));
    expect(lines.map((line) => line.replace(/ +/, " "))).toEqual(
      expect.arrayContaining([
        "sources https://acme.example/docs/oauth, https://acme.example/docs/tokens",
        "connectionValues[0].pattern [a-z]+",
        "connectionValues[1].choices[0].label Europe",
        "connectionValues[4].lookup.member id",
        "furtherCredentials[0].value {team}:{access_token}",
        "oauth2.scopeDescriptions a",
        "oauth2.codeParameters.type web_server",
        "oauth2.codeParameters.grant_type (not sent)",
        "oauth2.defaultExpiresIn 600",
        "allowPrivateNetwork true",
        "expirySignals[1].pastLifetime true",
      ]),
    );
  });

  it("leaves out what says nothing", () => {
    const provider = providerFrom({ name: "plain", oauth2: { tokenEndpoint: "https://example.com/token" } });
    expect(textFromProvider(provider)).toBe(
      `
name                         plain
displayName                  plain
kind                         oauth2
apiOrigins                   https://api.example.com
credential.header            authorization
credential.scheme            Bearer
credential.value             {access_token}
oauth2.tokenEndpoint         https://example.com/token
oauth2.clientAuthentication  client_secret_basic
oauth2.clientIdParameter     client_id
oauth2.tokenRequestFormat    form
`.trim(),
    );
  });
});
