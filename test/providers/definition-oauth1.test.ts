import { describe, expect, it } from "vitest";
import { definitionFromProvider } from "../../src/providers/definition-from-provider.js";
import { problemsOf, providerFrom } from "./provider-for-test.js";

const ENDPOINTS = {
  temporaryCredentialEndpoint: "https://www.example.com/request?scope=a",
  authorizationEndpoint: "https://www.example.com/authorize",
  tokenEndpoint: "https://www.example.com/access",
};
const BASE = { name: "test", kind: "oauth1", apiOrigins: ["https://api.example.com"] };
const problems = (oauth1: object, members: object = {}) => problemsOf({ ...BASE, oauth1, ...members });

describe("a definition with OAuth 1.0a", () => {
  it("signs with HMAC-SHA1, and holds a token and its secret", () => {
    const provider = providerFrom({ ...BASE, oauth1: ENDPOINTS });
    expect(provider).toMatchObject({
      credential: { kind: "header", name: "authorization", scheme: "OAuth" },
      connectionValues: [
        { name: "oauth_token", isSecret: true },
        { name: "oauth_token_secret", isSecret: true },
      ],
      oauth1: { ...ENDPOINTS, signatureMethod: "HMAC-SHA1", realm: "", scopeParameter: undefined },
    });
  });

  it("lets users enter what a provider shows them where it names no endpoints, with a client of their own", () => {
    const connectionValues = [
      { name: "realm" },
      { name: "client_secret", label: "Secret" },
      { name: "oauth_token", label: "Id" },
    ];
    const oauth1 = { signatureMethod: "PLAINTEXT", realm: "{realm}" };
    expect(providerFrom({ ...BASE, oauth1, connectionValues }).connectionValues).toMatchObject([
      { name: "realm", isSecret: false, isOptional: false },
      { name: "client_secret", isSecret: true, isOptional: true, label: "Secret" },
      { name: "oauth_token", isSecret: true, isOptional: false, label: "Id" },
      { name: "client_id", isSecret: false, isOptional: true },
      { name: "oauth_token_secret", isSecret: true },
    ]);
  });

  it("is what 'relay provider show' prints of it", () => {
    const connectionValues = [{ name: "site" }, { name: "user", tokenMember: "screen_name" }];
    const endpoints = { ...ENDPOINTS, tokenEndpoint: "https://{site}.example.com/access" };
    const provider = providerFrom({ ...BASE, oauth1: { ...endpoints, scopeParameter: "perms" }, connectionValues });
    expect(providerFrom(JSON.parse(JSON.stringify(definitionFromProvider(provider))))).toEqual(provider);
    expect(provider.hostTemplates.map(({ template }) => template)).toEqual(["https://{site}.example.com"]);
  });

  it.each([
    [{ signatureMethod: "RSA-SHA1" }, {}, "oauth1.signatureMethod: must be one of HMAC-SHA1, HMAC-SHA256, PLAINTEXT"],
    [{ realm: 'a"b' }, {}, "oauth1.realm: must be printable ASCII"],
    [{ realm: "a\r\nb" }, {}, "oauth1.realm: must be printable ASCII"],
    [{ realm: "{account}" }, {}, "oauth1.realm: {account} is not a connection value"],
    [{ scopeParameter: "oauth_token" }, {}, "oauth1.scopeParameter: must be letters"],
    [{ ...ENDPOINTS, tokenEndpoint: "" }, {}, "oauth1.tokenEndpoint: is missing: name all three"],
    [{ ...ENDPOINTS, tokenEndpoint: "http://www.example.com/x" }, {}, "oauth1.tokenEndpoint: must be an https url"],
    [
      { ...ENDPOINTS, authorizationEndpoint: "https://www.example.com/?oauth_token=x" },
      {},
      "oauth1.authorizationEndpoint: must not contain parameters of RFC 5849",
    ],
    [ENDPOINTS, { credential: { header: "x-key" } }, "credential: is not allowed for the kind oauth1"],
    [
      ENDPOINTS,
      { oauth2: { tokenEndpoint: "https://www.example.com/x" } },
      "oauth2: is not allowed for the kind oauth1",
    ],
    [ENDPOINTS, { kind: "api_key" }, "oauth1: is allowed only for the kind oauth1"],
    [ENDPOINTS, { connectionValues: [{ name: "more", secret: true }] }, "must place the secret value more"],
    [
      ENDPOINTS,
      { connectionValues: [{ name: "token", tokenMember: "oauth_token_secret" }] },
      "connectionValues[0].tokenMember: is a token",
    ],
    [
      ENDPOINTS,
      { connectionValues: [{ name: "v", callbackParameter: "oauth_verifier" }] },
      "connectionValues[0].callbackParameter: is a parameter of OAuth",
    ],
  ])("is refused with %o and %o", (oauth1, members, problem) => {
    expect(problems(oauth1, members).join("\n")).toContain(problem);
  });

  it("is refused without the member of its name", () => {
    expect(problemsOf(BASE)).toEqual(["test.json: oauth1: is missing for the kind oauth1"]);
  });
});
