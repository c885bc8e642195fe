import { createHmac } from "node:crypto";
import fc from "fast-check";
import { createPrivateKey, hashPrivateKey } from "../../src/applications/application.js";
import type { TestApplication } from "../support/harness.js";

/** One call token that has to be taken, and one that is the same but for one thing. */
export interface TokenInput {
  readonly valid: string;
  readonly broken: string;
  readonly how: string;
}

/** What a token is written from. */
interface Parts {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Changes of the two JSON texts, and of the whole. */
  readonly headerText?: (text: string) => string | Buffer;
  readonly claimsText?: (text: string) => string | Buffer;
  readonly key?: string | Buffer;
  readonly hash?: string;
  readonly whole?: (text: string) => string;
}

/** Breaks one thing. `at` is any number: it chooses among what can be broken so. */
type Break = (parts: Parts, at: number, own: TestApplication) => Partial<Parts>;

const SECOND = Math.floor(Date.now() / 1000);
/** Values of every JSON type but text. */
const OTHER_TYPES = [null, true, 1, [], {}, ["x"], [1], { a: "x" }];
/** Values of every JSON type but a number. */
const NO_NUMBERS = [null, true, "1", String(SECOND), [], [SECOND], {}];
const one = <Item>(items: readonly Item[], at: number): Item => items[at % items.length] as Item;
const claim =
  (name: string, values: readonly unknown[]): Break =>
  ({ claims }, at) => ({ claims: { ...claims, [name]: one(values, at) } });
const header =
  (name: string, values: readonly unknown[]): Break =>
  (parts, at) => ({ header: { ...parts.header, [name]: one(values, at) } });
const without =
  (name: string): Break =>
  ({ claims: { [name]: _, ...claims } }) => ({ claims });
const twice =
  (member: "headerText" | "claimsText", more: readonly string[]): Break =>
  (_parts, at) => ({ [member]: (text: string) => `${text.slice(0, -1)},${one(more, at)}}` });
const text =
  (member: "headerText" | "claimsText", changes: ReadonlyArray<(text: string) => string | Buffer>): Break =>
  (_parts, at) => ({ [member]: one(changes, at) });

const NO_JSON = [
  () => "",
  () => "null",
  () => '"x"',
  () => "[]",
  (json: string) => `${json}}`,
  (json: string) => json.slice(0, -1),
  (json: string) => `\ufeff${json}`,
  (json: string) => `[${json}]`,
  (json: string) => json.replace('"', "'"),
  (json: string) => json.replace(/\}$/, ",}"),
  (json: string) =>
    Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0x2c, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])]),
  (json: string) => `${json.slice(0, -1)},"x":${"[".repeat(99)}${"]".repeat(99)}}`,
];

/** Each breaks a token in one way. */
const BREAKS: Readonly<Record<string, Break>> = {
  "alg is another": header("alg", [
    "none",
    "None",
    "NONE",
    "",
    "HS384",
    "HS512",
    "RS256",
    "ES256",
    "PS256",
    "EdDSA",
    "hs256",
    "HS256 ",
    null,
    ["HS256"],
    256,
  ]),
  "alg is missing": ({ header: { alg: _, ...rest } }) => ({ header: rest }),
  "typ is another": header("typ", [
    "JWT",
    "at+jwt",
    "",
    "application/relay-call+jwt",
    "relay-call+JWT",
    "RELAY-CALL+JWT",
    "relay-call",
    null,
    ["relay-call+jwt"],
  ]),
  "typ is missing": ({ header: { typ: _, ...rest } }) => ({ header: rest }),
  "crit is there": header("crit", [[], ["exp"], ["b64"], null, "exp", {}]),
  "a member of the header stands twice": twice("headerText", [
    '"alg":"HS256"',
    '"alg":"none"',
    '"typ":"relay-call+jwt"',
    '"\\u0061lg":"HS256"',
    '"kid":"1","kid":"2"',
  ]),
  "a claim stands twice": twice("claimsText", [
    '"sub":"x"',
    '"iss":"x"',
    '"exp":9999999999',
    '"\\u0073ub":"x"',
    '"x":1,"x":1',
    '"x":{"y":1,"y":1}',
  ]),
  "the header is no JSON object": text("headerText", NO_JSON),
  "the claims are no JSON object": text("claimsText", NO_JSON),
  "iss is another": claim("iss", ["", "relay_pk_of_nobody", ...OTHER_TYPES]),
  "iss is missing": without("iss"),
  "sub is another": claim("sub", ["", ...OTHER_TYPES]),
  "sub is missing": without("sub"),
  "aud is another": claim("aud", [
    "",
    "relay",
    "provider-call-relay ",
    "PROVIDER-CALL-RELAY",
    ["provider-call-relay", "x"],
    ["x"],
    [["provider-call-relay"]],
    ...OTHER_TYPES,
  ]),
  "aud is missing": without("aud"),
  "iat is no number": claim("iat", NO_NUMBERS),
  "iat is missing": without("iat"),
  "iat is in the future": claim("iat", [SECOND + 4_000, SECOND + 80_000, 1e15, 1e300]),
  "exp is no number": claim("exp", NO_NUMBERS),
  "exp is missing": without("exp"),
  "exp is over": ({ claims }, at) => ({ claims: { ...claims, iat: SECOND - 90_000 - at, exp: SECOND - 80_000 - at } }),
  "exp is too far": ({ claims }, at) => ({ claims: { ...claims, exp: (claims["iat"] as number) + 86_401 + at } }),
  "exp is before iat": ({ claims }, at) => ({ claims: { ...claims, exp: (claims["iat"] as number) - (at % 1_000) } }),
  "nbf is no number": claim("nbf", NO_NUMBERS),
  "nbf is in the future": claim("nbf", [SECOND + 4_000, 1e15]),
  "providers are no list of names": claim("providers", ["wire", [], [""], [null], ["wire", 1], {}, null, true]),
  "the provider is not among them": claim("providers", [["github"], ["WIRE"], ["wire "], ["wir"]]),
  "rules are no list of rules": claim("rules", [
    [],
    {},
    null,
    "GET",
    true,
    [null],
    [[]],
    ["GET"],
    [{ methods: [] }],
    [{ methods: "GET" }],
    [{ paths: ["a"] }],
    [{ paths: ["/a//b"] }],
    [{ hosts: ["*"] }],
    [{ method: ["GET"] }],
    [{}, { paths: null }],
    [{ methods: ["GET"], or: [] }],
  ]),
  "no rule fits": claim("rules", [
    [{ methods: ["POST"] }],
    [{ paths: ["/other/**"] }],
    [{ hosts: ["api.github.com"] }],
    [
      { methods: ["GET"], paths: ["/a/b"] },
      { methods: ["POST"], paths: ["/**"] },
    ],
  ]),
  "the key is another": (_parts, at, own) => ({
    key: one(
      [
        "",
        own.publicKey,
        createPrivateKey(),
        own.privateKey.slice(0, -1),
        `${own.privateKey}x`,
        hashPrivateKey(own.privateKey).toString("hex"),
        hashPrivateKey(own.privateKey).toString("base64"),
      ],
      at,
    ),
  }),
  "the hash is another": (_parts, at) => ({ hash: one(["sha512", "sha384", "sha1", "md5", "sha512-256"], at) }),
  "a character is another": (_parts, at) => ({ whole: (whole) => changed(whole, at) }),
  "it is cut": (_parts, at) => ({ whole: (whole) => whole.slice(0, at % whole.length) }),
  "it has no signature": () => ({ whole: (whole) => whole.slice(0, whole.lastIndexOf(".") + 1) }),
  "it has more": (_parts, at) => ({ whole: (whole) => whole + one(["=", "==", "A", ".", ".x", "-", "%3D", "'"], at) }),
  "it has a part too many": (_parts, at) => ({
    whole: (whole) => one([`x.${whole}`, `${whole}.${whole}`, `..${whole}`], at),
  }),
  "its base64 is the plain one": () => ({ whole: plain }),
  "its last bits are others": () => ({ whole: withOtherBits }),
  "its parts are another's": (_parts, _at, own) => ({ whole: (whole) => mixed(whole, own) }),
  "it is too long": ({ claims }, at) => ({ claims: { ...claims, x: "x".repeat(4_096 + (at % 4_000)) } }),
};

const RULES = [
  undefined,
  [{}],
  [{ methods: ["GET"] }],
  [{ paths: ["/a/b/c"] }],
  [{ methods: ["GET"], paths: ["/a/**"] }],
  [{ methods: ["POST"] }, { paths: ["/**"] }],
  [{ paths: ["/a/*/c"] }],
];

/** Tokens for the worker's user, for GET /a/b/c at the provider `wire`; each with one thing broken. */
export function tokenInputs(own: TestApplication, userId: string): fc.Arbitrary<TokenInput> {
  return fc
    .record({
      how: fc.constantFrom(...Object.keys(BREAKS)),
      at: fc.nat(1_000_000),
      age: fc.nat(3_000),
      lifetime: fc.integer({ min: 3_600, max: 80_000 }),
      rules: fc.constantFrom(...RULES),
      providers: fc.constantFrom(undefined, ["wire"], ["github", "wire"]),
      more: fc.constantFrom({}, { jti: "1" }, { nbf: SECOND - 3_600 }, { scope: "é", x: [{}] }),
      audience: fc.constantFrom("provider-call-relay", ["provider-call-relay"]),
      kid: fc.constantFrom({}, { kid: "1" }, { x: null }),
    })
    .map(({ how, at, age, lifetime, rules, providers, more, audience, kid }) => {
      const iat = SECOND - age;
      const claims = {
        iss: own.publicKey,
        sub: userId,
        aud: audience,
        iat,
        exp: iat + lifetime,
        rules,
        providers,
        ...more,
      };
      const parts: Parts = { header: { alg: "HS256", typ: "relay-call+jwt", ...kid }, claims };
      const broken = (BREAKS[how] as Break)(parts, at, own);
      return { how, valid: written(parts, own), broken: written({ ...parts, ...broken }, own) };
    });
}

function written({ header, claims, headerText, claimsText, key, hash = "sha256", whole }: Parts, own: TestApplication) {
  const texts = [
    headerText?.(JSON.stringify(header)) ?? JSON.stringify(header),
    claimsText?.(JSON.stringify(claims)) ?? JSON.stringify(claims),
  ];
  const signed = texts.map((part) => Buffer.from(part as string).toString("base64url")).join(".");
  const token = `${signed}.${createHmac(hash, key ?? own.privateKey)
    .update(signed)
    .digest("base64url")}`;
  return whole?.(token) ?? token;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function changed(token: string, at: number): string {
  const place = at % token.length;
  const now = ALPHABET.indexOf(token[place] ?? "");
  return token.slice(0, place) + ALPHABET[(now + 1 + (at % 62)) % 64] + token.slice(place + 1);
}

function withOtherBits(token: string): string {
  return token.slice(0, -1) + ALPHABET[ALPHABET.indexOf(token.at(-1) ?? "") ^ 1];
}

/** Where base64url has nothing that base64 writes otherwise, padding does. */
function plain(token: string): string {
  const other = token.replaceAll("-", "+").replaceAll("_", "/");
  return other === token ? `${token}=` : other;
}

function mixed(token: string, own: TestApplication): string {
  const [header = "", , signature = ""] = token.split(".");
  const claims = {
    iss: own.publicKey,
    sub: "somebody-else",
    aud: "provider-call-relay",
    iat: SECOND,
    exp: SECOND + 60,
  };
  return `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
}
