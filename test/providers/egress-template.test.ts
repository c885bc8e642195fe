import { describe, expect, it } from "vitest";
import { decideBoundOrigin, decideEgress, type EgressAllowed } from "../../src/providers/egress.js";
import type { Provider } from "../../src/providers/provider.js";
import { providerFrom } from "./provider-for-test.js";

describe("decideEgress() templates and decideBoundOrigin()", () => {
  const zendesk = providerFrom({ apiOrigins: ["https://{subdomain}.zendesk.com"] });
  const shop = providerFrom({ apiOrigins: ["https://{host}"] });
  const bound = (url: string, provider: Provider, stored: Record<string, string>) =>
    decideBoundOrigin(decideEgress(url, provider) as EgressAllowed, stored);

  it("captures the parameter and names the template as the rule", () => {
    expect(decideEgress("https://ACME.zendesk.com/api/v2/users.json?a=1", zendesk)).toEqual({
      result: "allow",
      rule: "https://{subdomain}.zendesk.com",
      origin: "https://acme.zendesk.com",
      path: "/api/v2/users.json?a=1",
      parameters: { subdomain: "acme" },
    });
  });

  it.each([
    "https://zendesk.com/",
    "https://.zendesk.com/",
    "https://a.b.zendesk.com/",
    "https://a_b.zendesk.com/",
    "https://-a.zendesk.com/",
    "https://a-.zendesk.com/",
    `https://${"a".repeat(64)}.zendesk.com/`,
    "https://acme.zendesk.com.evil.test/",
    "https://acme.zendeskxcom/",
    "https://acme.zendesk.com:8443/",
    "https://acme.zendesk.com./",
    "https://evil.test/.zendesk.com/",
    "https://evil.test#.zendesk.com/",
    "http://acme.zendesk.com/",
    "https://xn--.zendesk.com/",
  ])("refuses %s", (url) => {
    expect(decideEgress(url, zendesk).result).toBe("deny");
  });

  it("binds the host to the connection (U40)", () => {
    expect(bound("https://a-shop.zendesk.com/", zendesk, { subdomain: "a-shop" }).result).toBe("allow");
    expect(bound("https://a-shop.zendesk.com/", zendesk, { subdomain: "A-Shop" }).result).toBe("allow");
    expect(bound("https://b-shop.zendesk.com/", zendesk, { subdomain: "a-shop" })).toMatchObject({
      result: "deny",
      rule: "origin_not_bound",
    });
  });

  it("refuses a parameter that is missing, empty or inherited", () => {
    expect(bound("https://acme.zendesk.com/", zendesk, {}).result).toBe("deny");
    expect(bound("https://acme.zendesk.com/", zendesk, { subdomain: "" }).result).toBe("deny");
    expect(bound("https://acme.zendesk.com/", zendesk, Object.create({ subdomain: "acme" })).result).toBe("deny");
    expect(bound("https://k.zendesk.com/", zendesk, { subdomain: "\u212a" }).result).toBe("deny");
  });

  it("binds a complete host name", () => {
    expect(bound("https://git.example.org/api", shop, { host: "git.example.org" }).result).toBe("allow");
    expect(bound("https://git.example.net/api", shop, { host: "git.example.org" }).result).toBe("deny");
    for (const url of ["https://localhost/", "https://git/", "https://git.example.org:8443/", "https://1.2.3.4/"]) {
      expect(decideEgress(url, shop).result).toBe("deny");
    }
    expect(decideEgress(`https://${"a.".repeat(126)}com/`, shop).result).toBe("deny");
  });

  it("needs no binding for an exact origin", () => {
    expect(bound("https://api.example.com/x", providerFrom({}), {}).result).toBe("allow");
  });
});
