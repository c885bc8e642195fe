import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { holdsProtocolParameter, occasionAt, signedCredentials } from "../../src/oauth/signature.js";
import { Secret } from "../../src/sealing/seal.js";

const RFC_KEYS = {
  clientId: "9djdj82h48djs9d2",
  clientSecret: new Secret("j49sk3j29djd"),
  token: { token: new Secret("kkk9d7dh3k39sjv7"), secret: new Secret("dh893hdasih9") },
};
const RFC_REQUEST = {
  method: "post",
  origin: "http://example.com",
  path: "/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b",
  form: Buffer.from("c2&a3=2+q"),
};
/** RFC 5849 section 3.4.1.1, and oauth_version, which the relay sends as well. */
const RFC_BASE_STRING =
  "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540%3D%26c2%3D%26" +
  "oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1%26" +
  "oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7%26oauth_version%3D1.0";
const RFC_OCCASION = { timestamp: 137131201, nonce: "7d8f3e4a" };
const HABITS = { signatureMethod: "HMAC-SHA1", realm: "" } as const;

const signatureIn = (field: Secret) => decodeURIComponent(/oauth_signature="([^"]*)"/.exec(field.reveal())?.[1] ?? "");
const hmac = (hash: string, text: string, key = "j49sk3j29djd&dh893hdasih9") =>
  createHmac(hash, key).update(text).digest("base64");

describe("signedCredentials()", () => {
  it("signs the base string of RFC 5849 section 3.4.1.1", () => {
    const field = signedCredentials(RFC_REQUEST, RFC_KEYS, { ...HABITS, realm: "Exa mple" }, RFC_OCCASION);
    expect(signatureIn(field)).toBe(hmac("sha1", RFC_BASE_STRING));
    expect(field.reveal()).toMatch(
      /^realm="Exa%20mple", oauth_consumer_key="9djdj82h48djs9d2", oauth_token="kkk9d7dh3k39sjv7", /,
    );
  });

  it("signs the request that the documentation of X gives as an example", () => {
    const keys = {
      clientId: "xvz1evFS4wEEPTGEFPHBog",
      clientSecret: new Secret("kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw"),
      token: {
        token: new Secret("370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb"),
        secret: new Secret("LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE"),
      },
    };
    const request = {
      method: "POST",
      origin: "https://api.twitter.com",
      path: "/1.1/statuses/update.json?include_entities=true",
      form: Buffer.from("status=Hello%20Ladies%20%2b%20Gentlemen%2c%20a%20signed%20OAuth%20request%21"),
    };
    const occasion = { timestamp: 1318622958, nonce: "kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg" };
    expect(signatureIn(signedCredentials(request, keys, HABITS, occasion))).toBe("hCtSmYh+iHYCEqBWrE7C7hYmtUk=");
  });

  it("signs with SHA-256 by the same rules", () => {
    const field = signedCredentials(RFC_REQUEST, RFC_KEYS, { ...HABITS, signatureMethod: "HMAC-SHA256" }, RFC_OCCASION);
    expect(signatureIn(field)).toBe(hmac("sha256", RFC_BASE_STRING.replace("HMAC-SHA1", "HMAC-SHA256")));
  });

  it("gives both secrets, encoded, as the signature of PLAINTEXT", () => {
    const keys = { clientId: "a", clientSecret: new Secret("djr9&rjt"), token: RFC_KEYS.token };
    const field = signedCredentials(RFC_REQUEST, keys, { ...HABITS, signatureMethod: "PLAINTEXT" }, RFC_OCCASION);
    expect(field.reveal()).toContain('oauth_signature="djr9%2526rjt%26dh893hdasih9"');
  });

  it.each([
    ["an empty query", "/a?", ""],
    ["empty parts", "/a?&&", ""],
    ["bytes that are no UTF-8", "/a?a=%FF", "a%3D%25FF%26"],
    ["a percent sign that encodes nothing", "/a?a=%zz", "a%3D%2525zz%26"],
    ["a plus, which is a space", "/a?a=1+2", "a%3D1%25202%26"],
    ["an encoded plus", "/a?a=1%2B2", "a%3D1%252B2%26"],
    ["names that differ behind another one", "/a?a-b=1&a=2", "a%3D2%26a-b%3D1%26"],
    ["unreserved characters, encoded for nothing", "/a?a=%7E%61", "a%3D~a%26"],
  ])("covers %s by its bytes", (_what, path, expected) => {
    const request = { method: "GET", origin: "https://a.example:8443", path, form: undefined };
    const field = signedCredentials(request, RFC_KEYS, HABITS, RFC_OCCASION);
    const own = RFC_BASE_STRING.slice(RFC_BASE_STRING.indexOf("oauth_consumer_key"));
    const base = `GET&https%3A%2F%2Fa.example%3A8443%2Fa&${expected}${own}`;
    expect(signatureIn(field)).toBe(hmac("sha1", base));
  });

  it("covers the path as it goes out", () => {
    const request = { method: "GET", origin: "https://a.example", path: "/r%20v/X!?a=1", form: undefined };
    const field = signedCredentials(request, RFC_KEYS, HABITS, RFC_OCCASION);
    const own = RFC_BASE_STRING.slice(RFC_BASE_STRING.indexOf("oauth_consumer_key"));
    expect(signatureIn(field)).toBe(hmac("sha1", `GET&https%3A%2F%2Fa.example%2Fr%2520v%2FX%21&a%3D1%26${own}`));
  });
});

describe("occasionAt()", () => {
  it("gives whole seconds and a nonce that is never the same", () => {
    const nonces = Array.from({ length: 100 }, () => occasionAt(1999));
    expect(nonces[0]?.timestamp).toBe(1);
    expect(new Set(nonces.map(({ nonce }) => nonce)).size).toBe(100);
    expect(nonces.every(({ nonce }) => /^[0-9a-f]{32}$/.test(nonce))).toBe(true);
  });
});

describe("holdsProtocolParameter()", () => {
  it.each([
    "oauth_token=x",
    "a=1&oauth_nonce",
    "OAuth_Signature=1",
    "%6Fauth_token=x",
    "oauth%5Ftoken=x",
    "oauth%2Etoken=x",
    "oauth+token=x",
    "+oauth_token=x",
    "%00oauth_token=x",
  ])("finds one in %s", (encoded) => {
    expect(holdsProtocolParameter(encoded)).toBe(true);
    expect(holdsProtocolParameter(Buffer.from(encoded))).toBe(true);
  });

  it.each(["", "a=oauth_token", "oauthtoken=1", "x_auth_mode=1", "xoauth_token=1"])("finds none in %s", (encoded) => {
    expect(holdsProtocolParameter(encoded)).toBe(false);
  });
});
