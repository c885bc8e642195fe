import { describe, expect, it } from "vitest";
import { freeHostParameter } from "../../src/oauth/token-endpoint.js";

describe("freeHostParameter()", () => {
  const none = {
    authorizationEndpoint: undefined,
    tokenEndpoint: undefined,
    refreshEndpoint: undefined,
    revocationEndpoint: undefined,
  };
  const at = (endpoints: object, originParameters = {}) =>
    freeHostParameter({ ...none, ...endpoints }, { originParameters });

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

  it("takes no inherited member for a bound parameter", () => {
    expect(at({ tokenEndpoint: "https://{constructor}/x" })).toBe("constructor");
  });
});
