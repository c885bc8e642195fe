import { describe, expect, it } from "vitest";
import { parseAnswers, parseValues, valuesOf, withTold } from "../../src/providers/connection-value.js";
import { providerFrom as provider } from "./provider-for-test.js";

const shop = provider({ apiOrigins: ["https://{shop}.shop.example"] });
const host = provider({ apiOrigins: ["https://{host}"] });
const two = provider({ apiOrigins: ["https://{team}.{region}.chat.example", "https://{team}.files.example"] });
const plain = provider({ apiOrigins: ["https://api.example.com"] });

describe("valuesOf()", () => {
  it("has each parameter of an origin once, in the order of the templates", () => {
    const namesOf = (of: typeof shop) => valuesOf(of, "open").map(({ name }) => name);
    expect([shop, two, plain].map(namesOf)).toEqual([["shop"], ["team", "region"], []]);
  });
});

describe("parseAnswers()", () => {
  it.each([
    [shop, { shop: "Acme" }, { shop: "acme" }],
    [shop, { shop: "https://acme.shop.example/admin" }, { shop: "acme" }],
    [shop, { shop: " acme.shop.example " }, { shop: "acme" }],
    [host, { host: "https://Social.Example/@me" }, { host: "social.example" }],
    [two, { team: "https://a.eu.chat.example", region: "us" }, { team: "a", region: "eu" }],
    [two, { team: "a", region: "eu" }, { team: "a", region: "eu" }],
    [plain, {}, {}],
  ])("%# makes %j into %j", (of, given, values) => {
    expect(parseAnswers(new Map(Object.entries(given)), of)).toEqual({ values });
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
    expect(parseAnswers(new Map(Object.entries(given)), of)).toHaveProperty("problem");
  });
});

describe("parseValues()", () => {
  it("takes no address for a label, as a command line means what it says", () => {
    expect(parseValues(new Map([["shop", "https://acme.shop.example"]]), shop)).toHaveProperty("problem");
  });

  it.each(["__proto__", "constructor", "other"])("takes no parameter %s", (name) => {
    const given = new Map([
      ["shop", "acme"],
      [name, "x"],
    ]);
    expect(parseValues(given, shop)).toMatchObject({ parameter: name });
  });
});

const zone = provider({
  apiOrigins: ["https://www.zoneapis.{region}", "https://{team}.{region}.zone.example", "https://{instance}"],
  connectionValues: [
    { name: "region", choices: [{ value: "com" }, { value: "eu" }, { value: "com.au" }], callbackParameter: "server" },
    { name: "instance", hosts: ["*.my.zone.example", "login.zone.example"], tokenMember: "instance_url" },
    { name: "realm", pattern: "\\d{1,9}", callbackParameter: "realmId" },
  ],
  oauth2: { tokenEndpoint: "https://accounts.zone.{region}/token" },
});
const told = (texts: Record<string, string>, known = {}) => withTold(known, new Map(Object.entries(texts)), zone);

describe("withTold()", () => {
  it.each([
    [{ region: "eu" }, { region: "eu" }],
    [{ region: "https://accounts.zone.com.au" }, { region: "com.au" }],
    [{ region: "https://Accounts.Zone.EU/oauth" }, { region: "eu" }],
    [{ instance: "https://acme.my.zone.example/" }, { instance: "acme.my.zone.example" }],
    [{ instance: "https://acme--dev.sandbox.my.zone.example" }, { instance: "acme--dev.sandbox.my.zone.example" }],
    [{ instance: "login.zone.example" }, { instance: "login.zone.example" }],
    [{ realm: "42" }, { realm: "42" }],
  ])("%# takes %j as %j", (texts, values) => {
    expect(told(texts)).toEqual(values);
  });

  it.each([
    { region: "xyz" },
    { region: "https://accounts.zone.xyz" },
    { region: "https://accounts.zone.eu.evil.example" },
    { region: "eu.evil.example" },
    { region: "__proto__" },
    { instance: "https://evil.example" },
    { instance: "https://my.zone.example" },
    { instance: ".my.zone.example" },
    { instance: "https://evilmy.zone.example" },
    { instance: "https://acme.my.zone.example.evil.example" },
    { instance: "https://acme.my.zone.example@evil.example" },
    { instance: "https://evil.example#.my.zone.example" },
    { instance: "https://evil.example?.my.zone.example" },
    { instance: "https://evil.example\\.my.zone.example" },
    { instance: "https://acme.my.zone.example:8443" },
    { instance: "https://127.0.0.1" },
    { instance: "http://[::1]/.my.zone.example" },
    { instance: "a..my.zone.example" },
    { instance: "-a.my.zone.example" },
    { instance: "a_b.my.zone.example" },
    { instance: "{team}.my.zone.example" },
    { instance: "\u0430cme.my.zone.example" },
    { instance: "acme\u3002my.zone.example" },
    { instance: "acme.my.zone.example\r\nx" },
    { instance: `${"a.".repeat(32_000)}my.zone.example` },
    { realm: "4\r\n2" },
    { realm: "../42" },
    { realm: "" },
    { realm: "1".repeat(64 * 1024) },
    { other: "x" },
  ])("%# takes nothing of %j", (texts) => {
    expect(told(texts, { team: "acme" })).toEqual({ team: "acme" });
  });

  it("changes no value that was not told, whatever address is told", () => {
    expect(told({ region: "https://evil.eu.zone.example" }, { team: "acme" })).toEqual({ team: "acme", region: "eu" });
  });
});

describe("parseValues() with choices and hosts", () => {
  it("asks for what nobody tells, and takes the rest from whoever stores a connection", () => {
    expect(parseValues(new Map([["team", "acme"]]), zone)).toEqual({ values: { team: "acme" } });
    expect(parseValues(new Map(), zone)).toMatchObject({ parameter: "team" });
    const all = { team: "acme", region: "eu", instance: "a.my.zone.example", realm: "1" };
    expect(parseValues(new Map(Object.entries(all)), zone)).toEqual({ values: all });
    expect(parseValues(new Map(Object.entries({ ...all, region: "us" })), zone)).toMatchObject({ parameter: "region" });
    expect(parseValues(new Map(Object.entries({ ...all, instance: "evil.example" })), zone)).toMatchObject({
      parameter: "instance",
      problem: "must be one of the hosts *.my.zone.example, login.zone.example",
    });
    expect(parseAnswers(new Map(Object.entries(all)), zone)).toMatchObject({ parameter: "region" });
  });
});
