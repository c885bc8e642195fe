import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { createPrivateKey, hashPrivateKey } from "../../src/applications/application.js";
import { parseCallRules } from "../../src/applications/call-rules.js";
import { callTokenProblem, createCallToken, readCallToken } from "../../src/applications/call-token.js";
import { callerFieldsOf, callerFrom } from "../../src/applications/caller.js";
import { signCallToken, signText, type TokenParts } from "../support/call-tokens.js";

const application = { publicKey: "public.key-1", privateKey: createPrivateKey() };
const NOW = Math.floor(Date.now() / 1000);
const HEADER = '{"alg":"HS256","typ":"relay-call+jwt"}';
const claimsText = (more = "") =>
  `{"iss":"public.key-1","sub":"ada","aud":"provider-call-relay","iat":${NOW},"exp":${NOW + 900}${more}}`;
const SEALED = new Uint8Array([1, 2, 3]);

interface Judged {
  readonly now?: number;
  readonly sealed?: Uint8Array;
  readonly hash?: () => Buffer;
  readonly publicKey?: string;
  readonly userId?: string;
  readonly maxCallTokenSeconds?: number;
}

/** What is wrong with a token, of the application and the user that it names. */
function problemOf(
  text: string,
  { now = NOW, sealed = SEALED, hash, publicKey, userId, maxCallTokenSeconds = 0 }: Judged = {},
): string | undefined {
  const read = readCallToken(text);
  if ("problem" in read) return read.problem;
  return callTokenProblem(read, {
    application: { publicKey: publicKey ?? application.publicKey, privateKeyHash: sealed, maxCallTokenSeconds },
    privateKeyHash: hash ?? (() => hashPrivateKey(application.privateKey)),
    userId: userId ?? read.token.userId,
    now: now * 1000,
  });
}

const signed = ({ header, claims }: TokenParts) =>
  signCallToken(application, { header, claims: { iat: NOW, exp: NOW + 900, ...claims } });
const withClaims = (claims: Readonly<Record<string, unknown>>) => signed({ claims });

describe("a call token", () => {
  it.each<[string, string]>([
    ["with what it must have", signed({})],
    [
      "with its members in another order",
      signText(application.privateKey, '{"typ":"relay-call+jwt","alg":"HS256"}', claimsText()),
    ],
    ["with white space", signText(application.privateKey, ` ${HEADER}\n`, `\t${claimsText()} `)],
    ["with a key id", signed({ header: { alg: "HS256", typ: "relay-call+jwt", kid: "1" } })],
    ["with claims of others", withClaims({ jti: "1", scope: "x", aud2: [] })],
    ["for a list of one", withClaims({ aud: ["provider-call-relay"] })],
    ["with fractions of seconds", withClaims({ iat: NOW + 0.25, exp: NOW + 900.5 })],
    ["for a whole day", withClaims({ exp: NOW + 86_400 })],
    ["that was valid from the start", withClaims({ nbf: NOW })],
    ["with providers and rules", withClaims({ providers: ["github"], rules: [{ methods: ["GET"] }] })],
    ["of a clock that is ahead by a minute", withClaims({ iat: NOW + 60, exp: NOW + 120 })],
    ["of a clock that is behind by almost a minute", withClaims({ iat: NOW - 900, exp: NOW - 59 })],
  ])("is taken %s", (_name, text) => {
    expect(problemOf(text)).toBeUndefined();
    // Once more, as it is remembered.
    expect(problemOf(text)).toBeUndefined();
  });

  it("is verified by the very bytes that the key's own HMAC gives", () => {
    const [header, claims, signature] = signed({}).split(".");
    expect(createHmac("sha256", application.privateKey).update(`${header}.${claims}`).digest("base64url")).toBe(
      signature,
    );
  });

  it.each<[string, string, string]>([
    ["without a signature", signed({}).replace(/[^.]*$/, ""), "not a JWT"],
    ["of two parts", signed({}).replace(/\.[^.]*$/, ""), "not a JWT"],
    ["of five parts", `${signed({})}.a.b`, "not a JWT"],
    ["with padding", `${signed({})}=`, "not a JWT"],
    ["with a plus of plain base64", signed({}).replace(/..$/, "++"), "not a JWT"],
    ["with a space", `${signed({})} `, "not a JWT"],
    ["with bits at the end of its signature that stand for nothing", withOtherLastBits(signed({})), "not a JWT"],
    ["with another signature", signed({}).replace(/[^.]{43}$/, "A".repeat(43)), "not signed"],
    ["of another key", signCallToken({ ...application, privateKey: createPrivateKey() }), "not signed"],
    ["signed with the public key", signText(application.publicKey, HEADER, claimsText()), "not signed"],
    ["signed with nothing", signText("", HEADER, claimsText()), "not signed"],
    [
      "signed with the hash of the key in hex",
      signText(hashPrivateKey(application.privateKey).toString("hex"), HEADER, claimsText()),
      "not signed",
    ],
    ["that says none", signed({ header: { alg: "none", typ: "relay-call+jwt" } }), "alg"],
    [
      "that says nOnE and has no signature",
      `${signed({ header: { alg: "nOnE", typ: "relay-call+jwt" } }).replace(/[^.]*$/, "")}`,
      "not a JWT",
    ],
    ["that says HS512", signed({ header: { alg: "HS512", typ: "relay-call+jwt" } }), "alg"],
    ["that says hs256", signed({ header: { alg: "hs256", typ: "relay-call+jwt" } }), "alg"],
    ["that says RS256 with a key of its own", ownKey(), "not a JWT"],
    ["without alg", signed({ header: { typ: "relay-call+jwt" } }), "alg"],
    ["with a list of algs", signed({ header: { alg: ["HS256"], typ: "relay-call+jwt" } }), "alg"],
    ["that is a JWT of another type", signed({ header: { alg: "HS256", typ: "JWT" } }), "typ"],
    ["without a type", signed({ header: { alg: "HS256" } }), "typ"],
    [
      "with another spelling of its type",
      signed({ header: { alg: "HS256", typ: "application/relay-call+jwt" } }),
      "typ",
    ],
    ["with crit", signed({ header: { alg: "HS256", typ: "relay-call+jwt", crit: [] } }), "crit"],
    [
      "with an extension that must be known",
      signed({ header: { alg: "HS256", typ: "relay-call+jwt", crit: ["b64"], b64: false } }),
      "crit",
    ],
    ["whose header is a list", signed({ header: ["HS256"] }), "alg"],
    ["whose header is no JSON", signText(application.privateKey, "HS256", claimsText()), "alg"],
    [
      "with alg twice",
      signText(application.privateKey, '{"alg":"none","alg":"HS256","typ":"relay-call+jwt"}', claimsText()),
      "alg",
    ],
    ["with a claim twice", signText(application.privateKey, HEADER, claimsText(',"sub":"bob"')), "claims"],
    [
      "with a claim twice, once escaped",
      signText(application.privateKey, HEADER, claimsText(',"\\u0073ub":"bob"')),
      "claims",
    ],
    [
      "with a member of a rule twice",
      signText(application.privateKey, HEADER, claimsText(',"rules":[{"methods":["GET"],"methods":["POST"]}]')),
      "claims",
    ],
    ["with a byte order mark", signText(application.privateKey, HEADER, `\ufeff${claimsText()}`), "claims"],
    [
      "that is no UTF-8",
      signText(
        application.privateKey,
        HEADER,
        Buffer.concat([Buffer.from(claimsText(',"x":"')).subarray(0, -1), Buffer.from([0xff, 0x22, 0x7d])]),
      ),
      "claims",
    ],
    ["with two JSON texts", signText(application.privateKey, HEADER, claimsText() + claimsText()), "claims"],
    ["whose claims are a string", signText(application.privateKey, HEADER, '"x"'), "claims"],
    ["whose claims are null", signText(application.privateKey, HEADER, "null"), "claims"],
    [
      "nested deep",
      signText(application.privateKey, HEADER, claimsText(`,"x":${"[".repeat(20)}${"]".repeat(20)}`)),
      "claims",
    ],
    ["without iss", withClaims({ iss: undefined }), "iss"],
    ["with a number as iss", withClaims({ iss: 1 }), "iss"],
    ["with an empty iss", withClaims({ iss: "" }), "iss"],
    ["without sub", withClaims({ sub: undefined }), "sub"],
    ["with an empty sub", withClaims({ sub: "" }), "sub"],
    ["with a list as sub", withClaims({ sub: ["ada"] }), "sub"],
    ["without aud", withClaims({ aud: undefined }), "aud"],
    ["for others", withClaims({ aud: "other" }), "aud"],
    ["for the relay and others", withClaims({ aud: ["provider-call-relay", "other"] }), "aud"],
    ["for the relay twice", withClaims({ aud: ["provider-call-relay", "provider-call-relay"] }), "aud"],
    ["for nobody", withClaims({ aud: [] }), "aud"],
    ["for the relay in capitals", withClaims({ aud: "Provider-Call-Relay" }), "aud"],
    ["without exp", withClaims({ exp: undefined }), "exp"],
    ["without iat", withClaims({ iat: undefined }), "iat"],
    ["with a text as exp", withClaims({ exp: String(NOW + 900) }), "exp"],
    ["with true as iat", withClaims({ iat: true }), "iat"],
    [
      "that ends never",
      signText(application.privateKey, HEADER, claimsText().replace(String(NOW + 900), "1e400")),
      "exp",
    ],
    [
      "that began before all times",
      signText(application.privateKey, HEADER, claimsText().replace(`"iat":${NOW}`, `"iat":-1e400`)),
      "iat",
    ],
    ["that lives a second too long", withClaims({ exp: NOW + 86_401 }), "86400 seconds"],
    ["that ends when it begins", withClaims({ exp: NOW }), "after its iat"],
    ["that ends before it begins", withClaims({ exp: NOW - 10 }), "after its iat"],
    ["that has ended a minute ago", withClaims({ iat: NOW - 900, exp: NOW - 60 }), "expired"],
    ["that is issued in the future", withClaims({ iat: NOW + 61, exp: NOW + 900 }), "not valid yet"],
    [
      "that is issued in the future and has begun",
      withClaims({ iat: NOW + 61, exp: NOW + 900, nbf: NOW }),
      "not valid yet",
    ],
    ["that begins never", signText(application.privateKey, HEADER, claimsText(',"nbf":1e400')), "not valid yet"],
    ["that begins later", withClaims({ nbf: NOW + 61 }), "not valid yet"],
    ["with null as nbf", withClaims({ nbf: null }), "nbf"],
    ["with a text as nbf", withClaims({ nbf: "0" }), "nbf"],
    ["with no providers", withClaims({ providers: [] }), "providers"],
    ["with a text as providers", withClaims({ providers: "github" }), "providers"],
    ["with null as providers", withClaims({ providers: null }), "providers"],
    ["with a number among its providers", withClaims({ providers: ["github", 1] }), "providers"],
    ["with no rules", withClaims({ rules: [] }), "rules"],
    ["with null as rules", withClaims({ rules: null }), "rules"],
    ["with a rule that is not understood", withClaims({ rules: [{ methods: ["GET"], unless: {} }] }), "rules"],
    ["that is too long", withClaims({ x: "x".repeat(4096) }), "4096"],
  ])("is refused %s", (_name, text, problem) => {
    expect(problemOf(text)).toContain(problem);
    // It is not remembered either.
    expect(problemOf(text)).toContain(problem);
  });

  it("is refused for another application, and for another user", () => {
    expect(problemOf(signed({}), { publicKey: "other" })).toContain("iss");
    expect(problemOf(signed({}), { userId: "bob" })).toContain("sub");
  });

  it("is refused when it lives longer than its application lets it", () => {
    expect(problemOf(signed({}), { maxCallTokenSeconds: 900 })).toBeUndefined();
    expect(problemOf(signed({}), { maxCallTokenSeconds: 899 })).toContain("899 seconds");
  });

  it("is verified anew by another key, and at every time", () => {
    const text = signed({ claims: { jti: "remembered" } });
    const otherHash = () => hashPrivateKey(createPrivateKey());
    expect(problemOf(text)).toBeUndefined();
    expect(problemOf(text, { hash: () => expect.unreachable() })).toBeUndefined();
    expect(problemOf(text, { sealed: Uint8Array.from(SEALED), hash: () => expect.unreachable() })).toBeUndefined();
    expect(problemOf(text, { sealed: new Uint8Array([9]), hash: otherHash })).toContain("not signed");
    expect(problemOf(text, { now: NOW + 960 })).toContain("expired");
    expect(problemOf(text, { now: NOW - 61 })).toContain("not valid yet");
  });

  it("is verified again only when much larger ones have come after it", () => {
    const text = withClaims({ jti: "small" });
    expect(problemOf(text)).toBeUndefined();
    const showLarge = (from: number) => {
      for (let at = from; at < from + 400; at += 1) problemOf(withClaims({ jti: String(at).padEnd(2_700, "x") }));
    };
    showLarge(0);
    expect(problemOf(text, { hash: () => expect.unreachable() })).toBeUndefined();
    showLarge(400);
    expect(() => problemOf(text, { hash: () => expect.unreachable() })).toThrow();
    expect(problemOf(text)).toBeUndefined();
  });

  it("prints itself without its text", () => {
    const read = readCallToken(signed({}));
    const [, claims = "", signature = ""] = signed({}).split(".");
    for (const printed of [inspect(read, { depth: 9, showHidden: true }), JSON.stringify(read)]) {
      expect(printed).not.toContain(signature);
      expect(printed).not.toContain(claims);
    }
  });

  it("never says what it holds when it is refused", () => {
    for (const text of [
      withClaims({ sub: "CANARY", aud: "CANARY" }),
      withClaims({ CANARY: "CANARY", rules: [{ CANARY: 1 }] }),
    ]) {
      expect(problemOf(text)).not.toMatch(/CANARY/);
    }
  });
});

describe("createCallToken()", () => {
  it("makes what is taken, with what it was asked to say", () => {
    const parsed = parseCallRules([{ methods: ["GET"], paths: ["/a/**", "/"] }]);
    const rules = "rules" in parsed ? parsed.rules : undefined;
    const made = createCallToken(
      {
        publicKey: application.publicKey,
        userId: "É",
        providers: ["github"],
        rules,
        now: NOW * 1000,
        lifetimeSeconds: 60,
      },
      hashPrivateKey(application.privateKey),
    );
    expect(made.expiresAt).toBe((NOW + 60) * 1000);
    expect(problemOf(made.callToken)).toBeUndefined();
    const read = readCallToken(made.callToken);
    expect("token" in read && read.token).toMatchObject({ userId: "É", providers: ["github"], rules });
  });
});

describe("callerFrom() with call tokens", () => {
  const named = { publicKey: "", userId: "", privateKey: undefined, userSignature: undefined };
  const fields = (...values: readonly string[]) =>
    callerFieldsOf(
      { headers: { authorization: values[0] }, rawHeaders: values.flatMap((value) => ["Authorization", value]) },
      "",
    );

  it("takes application and user from the token where the request does not name them", () => {
    expect(callerFrom(fields(`Bearer ${signed({})}`), named)).toMatchObject({
      publicKey: "public.key-1",
      userId: "ada",
    });
    const other = { ...named, publicKey: "other", userId: "bob" };
    expect(callerFrom(fields(`bearer ${signed({})}`), other)).toMatchObject({ publicKey: "other", userId: "bob" });
    expect(callerFrom(fields(), { ...named, privateKey: signed({}) })).toMatchObject({ userId: "ada" });
  });

  it("refuses two of them, and one that cannot be read, wherever it stands", () => {
    const text = signed({});
    expect(() => callerFrom(fields(`Bearer ${text}`, `Bearer ${text}`), named)).toThrow("more than one call token");
    expect(() => callerFrom(fields(`Bearer ${text}`), { ...named, privateKey: text })).toThrow(
      "more than one call token",
    );
    expect(() => callerFrom(fields("Bearer a.b.c"), named)).toThrow("The call token is not valid: it is not a JWT");
    expect(() => callerFrom(fields(), { ...named, privateKey: "a.b.c" })).toThrow("The call token is not valid");
  });

  it("leaves every private key beside it to be judged", () => {
    const { proof } = callerFrom(fields("Bearer wrong", `Bearer ${signed({})}`), named);
    expect(proof.privateKeys).toEqual([{ place: "Authorization", publicKey: undefined, privateKey: "wrong" }]);
    expect(proof.callToken?.token.userId).toBe("ada");
  });
});

/** Base64url of 32 bytes ends with a character of which two bits stand for nothing. */
function withOtherLastBits(text: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return text.slice(0, -1) + (alphabet[alphabet.indexOf(text.at(-1) ?? "") + 1] ?? "");
}

function ownKey(): string {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const header = { alg: "RS256", typ: "relay-call+jwt", jwk: publicKey.export({ format: "jwk" }) };
  const text = [JSON.stringify(header), claimsText()].map((part) => Buffer.from(part).toString("base64url")).join(".");
  return `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`;
}
