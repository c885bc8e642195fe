import { describe, expect, it } from "vitest";
import { RelayError } from "../../src/model/errors.js";
import { fillPlaceholders } from "../../src/providers/credential.js";
import { providerFrom } from "./provider-for-test.js";

const both = providerFrom({ urlPlaceholders: ["access_token", "id_token"] });
const idOnly = providerFrom({ urlPlaceholders: ["id_token"] });
const tokens = { access_token: "a/b?c&d", id_token: "i.d.t" };

describe("fillPlaceholders()", () => {
  it("leaves everything as it is for a provider that lists none", () => {
    const path = "/x/%7B%7Bid_token%7D%7D?t={{access_token}}";
    expect(fillPlaceholders(path, providerFrom({}), tokens)).toBe(path);
  });

  it.each([
    ["/x?t={{access_token}}&u={{id_token}}", "/x?t=a%2Fb%3Fc%26d&u=i.d.t"],
    ["/x/%7B%7Bid_token%7D%7D/y", "/x/i.d.t/y"],
    ["/x?t=%7B%7Baccess_token%7D%7D", "/x?t=a%2Fb%3Fc%26d"],
    ["/x?t={{client_secret}}&u={id_token}&v={{ id_token }}&w={{ID_TOKEN}}", undefined],
    ["/x?t={{id_token}", undefined],
  ])("%s", (path, expected) => {
    expect(fillPlaceholders(path, both, tokens)).toBe(expected ?? path);
  });

  it("fills only what the definition lists", () => {
    expect(fillPlaceholders("/x?t={{access_token}}&u={{id_token}}", idOnly, tokens)).toBe(
      "/x?t={{access_token}}&u=i.d.t",
    );
  });

  it("does not expand what a token holds", () => {
    const nested = { access_token: "x", id_token: "{{access_token}}$&" };
    expect(fillPlaceholders("/{{id_token}}", both, nested)).toBe("/%7B%7Baccess_token%7D%7D%24%26");
  });

  it("fails when the connection has no id token", () => {
    const fill = () => fillPlaceholders("/{{id_token}}", both, { access_token: "x", id_token: undefined });
    expect(fill).toThrow(RelayError);
    expect(fill).toThrow("id_token");
  });
});
