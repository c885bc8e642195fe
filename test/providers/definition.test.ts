import { describe, expect, it } from "vitest";
import { parseProvider } from "../../src/providers/definition.js";
import { problemsOf, providerFrom } from "./provider-for-test.js";

const minimal = { name: "test", apiOrigins: ["https://api.example.com"] };

describe("parseProvider()", () => {
  it("fills in the defaults of the RFCs", () => {
    expect(providerFrom({ oauth2: { tokenEndpoint: "https://example.com/token" } })).toEqual({
      name: "test",
      aliases: [],
      displayName: "test",
      documentationUri: "",
      origins: [{ kind: "exact", origin: "https://api.example.com" }],
      exactOrigins: new Set(["https://api.example.com"]),
      credential: { kind: "header", name: "authorization", scheme: "Bearer" },
      defaultHeaders: [],
      oauth2: {
        authorizationEndpoint: undefined,
        tokenEndpoint: "https://example.com/token",
        revocationEndpoint: undefined,
        scopeSeparator: " ",
        pkce: false,
        clientAuthentication: "client_secret_basic",
        authorizationParameters: {},
      },
      allowPrivateNetwork: false,
      urlPlaceholders: new Set(),
      notes: "",
    });
    expect(providerFrom({}).oauth2).toBeUndefined();
  });

  it("reads every placement of the credential", () => {
    const placement = (credential: unknown) => providerFrom({ credential }).credential;
    expect(placement({ header: "X-Api-Key" })).toEqual({ kind: "header", name: "x-api-key", scheme: "" });
    expect(placement({ scheme: "OAuth" })).toEqual({ kind: "header", name: "authorization", scheme: "OAuth" });
    expect(placement({ header: "Authorization", scheme: "token" })).toMatchObject({ scheme: "token" });
    expect(placement({ queryParameter: "access_token" })).toEqual({ kind: "query", parameter: "access_token" });
  });

  it("takes proto field names as ProtoJSON does, and lower-cases default headers", () => {
    const provider = providerFrom({ default_headers: { "User-Agent": "relay" }, url_placeholders: ["id_token"] });
    expect(provider.defaultHeaders).toEqual([["user-agent", "relay"]]);
    expect(provider.urlPlaceholders).toEqual(new Set(["id_token"]));
  });

  it("names the file in every problem", () => {
    const parsed = parseProvider("{", "github.json", { allowLoopback: false });
    expect(parsed).toEqual({ problems: [{ file: "github.json", field: "", message: "is not valid JSON" }] });
  });
});

describe("parseProvider() problems of form", () => {
  it.each([
    ["", "test.json: is not valid JSON"],
    ["{ SECRETTOKEN", "test.json: is not valid JSON"],
    ["null", "test.json: must be a JSON object"],
    ["[]", "test.json: must be a JSON object"],
    ['{"name":"test","name":"other"}', "test.json: name: stands twice"],
    ['{"oauth2":{"pkce":true,"pkce":false}}', "test.json: pkce: stands twice"],
    [
      '{"name":"test","apiOrigins":["https://a.example"],"api_origins":[]}',
      "test.json: does not fit the schema of a provider definition",
    ],
  ])("%s", (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  it("reports every unknown member and wrong type at once", () => {
    const problems = problemsOf({
      nmae: "x",
      name: 7,
      aliases: "x",
      defaultHeaders: { a: 1 },
      allowPrivateNetwork: "yes",
      credential: { headr: "x", scheme: null, header: [] },
      oauth2: { pkce: "true", tokenEndpoint: {}, extra: 1 },
      __proto__x: 1,
    });
    expect(problems).toEqual([
      "test.json: nmae: unknown field",
      "test.json: name: must be a text",
      "test.json: aliases: must be a list of texts",
      "test.json: defaultHeaders: must be an object of texts",
      "test.json: allowPrivateNetwork: must be true or false",
      "test.json: credential.headr: unknown field",
      "test.json: credential.header: must be a text",
      "test.json: oauth2.pkce: must be true or false",
      "test.json: oauth2.tokenEndpoint: must be a text",
      "test.json: oauth2.extra: unknown field",
      "test.json: __proto__x: unknown field",
    ]);
    expect(problemsOf('{"__proto__":{"name":"x"}}')).toEqual(["test.json: __proto__: unknown field"]);
    expect(problemsOf({ ...minimal, oauth2: [] })).toEqual(["test.json: oauth2: must be a JSON object"]);
  });
});

describe("parseProvider() problems of content", () => {
  it("reports every one at once", () => {
    const problems = problemsOf({
      name: "Git Hub",
      aliases: ["ok", "ok", "../x"],
      documentationUri: "http://example.com",
      apiOrigins: [
        "http://api.example.com",
        "https://ok.example.com",
        "https://ok.example.com",
        "https://*.example.com",
      ],
      credential: { header: "Host", scheme: "two words" },
      defaultHeaders: {
        "x a": "1",
        cookie: "a=b",
        "X-A": "1",
        "x-a": "2",
        "x-b": "a\nb",
        "content-type": "text/plain",
      },
      urlPlaceholders: ["id_token", "client_secret"],
      oauth2: {
        authorizationEndpoint: "http://example.com/authorize",
        tokenEndpoint: "https://user@example.com/token",
        revocationEndpoint: "nonsense",
        scopeSeparator: "\n",
        clientAuthentication: "private_key_jwt",
        authorizationParameters: { state: "x", "a b": "x", prompt: "consent" },
      },
    });
    expect(problems.map((problem) => problem.split(": ")[1])).toEqual([
      "name",
      "aliases[1]",
      "aliases[2]",
      "documentationUri",
      "credential.header",
      "credential.scheme",
      "apiOrigins[0]",
      "apiOrigins[2]",
      "apiOrigins[3]",
      "defaultHeaders.x a",
      "defaultHeaders.cookie",
      "defaultHeaders.x-a",
      "defaultHeaders.x-b",
      "defaultHeaders.content-type",
      "oauth2.scopeSeparator",
      "oauth2.authorizationEndpoint",
      "oauth2.tokenEndpoint",
      "oauth2.revocationEndpoint",
      "oauth2.clientAuthentication",
      "oauth2.authorizationParameters.state",
      "oauth2.authorizationParameters.a b",
      "urlPlaceholders[1]",
    ]);
  });

  it.each([
    [{ name: "" }, "name"],
    [{ name: "-a" }, "name"],
    [{ name: "a".repeat(64) }, "name"],
    [{ name: "__proto__" }, "name"],
    [{ apiOrigins: [] }, "apiOrigins"],
    [{ aliases: ["test"] }, "aliases[0]"],
    [{ credential: { header: "cookie" } }, "credential.header"],
    [{ credential: { header: "Proxy-Authorization" } }, "credential.header"],
    [{ credential: { header: "x-forwarded-for" } }, "credential.header"],
    [{ credential: { header: "content-length" } }, "credential.header"],
    [{ credential: { header: "a:b" } }, "credential.header"],
    [{ credential: { queryParameter: "a=b" } }, "credential.queryParameter"],
    [{ credential: { queryParameter: "a", header: "b" } }, "credential.queryParameter"],
    [{ credential: { queryParameter: "a", scheme: "b" } }, "credential.scheme"],
    [{ credential: { header: "x-key" }, defaultHeaders: { "X-Key": "1" } }, "defaultHeaders.X-Key"],
    [{ defaultHeaders: { Authorization: "Bearer x" } }, "defaultHeaders.Authorization"],
    [{ defaultHeaders: { "x-a": " 1" } }, "defaultHeaders.x-a"],
    [{ defaultHeaders: { "x-a": "" } }, "defaultHeaders.x-a"],
    [{ oauth2: { tokenEndpoint: "https://example.com/token#x" } }, "oauth2.tokenEndpoint"],
    [{ oauth2: { tokenEndpoint: "https://EXAMPLE.com/token" } }, "oauth2.tokenEndpoint"],
    [{ oauth2: { tokenEndpoint: "http://127.0.0.1/token" } }, "oauth2.tokenEndpoint"],
    [{ oauth2: { scopeSeparator: ", , " } }, "oauth2.scopeSeparator"],
  ])("%j", (members, field) => {
    expect(problemsOf({ ...minimal, ...members }).map((problem) => problem.split(": ")[1])).toEqual([field]);
  });

  it("takes loopback endpoints where they are allowed", () => {
    const oauth2 = { tokenEndpoint: "http://127.0.0.1:8090/token", authorizationEndpoint: "https://example.com/a?b=c" };
    expect(problemsOf({ ...minimal, oauth2 }, true)).toEqual([]);
  });
});
