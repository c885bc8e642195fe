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
      sources: [],
      kind: "oauth2",
      connectionValues: [],
      origins: [{ kind: "exact", origin: "https://api.example.com" }],
      exactOrigins: new Set(["https://api.example.com"]),
      plainOrigins: new Set(["https://api.example.com"]),
      hostTemplates: [],
      credential: { kind: "header", name: "authorization", scheme: "Bearer", value: "{access_token}" },
      furtherCredentials: [],
      defaultHeaders: [],
      hasHeaderTemplates: false,
      oauth2: {
        authorizationEndpoint: undefined,
        tokenEndpoint: "https://example.com/token",
        refreshEndpoint: undefined,
        revocationEndpoint: undefined,
        issuer: undefined,
        authorizationResponseIssParameterSupported: false,
        scopeSeparator: " ",
        defaultScopes: [],
        scopeDescriptions: {},
        pkce: false,
        clientAuthentication: "client_secret_basic",
        clientIdParameter: "client_id",
        authorizationParameters: {},
        connectParameters: [],
        rawClientSecretBasic: false,
        expiresAtMember: undefined,
        tokenRequestFormat: "form",
        tokenParameters: {},
        codeParameters: {},
        refreshParameters: {},
        tokenResponseMember: undefined,
        tokenErrorMember: undefined,
        refreshEndedErrors: new Set(),
        nonExpiringAccessTokens: false,
        defaultExpiresIn: undefined,
        refreshTokenRotation: false,
      },
      allowPrivateNetwork: false,
      urlPlaceholders: new Set(),
      passTraceContext: false,
      expirySignals: [],
      notes: "",
    });
    expect(providerFrom({}).oauth2).toBeUndefined();
  });

  it("reads every placement of the credential", () => {
    const placement = (credential: unknown) => providerFrom({ credential }).credential;
    const value = "{access_token}";
    expect(placement({ header: "X-Api-Key" })).toEqual({ kind: "header", name: "x-api-key", scheme: "", value });
    expect(placement({ scheme: "OAuth" })).toEqual({ kind: "header", name: "authorization", scheme: "OAuth", value });
    expect(placement({ header: "Authorization", scheme: "token" })).toMatchObject({ scheme: "token" });
    expect(placement({ queryParameter: "access_token" })).toEqual({ kind: "query", parameter: "access_token", value });
  });

  it("takes proto field names as ProtoJSON does, and lower-cases default headers", () => {
    const provider = providerFrom({ default_headers: { "User-Agent": "relay" }, url_placeholders: ["id_token"] });
    expect(provider.defaultHeaders).toEqual([["user-agent", "relay"]]);
    expect(provider.urlPlaceholders).toEqual(new Set(["id_token"]));
  });

  it("reads the habits of a provider", () => {
    const habits = {
      defaultScopes: ["user.info.basic", "https://example.com/scope"],
      clientIdParameter: "client_key",
      authorizationParameters: { access_type: "offline" },
      tokenRequestFormat: "json",
      tokenParameters: { expires_in: "3600" },
      codeParameters: { type: "web_server", grant_type: "" },
      refreshParameters: { grant_type: "refresh", scope: "offline", redirect_uri: "https://example.com/callback" },
      tokenResponseMember: "body.tokens",
      tokenErrorMember: "errors.0.code",
      refreshEndpoint: "https://example.com/oauth/token?refresh",
      issuer: "https://example.com",
      authorizationResponseIssParameterSupported: true,
      defaultExpiresIn: 31_536_000,
      refreshTokenRotation: true,
    };
    expect(providerFrom({ oauth2: habits }).oauth2).toMatchObject(habits);
    const ended = providerFrom({ oauth2: { refreshEndedErrors: ["bad", "gone"] } }).oauth2?.refreshEndedErrors;
    expect(ended).toEqual(new Set(["bad", "gone"]));
    expect(providerFrom({ oauth2: { nonExpiringAccessTokens: true } }).oauth2?.nonExpiringAccessTokens).toBe(true);
  });

  it("takes templates for the refresh endpoint and the issuer", () => {
    const apiOrigins = ["https://{shop}.example.com"];
    const oauth2 = { refreshEndpoint: "https://{shop}.example.com/refresh", issuer: "https://{shop}.example.com" };
    expect(providerFrom({ apiOrigins, oauth2 }).oauth2).toMatchObject(oauth2);
  });

  it("reads expiry signals", () => {
    const expirySignals = [
      { statusCode: 403, pastLifetime: true },
      { statusCode: 200, member: "error", values: ["token_expired", "invalid_auth"] },
    ];
    expect(providerFrom({ expirySignals }).expirySignals).toEqual([
      { statusCode: 403, pastLifetime: true, member: undefined },
      { statusCode: 200, pastLifetime: false, member: "error", values: new Set(["token_expired", "invalid_auth"]) },
    ]);
  });

  it("names the file in every problem", () => {
    const parsed = parseProvider("{", "github.json", { allowLoopback: false });
    expect(parsed).toEqual({
      problems: [{ file: "github.json", field: "", message: "is not valid JSON (line 1, column 2)" }],
    });
  });
});

describe("parseProvider() problems of form", () => {
  it.each([
    ["", "test.json: is not valid JSON: it ends too early"],
    ["{ SECRETTOKEN", "test.json: is not valid JSON (line 1, column 3)"],
    ['{\n  "name": "test",\n}', "test.json: is not valid JSON (line 3, column 1)"],
    ["null", "test.json: must be a JSON object"],
    ["[]", "test.json: must be a JSON object"],
    ['{"name":"test","name":"other"}', "test.json: name: appears twice"],
    ['{"oauth2":{"pkce":true,"pkce":false}}', "test.json: pkce: appears twice"],
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
      oauth2: { pkce: "true", tokenEndpoint: {}, extra: 1, defaultExpiresIn: "x", defaultScopes: "x" },
      expirySignals: [{ statusCode: 1.5, members: "x" }, "x"],
      __proto__x: 1,
    });
    expect(problems).toEqual([
      "test.json: nmae: unknown field. Did you mean name?",
      "test.json: name: must be a string",
      "test.json: aliases: must be a list of strings",
      "test.json: defaultHeaders: must be an object of strings",
      "test.json: allowPrivateNetwork: must be true or false",
      "test.json: credential.headr: unknown field. Did you mean header?",
      "test.json: credential.header: must be a string",
      "test.json: oauth2.pkce: must be true or false",
      "test.json: oauth2.tokenEndpoint: must be a string",
      "test.json: oauth2.extra: unknown field",
      "test.json: oauth2.defaultExpiresIn: must be a whole number",
      "test.json: oauth2.defaultScopes: must be a list of strings",
      "test.json: expirySignals[0].statusCode: must be a whole number",
      "test.json: expirySignals[0].members: unknown field. Did you mean member?",
      "test.json: expirySignals[1]: must be a JSON object",
      "test.json: __proto__x: unknown field",
    ]);
    expect(problemsOf('{"__proto__":{"name":"x"}}')).toEqual(["test.json: __proto__: unknown field"]);
    expect(problemsOf({ ...minimal, oauth2: [] })).toEqual(["test.json: oauth2: must be a JSON object"]);
    expect(problemsOf({ ...minimal, expirySignals: {} })).toEqual([
      "test.json: expirySignals: must be a list of objects",
    ]);
  });
});

describe("parseProvider() problems of content", () => {
  it("reports every one at once", () => {
    const problems = problemsOf({
      name: "Git Hub",
      aliases: ["ok", "ok", "../x"],
      documentationUri: "http://example.com",
      sources: ["https://example.com/oauth", "http://example.com", "https://example.com/oauth"],
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
        refreshEndpoint: "ftp://example.com/refresh",
        revocationEndpoint: "nonsense",
        issuer: "https://example.com/?a",
        scopeSeparator: "\n",
        clientAuthentication: "private_key_jwt",
        clientIdParameter: "redirect_uri",
        authorizationParameters: { state: "x", "a b": "x", prompt: "consent" },
        tokenRequestFormat: "xml",
        tokenParameters: { grant_type: "x", expires_in: "3600" },
        codeParameters: { code: "x", grant_type: "x" },
        refreshParameters: { refresh_token: "", client_id: "x" },
        tokenResponseMember: "a..b",
        tokenErrorMember: "a b",
        refreshEndedErrors: ["", "a", "a"],
        defaultScopes: ["a", "b c", "a"],
        defaultExpiresIn: -1,
      },
      expirySignals: [{ statusCode: 200 }, { statusCode: 600, member: "a..b" }],
    });
    expect(problems.map((problem) => problem.split(": ")[1])).toEqual([
      "name",
      "aliases[1]",
      "aliases[2]",
      "documentationUri",
      "apiOrigins[0]",
      "apiOrigins[2]",
      "apiOrigins[3]",
      "credential.header",
      "credential.scheme",
      "sources[1]",
      "sources[2]",
      "defaultHeaders.x a",
      "defaultHeaders.cookie",
      "defaultHeaders.x-a",
      "defaultHeaders.x-b",
      "defaultHeaders.content-type",
      "oauth2.authorizationEndpoint",
      "oauth2.tokenEndpoint",
      "oauth2.refreshEndpoint",
      "oauth2.revocationEndpoint",
      "oauth2.issuer",
      "oauth2.scopeSeparator",
      "oauth2.defaultScopes[1]",
      "oauth2.defaultScopes[2]",
      "oauth2.clientAuthentication",
      "oauth2.clientIdParameter",
      "oauth2.authorizationParameters.state",
      "oauth2.authorizationParameters.a b",
      "oauth2.tokenParameters.grant_type",
      "oauth2.codeParameters.code",
      "oauth2.refreshParameters.refresh_token",
      "oauth2.refreshParameters.client_id",
      "oauth2.tokenRequestFormat",
      "oauth2.tokenResponseMember",
      "oauth2.tokenErrorMember",
      "oauth2.refreshEndedErrors[0]",
      "oauth2.refreshEndedErrors[2]",
      "oauth2.defaultExpiresIn",
      "urlPlaceholders[1]",
      "expirySignals[0].member",
      "expirySignals[1].statusCode",
      "expirySignals[1].member",
      "expirySignals[1].values",
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
    [{ oauth2: { scopeSeparator: ",", defaultScopes: ["a,b"] } }, "oauth2.defaultScopes[0]"],
    [{ oauth2: { defaultScopes: [""] } }, "oauth2.defaultScopes[0]"],
    [{ oauth2: { defaultScopes: ['a"'] } }, "oauth2.defaultScopes[0]"],
    [{ oauth2: { scopeDescriptions: { "a b": "Read" } } }, "oauth2.scopeDescriptions.a b"],
    [{ oauth2: { scopeDescriptions: { a: "" } } }, "oauth2.scopeDescriptions.a"],
    [{ oauth2: { scopeDescriptions: { a: "x".repeat(201) } } }, "oauth2.scopeDescriptions.a"],
    [{ oauth2: { scopeDescriptions: { a: "Read\nSend" } } }, "oauth2.scopeDescriptions.a"],
    [{ oauth2: { scopeDescriptions: { a: "Read \u202edneS" } } }, "oauth2.scopeDescriptions.a"],
    [
      { oauth2: { scopeDescriptions: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`s${at}`, "Read"])) } },
      "oauth2.scopeDescriptions",
    ],
    [{ oauth2: { clientIdParameter: "a b" } }, "oauth2.clientIdParameter"],
    [{ oauth2: { clientIdParameter: "state" } }, "oauth2.clientIdParameter"],
    [
      { oauth2: { clientIdParameter: "client_key", authorizationParameters: { client_key: "x" } } },
      "oauth2.authorizationParameters.client_key",
    ],
    [
      { oauth2: { clientIdParameter: "client_key", tokenParameters: { client_key: "x" } } },
      "oauth2.tokenParameters.client_key",
    ],
    [
      { oauth2: { clientIdParameter: "client_key", codeParameters: { client_key: "" } } },
      "oauth2.codeParameters.client_key",
    ],
    [{ oauth2: { codeParameters: { code_verifier: "" } } }, "oauth2.codeParameters.code_verifier"],
    [{ oauth2: { authorizationParameters: { scope: "" } } }, "oauth2.authorizationParameters.scope"],
    [{ oauth2: { refreshParameters: { client_secret: "x" } } }, "oauth2.refreshParameters.client_secret"],
    [{ oauth2: { refreshParameters: { "a b": "x" } } }, "oauth2.refreshParameters.a b"],
    [{ oauth2: { tokenRequestFormat: "JSON" } }, "oauth2.tokenRequestFormat"],
    [{ oauth2: { tokenResponseMember: ".body" } }, "oauth2.tokenResponseMember"],
    [{ oauth2: { tokenResponseMember: "a b" } }, "oauth2.tokenResponseMember"],
    [{ oauth2: { refreshEndpoint: "http://example.com/token" } }, "oauth2.refreshEndpoint"],
    [{ oauth2: { refreshEndpoint: "https://{shop}.example.com/token" } }, "oauth2.refreshEndpoint"],
    [{ oauth2: { issuer: "http://example.com" } }, "oauth2.issuer"],
    [{ oauth2: { issuer: "https://example.com#a" } }, "oauth2.issuer"],
    [{ oauth2: { issuer: "https://example.com/?" } }, "oauth2.issuer"],
    [{ oauth2: { issuer: "example.com" } }, "oauth2.issuer"],
    [
      { oauth2: { authorizationResponseIssParameterSupported: true } },
      "oauth2.authorizationResponseIssParameterSupported",
    ],
    [{ oauth2: { tokenParameters: { client_secret: "x" } } }, "oauth2.tokenParameters.client_secret"],
    [{ oauth2: { tokenParameters: { refresh_token: "x" } } }, "oauth2.tokenParameters.refresh_token"],
    [{ oauth2: { defaultExpiresIn: 31_536_001 } }, "oauth2.defaultExpiresIn"],
    [{ oauth2: { defaultExpiresIn: 60, nonExpiringAccessTokens: true } }, "oauth2.defaultExpiresIn"],
    [{ oauth2: { tokenEndpoint: "https://{shop}.example.com/token" } }, "oauth2.tokenEndpoint"],
    [{ oauth2: { tokenEndpoint: "https://example.com/{shop}/token" } }, "oauth2.tokenEndpoint"],
    [{ expirySignals: [{ statusCode: 199, member: "a", values: ["b"] }] }, "expirySignals[0].statusCode"],
    [{ expirySignals: [{ statusCode: 399 }] }, "expirySignals[0].member"],
    [{ expirySignals: [{ statusCode: 403, values: ["a"] }] }, "expirySignals[0].values"],
    [{ expirySignals: [{ statusCode: 403, member: "a" }] }, "expirySignals[0].values"],
    [{ expirySignals: [{ statusCode: 403, member: "a", values: [""] }] }, "expirySignals[0].values[0]"],
    [{ expirySignals: [{ statusCode: 403, member: "a", values: ["b", "b"] }] }, "expirySignals[0].values[1]"],
    [{ expirySignals: [{ statusCode: 403, member: ".a", values: ["b"] }] }, "expirySignals[0].member"],
    [{ expirySignals: [{ statusCode: 403, member: "a b", values: ["b"] }] }, "expirySignals[0].member"],
  ])("%j", (members, field) => {
    expect(problemsOf({ ...minimal, ...members }).map((problem) => problem.split(": ")[1])).toEqual([field]);
  });

  it.each(["public_key", "user_id", "user_signature", "private_key", "redirect_uri", "scope", "state", "code"])(
    "refuses {%s} as the parameter of an origin, since the connect url needs the name",
    (name) =>
      expect(problemsOf({ ...minimal, apiOrigins: [`https://{${name}}.example.com`] })).toEqual([
        `test.json: apiOrigins[0]: {${name}} is reserved: the connect url has a parameter of this name`,
      ]),
  );

  it.each(["link", "session", "providers", "provider", "error", "outcome", "iss"])(
    "refuses {%s} beside a parameter whose name is free",
    (name) =>
      expect(problemsOf({ ...minimal, apiOrigins: [`https://{shop}.{${name}}.example.com`] })[0]).toContain(
        `{${name}}`,
      ),
  );

  it("says where a grant_type of its own must stand", () => {
    expect(problemsOf({ ...minimal, oauth2: { tokenParameters: { grant_type: "x" } } })).toEqual([
      "test.json: oauth2.tokenParameters.grant_type: must be in codeParameters or refreshParameters",
    ]);
  });

  it("takes loopback endpoints where they are allowed", () => {
    const oauth2 = { tokenEndpoint: "http://127.0.0.1:8090/token", authorizationEndpoint: "https://example.com/a?b=c" };
    expect(problemsOf({ ...minimal, oauth2 }, true)).toEqual([]);
  });
});
