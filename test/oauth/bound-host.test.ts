import { describe, expect, it } from "vitest";
import { freeHostParameter } from "../../src/oauth/token-endpoint.js";
import type { OAuth2, Provider } from "../../src/providers/provider.js";
import { providerFrom } from "../providers/provider-for-test.js";

const OAUTH2 = providerFrom({ oauth2: {} }).oauth2 as OAuth2;

describe("freeHostParameter()", () => {
  const none = {
    authorizationEndpoint: undefined,
    tokenEndpoint: undefined,
    refreshEndpoint: undefined,
    revocationEndpoint: undefined,
  };
  const at = (endpoints: object, originParameters = {}, connectionValues: Provider["connectionValues"] = []) =>
    freeHostParameter(
      {
        ...{ kind: "oauth2", hostTemplates: [], oauth1: undefined, connectionValues },
        oauth2: { ...OAUTH2, ...none, ...endpoints },
      },
      { originParameters },
    );

  it.each(["authorizationEndpoint", "tokenEndpoint", "refreshEndpoint", "revocationEndpoint"])(
    "finds a free host in %s",
    (name) => {
      for (const endpoint of ["https://{host}/x", "https://{host}", "https://{host}:8443/x", "https://{host}?x"]) {
        expect(at({ [name]: endpoint })).toBe("host");
        expect(at({ [name]: endpoint }, { other: "a.example" })).toBe("host");
        expect(at({ [name]: endpoint }, { host: "a.example" })).toBeUndefined();
      }
    },
  );

  it("finds none where the provider's own domain follows, or nothing is a parameter", () => {
    expect(at({ tokenEndpoint: "https://{shop}.shop.example/x" })).toBeUndefined();
    expect(at({ tokenEndpoint: "https://a.example/{host}" })).toBeUndefined();
  });

  it("finds none where the definition says which hosts it can be", () => {
    for (const value of [{ choices: [{ value: "a.example.com" }] }, { hosts: ["*.example.com"] }]) {
      const members = { apiOrigins: ["https://{host}"], connectionValues: [{ name: "host", ...value }] };
      expect(at({ tokenEndpoint: "https://{host}/x" }, {}, providerFrom(members).connectionValues)).toBeUndefined();
    }
  });

  it("finds a free host among the origins where the tokens are the application's own", () => {
    const members = { apiOrigins: ["https://{host}", "https://{shop}.shop.example"] };
    const { connectionValues, hostTemplates } = providerFrom(members);
    const oauth2 = { ...OAUTH2, ...none, tokenEndpoint: "https://auth.shop.example/token" };
    const parameterOf = (kind: Provider["kind"], originParameters = {}) =>
      freeHostParameter({ kind, oauth2, oauth1: undefined, connectionValues, hostTemplates }, { originParameters });
    expect(parameterOf("client_credentials")).toBe("host");
    expect(parameterOf("client_credentials", { host: "a.example" })).toBeUndefined();
    expect(parameterOf("oauth1")).toBe("host");
    expect(parameterOf("oauth2")).toBeUndefined();
  });

  it("takes no inherited member for a bound parameter", () => {
    expect(at({ tokenEndpoint: "https://{constructor}/x" })).toBe("constructor");
  });
});
