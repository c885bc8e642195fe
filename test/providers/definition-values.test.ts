import { describe, expect, it } from "vitest";
import { definitionFromProvider } from "../../src/providers/definition-from-provider.js";
import { problemsOf, providerFrom } from "./provider-for-test.js";

const BASE = { name: "test", apiOrigins: ["https://api.example.com"] };
const problems = (members: object) => problemsOf({ ...BASE, ...members });
const withValue = (value: object) =>
  problems({ kind: "api_key", connectionValues: [{ name: "api_key", secret: true, ...value }] });
const open = (value: object) => problems({ kind: "api_key", connectionValues: [{ name: "team", ...value }] });

describe("the kind of a definition", () => {
  it("brings the values and the place that a definition need not name", () => {
    expect(providerFrom({})).toMatchObject({
      kind: "oauth2",
      connectionValues: [],
      credential: { value: "{access_token}" },
    });
    expect(providerFrom({ kind: "api_key" })).toMatchObject({
      connectionValues: [{ name: "api_key", isSecret: true, isPrintable: true }],
      credential: { name: "authorization", scheme: "Bearer", value: "{api_key}" },
    });
    expect(providerFrom({ kind: "basic" })).toMatchObject({
      connectionValues: [
        { name: "username", isSecret: false },
        { name: "password", isSecret: true, isPrintable: false },
      ],
      credential: { name: "authorization", scheme: "Basic", value: "{username}:{password}" },
    });
  });

  it("is client_credentials with a token endpoint, and with a client that may be the application's", () => {
    const oauth2 = { tokenEndpoint: "https://api.example.com/token" };
    const values = [{ name: "key", secret: true }];
    const credential = { value: "{key}.{access_token}" };
    expect(providerFrom({ kind: "client_credentials", oauth2, connectionValues: values, credential })).toMatchObject({
      connectionValues: [
        { name: "key", isSecret: true },
        { name: "client_id", isSecret: false, isOptional: true },
        { name: "client_secret", isSecret: true, isOptional: true },
      ],
    });
    for (const members of [{}, { oauth2: {} }]) {
      expect(problems({ kind: "client_credentials", ...members })).toEqual([
        "test.json: oauth2.tokenEndpoint: is missing for the kind client_credentials",
      ]);
    }
  });

  it("is jwt_bearer with a signing key, and with an assertion that is signed with it", () => {
    const assertion = { algorithm: "RS256", header: { kid: "{key_id}" }, claims: { iss: "{key_id}" } };
    const tokenEndpoint = "https://api.example.com/token";
    const value = { name: "key_id", keyFileMember: "client.key", optional: true };
    const given = { kind: "jwt_bearer", connectionValues: [value], oauth2: { tokenEndpoint, assertion } };
    const provider = providerFrom(given);
    expect(provider).toMatchObject({
      connectionValues: [
        { name: "key_id", keyFileMember: "client.key" },
        { name: "signing_key", isSecret: true, isOptional: false },
      ],
      credential: { value: "{access_token}" },
      oauth2: { assertion: { ...assertion, lifetimeSeconds: 300, jti: false, use: "grant" } },
    });
    const shown = JSON.parse(JSON.stringify(definitionFromProvider(provider)));
    expect(JSON.parse(JSON.stringify(definitionFromProvider(providerFrom(shown))))).toEqual(shown);
  });

  it("is jwt_bearer with a key that is needed and secret, also where the definition says otherwise", () => {
    const own = { name: "signing_key", optional: true, pattern: "x" };
    const oauth2 = { assertion: { algorithm: "RS256", use: "access_token" } };
    expect(providerFrom({ kind: "jwt_bearer", connectionValues: [own], oauth2 }).connectionValues).toMatchObject([
      { isSecret: true, isOptional: false, pattern: undefined },
    ]);
  });

  const ASSERTION = { algorithm: "RS256", claims: { iss: "{key_id}" } };
  const tokenEndpoint = "https://api.example.com/token";
  const signing = (changes: object, more: object = {}) => ({
    ...{ kind: "jwt_bearer", connectionValues: [{ name: "key_id" }] },
    oauth2: { tokenEndpoint, assertion: { ...ASSERTION, ...changes } },
    ...more,
  });
  it.each([
    [{ kind: "jwt_bearer", oauth2: { tokenEndpoint } }, "oauth2.assertion: is missing for the kind jwt_bearer"],
    [
      { kind: "jwt_bearer", oauth2: { assertion: ASSERTION } },
      "oauth2.tokenEndpoint: is missing for the kind jwt_bearer",
    ],
    [
      { ...signing({}), kind: "client_credentials" },
      "oauth2.assertion: is not allowed for the kind client_credentials",
    ],
    [signing({ algorithm: "none" }), "oauth2.assertion.algorithm: must be one of RS256"],
    [signing({ use: "saml" }), "oauth2.assertion.use: must be one of grant"],
    [signing({ lifetimeSeconds: 59 }), "oauth2.assertion.lifetimeSeconds: must be 60 to 3600 seconds"],
    [signing({ lifetimeSeconds: 3601 }), "oauth2.assertion.lifetimeSeconds: must be 60 to 3600 seconds"],
    [signing({ header: { alg: "none" } }), "oauth2.assertion.header.alg: is set by the relay"],
    [signing({ claims: { exp: "9" } }), "oauth2.assertion.claims.exp: is set by the relay"],
    [signing({ claims: { "a b": "9" } }), "oauth2.assertion.claims.a b: must be a name"],
    [signing({ claims: { sub: "" } }), "oauth2.assertion.claims.sub: must be 1 to 1024 characters"],
    [signing({ claims: { sub: "{nobody}" } }), "oauth2.assertion.claims.sub: {nobody} is not a connection value"],
    [
      signing({ claims: { sub: "{signing_key}" } }),
      "oauth2.assertion.claims.sub: {signing_key} is not a connection value",
    ],
    [
      signing({}, { credential: { value: "{signing_key}" } }),
      "credential.value: {signing_key} is not a connection value",
    ],
    [signing({}, { defaultHeaders: { "x-a": "{signing_key}" } }), "defaultHeaders.x-a: {signing_key} must be"],
    [signing({}, { connectionValues: [{ name: "key_id", keyFileMember: "a..b" }] }), "keyFileMember: must be names"],
    [
      { kind: "api_key", connectionValues: [{ name: "a", keyFileMember: "a" }] },
      "keyFileMember: is not allowed for the kind api_key",
    ],
  ])("%#: has a problem named of the signed %j", (members, problem) => {
    expect(problems(members).join("\n")).toContain(problem);
  });

  it("is said again as it was read", () => {
    const definition = {
      ...BASE,
      apiOrigins: ["https://{team}.example.com"],
      kind: "api_key",
      connectionValues: [
        { name: "team", label: "Team", help: "In the address.", pattern: "[a-z]+", optional: false },
        { name: "one", secret: true },
        { name: "two", label: "Second", secret: true, optional: true },
        { name: "site", choices: [{ value: "a", label: "A" }], defaultValue: "a" },
      ],
      credential: { header: "x-one" },
      furtherCredentials: [{ queryParameter: "two", value: "v={two}" }],
    };
    const provider = providerFrom(definition);
    const shown = JSON.parse(JSON.stringify(definitionFromProvider(provider)));
    expect(shown).toMatchObject({ kind: "api_key", credential: { header: "x-one", value: "{one}" } });
    expect(shown.connectionValues[0]).toMatchObject(definition.connectionValues[0] as object);
    expect(JSON.parse(JSON.stringify(definitionFromProvider(providerFrom(shown))))).toEqual(shown);
    expect(
      JSON.parse(JSON.stringify(definitionFromProvider(providerFrom({ apiOrigins: ["https://{a}.example.com"] })))),
    ).toMatchObject({
      connectionValues: [],
    });
  });

  it.each([
    [{ kind: "saml" }, "kind: must be one of"],
    [{ kind: "api_key", oauth2: {} }, "oauth2: is not allowed for the kind api_key"],
    [
      { connectionValues: [{ name: "key", secret: true }] },
      "connectionValues[0].secret: is not allowed for the kind oauth2",
    ],
    [{ kind: "api_key", credential: { value: "{other}" } }, "credential.value: {other} is not a connection value"],
    [
      { kind: "api_key", credential: { value: "{access_token}" } },
      "credential.value: {access_token} is not a connection value",
    ],
    [{ kind: "api_key", credential: { value: "fixed" } }, "credential.value: must name a secret value"],
    [
      { kind: "api_key", credential: { value: "é{api_key}" } },
      "credential.value: must be 1 to 256 characters of printable ASCII",
    ],
    [
      { kind: "api_key", credential: { value: `{api_key}${"x".repeat(300)}` } },
      "credential.value: must be 1 to 256 characters",
    ],
    [
      { kind: "api_key", furtherCredentials: [{ header: "x-b" }] },
      "furtherCredentials[0].value: must be 1 to 256 characters",
    ],
    [{ kind: "api_key", furtherCredentials: [{ value: "{api_key}" }] }, "furtherCredentials[0]: appears twice"],
    [
      { kind: "api_key", furtherCredentials: [{ header: "host", value: "{api_key}" }] },
      "furtherCredentials[0].header: must not be",
    ],
    [
      {
        kind: "api_key",
        connectionValues: [
          { name: "a", secret: true },
          { name: "b", secret: true },
        ],
      },
      "furtherCredentials: must place the secret value b",
    ],
    [
      { kind: "api_key", furtherCredentials: [{ header: "x-b", value: "{api_key}" }], defaultHeaders: { "X-B": "1" } },
      "defaultHeaders.X-B: is the credential's header",
    ],
  ])("%#: has a problem named of %j", (members, problem) => {
    expect(problems(members).join("\n")).toContain(`test.json: ${problem}`);
  });
});

describe("a connection value of a definition", () => {
  it.each([
    [{ name: "Key" }, "name: must be 1 to 32 lower-case letters"],
    [{ name: "__proto__" }, "name: must be 1 to 32 lower-case letters"],
    [{ name: "session" }, "name: is reserved"],
    [{ name: "access_token" }, "name: is reserved"],
    [{ label: "two\nlines" }, "label: must be one line"],
    [{ help: "x".repeat(501) }, "help: must be one line"],
    [{ defaultValue: "CANARY" }, "defaultValue: is not allowed for a secret value"],
    [{ choices: [{ value: "a" }] }, "choices: are not allowed for a secret value"],
    [{ pattern: "(a+)+" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "(a)\\1" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "(?=a)b" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "a*b*c*d*" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "[a-z]*[a-z]*1" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: `${"(?:a|a)".repeat(18)}b` }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: `${"a?".repeat(18)}b` }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "[a-z]{1,400}[a-z]{1,400}1" }, "pattern: must have at most 256 characters, no repeated groups"],
    [{ pattern: "[" }, "pattern: is not a valid regular expression"],
    [{ pattern: "[\\w-]" }, "pattern: is not a valid regular expression"],
    [{ pattern: "x".repeat(300) }, "pattern: must have at most 256 characters"],
  ])("%#: has a problem named of %j", (value, problem) => {
    expect(withValue(value).join("\n")).toContain(`connectionValues[0].${problem}`);
  });

  it.each([
    [{ choices: [{ value: "" }] }, "connectionValues[0].choices[0].value: is empty"],
    [{ choices: [{ value: "a" }, { value: "a" }] }, "connectionValues[0].choices[1].value: appears twice"],
    [{ choices: [{ value: "a" }], defaultValue: "b" }, "connectionValues[0].defaultValue: must be one of a"],
    [{ pattern: "[a-c]", defaultValue: "d" }, "connectionValues[0].defaultValue: must match [a-c]"],
    [{ defaultValue: "a\nb" }, "connectionValues[0].defaultValue: must not contain line breaks"],
  ])("%#: has a problem named of %j that is open", (value, problem) => {
    expect(open(value).join("\n")).toContain(problem);
  });

  it("stands in a definition once, and there are not more than 16", () => {
    const values = Array.from({ length: 17 }, () => ({ name: "a" }));
    const told = problems({ connectionValues: values }).join("\n");
    expect(told).toContain("connectionValues: must have at most 16 entries");
    expect(told).toContain("connectionValues[1].name: appears twice");
  });
});

const told = (value: object, apiOrigins: readonly string[] = ["https://{host}"]) =>
  problems({ apiOrigins, connectionValues: [{ name: "host", ...value }] }).join("\n");

describe("a value that makes a host", () => {
  it.each([
    [{ tokenMember: "instance_url" }, "connectionValues[0].hosts: must list the allowed hosts"],
    [{ callbackParameter: "server" }, "connectionValues[0].hosts: must list the allowed hosts"],
    [
      { lookup: { url: "https://api.example.com/me", member: "host" } },
      "connectionValues[0].hosts: must list the allowed hosts",
    ],
    [{ hosts: ["*.com"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["*.co.uk"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["*.nagoya.jp"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["*"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["a.*.example.com"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["https://a.example.com"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["A.example.com"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [{ hosts: ["127.0.0.1"] }, "apiOrigins[0]: {host} has hosts that are not names"],
    [
      { hosts: ["*.example.com"], choices: [{ value: "a.example.com" }] },
      "connectionValues[0].hosts: are not allowed together with",
    ],
    [{ choices: [{ value: "com" }] }, "apiOrigins[0]: a template needs at least two fixed labels"],
    [{ choices: [{ value: "a.example.com/x" }] }, "apiOrigins[0]: a template needs at least two fixed labels"],
    [{ secret: true }, "connectionValues[0].secret: is not allowed for the kind oauth2"],
  ])("%#: has a problem named of %j", (value, problem) => {
    expect(told(value)).toContain(problem);
  });

  it.each([
    ["https://{a}.{host}", { choices: [{ value: "com" }] }],
    ["https://api.{host}.com", { hosts: ["*.example.com"] }],
    ["https://{host}.{host}.example.com", {}],
    ["https://{host}.evil.{a}", {}],
  ])("%# makes no wider template of %s", (origin, value) => {
    expect(told(value, [origin])).toContain("apiOrigins[0]: ");
  });

  it.each([
    [
      "https://www.zoneapis.{host}",
      { choices: [{ value: "com" }, { value: "com.au" }] },
      "https://www.zoneapis.com.au",
    ],
    ["https://{a}-{host}.example.com", { choices: [{ value: "eu" }] }, "https://x-y-eu.example.com"],
    [
      "https://{host}",
      { choices: [{ value: "api.example.com" }, { value: "api.example.eu" }] },
      "https://api.example.eu",
    ],
    ["https://{host}:8443", { hosts: ["*.example.com"] }, "https://a.b.example.com:8443"],
  ])("%# makes %s a template of %j", (origin, value, example) => {
    expect(told(value, [origin])).toBe("");
    const provider = providerFrom({ apiOrigins: [origin], connectionValues: [{ name: "host", ...value }] });
    const matches = (url: string) => provider.hostTemplates.some(({ pattern }) => pattern.test(url));
    expect(matches(example)).toBe(true);
    for (const evil of [
      `${example}.evil.test`,
      example.replace("//", "//evil.test/"),
      `${example}0`,
      `https://evil.test`,
    ]) {
      expect(matches(evil)).toBe(false);
    }
  });
});

describe("the source of a value", () => {
  it.each([
    [{ callbackParameter: "code" }, "callbackParameter: is a parameter of OAuth itself"],
    [{ callbackParameter: "a b" }, "callbackParameter: must be letters"],
    [{ tokenMember: "refresh_token" }, "tokenMember: is a token"],
    [{ tokenMember: "user.access_token" }, "tokenMember: is a token"],
    [{ tokenMember: "a..b" }, "tokenMember: must be names separated by dots"],
    [{ client: true, tokenMember: "a" }, "client: only one of"],
    [{ lookup: { url: "https://api.example.com/me" } }, "lookup.member: must be names"],
    [{ lookup: { url: "https://evil.example/me", member: "id" } }, "lookup.url: must be at one of apiOrigins"],
    [
      { lookup: { url: "https://api.example.com.evil.example/me", member: "id" } },
      "lookup.url: must be at one of apiOrigins",
    ],
    [{ lookup: { url: "https://api.example.com/{other}", member: "id" } }, "lookup.url: {other} is neither"],
    [{ lookup: { url: "https://user@api.example.com/me", member: "id" } }, "lookup.url: must be an https url"],
  ])("%#: has a problem named of %j", (value, problem) => {
    expect(problems({ connectionValues: [{ name: "org", ...value }] }).join("\n")).toContain(
      `connectionValues[0].${problem}`,
    );
  });

  it.each([
    [
      { defaultHeaders: { "x-org": "{other}" } },
      "defaultHeaders.x-org: {other} must be a connection value that is not secret",
    ],
    [
      { kind: "api_key", defaultHeaders: { "x-org": "{api_key}" } },
      "defaultHeaders.x-org: {api_key} must be a connection value that is not secret",
    ],
    [{ oauth2: { connectParameters: ["state"] } }, "oauth2.connectParameters[0]: is reserved"],
    [{ oauth2: { connectParameters: ["session"] } }, "oauth2.connectParameters[0]: is reserved"],
    [{ oauth2: { connectParameters: ["redirect_uri"] } }, "oauth2.connectParameters[0]: is reserved"],
    [{ oauth2: { connectParameters: ["a b"] } }, "oauth2.connectParameters[0]: must be letters"],
    [{ oauth2: { connectParameters: ["prompt", "prompt"] } }, "oauth2.connectParameters[1]: appears twice"],
    [{ oauth2: { tokenEndpoint: "https://example.com/{other}/token" } }, "oauth2.tokenEndpoint: {other} is neither"],
    [{ oauth2: { expiresAtMember: "a..b" } }, "oauth2.expiresAtMember: must be names"],
  ])("%#: has a problem where values are used, named of %j", (members, problem) => {
    expect(problems(members).join("\n")).toContain(`test.json: ${problem}`);
  });
});
