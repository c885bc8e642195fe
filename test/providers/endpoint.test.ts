import { describe, expect, it } from "vitest";
import { endpointProblem, fillEndpoint } from "../../src/providers/endpoint.js";

const policy = { allowLoopback: false, parameters: new Set(["shop", "region", "host"]) };

describe("endpointProblem()", () => {
  it.each([
    "https://example.com",
    "https://example.com/token?a=b",
    "https://{shop}.myshopify.com",
    "https://{shop}.myshopify.com/admin/oauth/authorize",
    "https://{shop}.myshopify.com:8443/authorize?a=b&c=%20",
    "https://{shop}.{region}.example.com/token",
    "https://{host}/token",
  ])("accepts %s", (text) => {
    expect(endpointProblem(text, policy)).toBeUndefined();
  });

  it.each([
    "http://example.com/token",
    "https://user@example.com/token",
    "https://example.com/token#x",
    "https://example.com/{shop}/token",
    "https://example.com/token?shop={shop}",
    "https://example.com/token?shop=}",
    "http://{shop}.myshopify.com/token",
    "https://{other}.myshopify.com/token",
    "https://{shop}.com/token",
    "https://x-{shop}.myshopify.com/token",
    "https://{shop}.{shop}.myshopify.com/token",
    "https://{shop}@evil.example.com/token",
    "https://{shop}.MyShopify.com/token",
    "https://{shop}.myshopify.com/{region}",
    "https://{shop}.myshopify.com/token?a={region}",
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
      "{other} is not a parameter of apiOrigins",
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
  ])("%s with %j", (template, parameters, url) => {
    expect(fillEndpoint(template, parameters)).toBe(url);
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
    ["https://example.com/{shop}", { shop: "acme" }],
    ["https://{shop}.com/token", { shop: "acme" }],
  ])("refuses %s with %j", (template, parameters) => {
    expect(fillEndpoint(template, parameters)).toBeUndefined();
  });
});
