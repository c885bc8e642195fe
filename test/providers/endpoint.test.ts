import { describe, expect, it } from "vitest";
import { endpointProblem, fillEndpoint } from "../../src/providers/endpoint.js";
import { providerFrom } from "./provider-for-test.js";

const policy = { allowLoopback: false, names: new Set(["shop", "region", "host"]), bounds: new Map() };

describe("endpointProblem()", () => {
  it.each([
    "https://example.com",
    "https://example.com/token?a=b",
    "https://{shop}.myshopify.com",
    "https://{shop}.myshopify.com/admin/oauth/authorize",
    "https://{shop}.myshopify.com:8443/authorize?a=b&c=%20",
    "https://{shop}.{region}.example.com/token",
    "https://{host}/token",
    "https://example.com/{shop}/token",
    "https://example.com/token?shop={shop}",
    "https://x-{shop}.myshopify.com/{region}/token?a={region}",
  ])("accepts %s", (text) => {
    expect(endpointProblem(text, policy)).toBeUndefined();
  });

  it.each([
    "http://example.com/token",
    "https://user@example.com/token",
    "https://example.com/token#x",
    "https://example.com/token?shop=}",
    "https://example.com/{other}/token",
    "https://example.com/../{shop}/token",
    "http://example.com/{shop}/token",
    "https://example.com/{shop}#x",
    "http://{shop}.myshopify.com/token",
    "https://{other}.myshopify.com/token",
    "https://{shop}.com/token",
    "https://-{shop}.myshopify.com/token",
    "https://{shop}.{shop}.myshopify.com/token",
    "https://{shop}@evil.example.com/token",
    "https://{shop}.MyShopify.com/token",
    "https://{shop}.myshopify.com/token#x",
    "https://{shop}.myshopify.com/a/../token",
    "https://{shop}.myshopify.com/a b",
    "https://{shop}.myshopify.com\\token",
    "https://{shop}.{region}/token",
    "{shop}",
  ])("refuses %s", (text) => {
    expect(endpointProblem(text, policy)).toBeTypeOf("string");
  });

  it("says which parameter is unknown", () => {
    expect(endpointProblem("https://{other}.example.com/token", policy)).toBe(
      "{other} is neither a connection value nor a parameter of apiOrigins",
    );
  });
});

describe("fillEndpoint()", () => {
  const shop = "https://{shop}.myshopify.com/admin/oauth/authorize?a=b";

  it.each([
    ["https://example.com/token", {}, "https://example.com/token"],
    [shop, { shop: "acme" }, "https://acme.myshopify.com/admin/oauth/authorize?a=b"],
    [shop, { shop: "acme", other: "x" }, "https://acme.myshopify.com/admin/oauth/authorize?a=b"],
    ["https://{shop}.{region}.example.com:8443", { shop: "a", region: "eu" }, "https://a.eu.example.com:8443"],
    ["https://{host}/token", { host: "shop.example.org" }, "https://shop.example.org/token"],
    [
      "https://example.com/{shop}/token?a={region}",
      { shop: "a/..é", region: "&b=c" },
      "https://example.com/a%2F..%C3%A9/token?a=%26b%3Dc",
    ],
  ])("%s with %j", (template, parameters, url) => {
    expect(fillEndpoint(template, parameters, [])).toBe(url);
  });

  it("takes the default of a value that the connection is older than", () => {
    const { connectionValues } = providerFrom({
      apiOrigins: ["https://api.{region}"],
      connectionValues: [
        {
          name: "region",
          defaultValue: "example.com",
          choices: [{ value: "example.com" }, { value: "example.eu" }],
        },
      ],
    });
    const fill = (texts: Readonly<Record<string, string>>) =>
      fillEndpoint("https://app.{region}/token", texts, connectionValues);
    expect(fill({})).toBe("https://app.example.com/token");
    expect(fill({ region: "example.eu" })).toBe("https://app.example.eu/token");
  });

  it.each([
    [shop, {}],
    [shop, { shop: "" }],
    [shop, { shop: "ACME" }],
    [shop, { shop: "a.b" }],
    [shop, { shop: "evil.com/" }],
    [shop, { shop: "evil.com#" }],
    [shop, { shop: "evil.com?" }],
    [shop, { shop: "evil.com\\" }],
    [shop, { shop: "evil.com:443" }],
    [shop, { shop: "user@evil" }],
    [shop, { shop: "acme\n" }],
    [shop, { shop: "-acme" }],
    [shop, { shop: "a_b" }],
    [shop, { shop: "{shop}" }],
    [shop, { shop: "$&" }],
    [shop, { shop: "xn--" }],
    [shop, { shop: "xn--a" }],
    [shop, Object.create({ shop: "acme" }) as Record<string, string>],
    [shop, { shop: "\u212aelvin" }],
    [shop, { shop: "a".repeat(64) }],
    ["https://{shop}.{region}.example.com/token", { shop: "{region}", region: "eu" }],
    ["https://{shop}.{region}.example.com/token", { shop: "a.b", region: "" }],
    ["https://{host}/token", { host: "localhost" }],
    ["https://{host}/token", { host: "127.0.0.1" }],
    ["https://{host}/token", { host: "shop.example.org:8443" }],
    ["https://{host}/token", { host: "shop.example.org." }],
    ["https://{constructor}.example.com/token", {}],
    ["https://example.com/{shop}/x", {}],
    ["https://example.com/{shop}/x", { shop: "" }],
    ["https://example.com/{shop}/x", { shop: "." }],
    ["https://example.com/{shop}/x", { shop: ".." }],
    ["https://{shop}.myshopify.com/{region}", { shop: "acme", region: ".." }],
    ["https://{shop}.com/token", { shop: "acme" }],
  ])("refuses %s with %j", (template, parameters) => {
    expect(fillEndpoint(template, parameters, [])).toBeUndefined();
  });
});
