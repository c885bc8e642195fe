import { describe, expect, it } from "vitest";
import { originParameterNames, parseOriginAnswers, parseOriginParameters } from "../../src/providers/origin.js";
import { providerFrom as provider } from "./provider-for-test.js";

const shop = provider({ apiOrigins: ["https://{shop}.shop.example"] });
const host = provider({ apiOrigins: ["https://{host}"] });
const two = provider({ apiOrigins: ["https://{team}.{region}.chat.example", "https://{team}.files.example"] });
const plain = provider({ apiOrigins: ["https://api.example.com"] });

describe("originParameterNames()", () => {
  it("has each name once, in the order of the templates", () => {
    expect([shop, two, plain].map(originParameterNames)).toEqual([["shop"], ["team", "region"], []]);
  });
});

describe("parseOriginAnswers()", () => {
  it.each([
    [shop, { shop: "Acme" }, { shop: "acme" }],
    [shop, { shop: "https://acme.shop.example/admin" }, { shop: "acme" }],
    [shop, { shop: " acme.shop.example " }, { shop: "acme" }],
    [host, { host: "https://Social.Example/@me" }, { host: "social.example" }],
    [two, { team: "https://a.eu.chat.example", region: "us" }, { team: "a", region: "eu" }],
    [two, { team: "a", region: "eu" }, { team: "a", region: "eu" }],
    [plain, {}, {}],
  ])("%# makes %j into %j", (of, given, values) => {
    expect(parseOriginAnswers(new Map(Object.entries(given)), of)).toEqual({ values });
  });

  it.each([
    [shop, { shop: "a.b" }],
    [shop, { shop: "evil.example/" }],
    [shop, { shop: "acme.shop.example.evil.example" }],
    [shop, { shop: "acme.shop.example:8443" }],
    [shop, { shop: "evil.example/.shop.example" }],
    [shop, { shop: "x@evil.example" }],
    [shop, { shop: "" }],
    [shop, { shop: "\u212acme" }],
    [host, { host: "localhost" }],
    [host, { host: "127.0.0.1" }],
    [host, { host: "2130706433" }],
    [host, { host: "[::1]" }],
    [host, { host: "a.example:8443" }],
    [host, { host: "user@a.example" }],
    [two, { team: "a" }],
    [two, { team: "a.eu", region: "" }],
  ])("%# makes nothing of %j", (of, given) => {
    expect(parseOriginAnswers(new Map(Object.entries(given)), of)).toHaveProperty("problem");
  });
});

describe("parseOriginParameters()", () => {
  it("takes no address for a label, as a command line means what it says", () => {
    expect(parseOriginParameters(new Map([["shop", "https://acme.shop.example"]]), shop)).toHaveProperty("problem");
  });

  it.each(["__proto__", "constructor", "other"])("takes no parameter %s", (name) => {
    const given = new Map([
      ["shop", "acme"],
      [name, "x"],
    ]);
    expect(parseOriginParameters(given, shop)).toMatchObject({ parameter: name });
  });
});
