import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { placeCredential } from "../../src/providers/credential.js";
import type { HeaderPairs, Provider } from "../../src/providers/provider.js";
import { Secret } from "../../src/sealing/seal.js";
import { providerFrom } from "./provider-for-test.js";

const TOKEN = "CANARY_t0ken/+=";
const bearer = providerFrom({ defaultHeaders: { "User-Agent": "relay", Accept: "application/json" } });
const apiKey = providerFrom({ credential: { header: "X-Api-Key" } });
const query = providerFrom({ credential: { queryParameter: "access_token" } });

function place(provider: Provider, headers: HeaderPairs, path = "/", defaults: HeaderPairs = []) {
  const { headers: flat, path: sent } = placeCredential({
    provider,
    headers,
    defaults,
    path,
    texts: [new Secret(TOKEN)],
    values: {},
  });
  return { headers: flat, path: sent };
}

const attempts: HeaderPairs = [
  ["Authorization", "Bearer ATT"],
  ["AUTHORIZATION", "x"],
  ["Proxy-Authorization", "Basic x"],
  ["Cookie", "a=b"],
  ["x-api-KEY", "ATT"],
];
/** What CGI takes for the same. */
const ALIKE: HeaderPairs = [
  ["x_api_key", "ATT"],
  ["X-API_Key", "ATT"],
];

describe("placeCredential() in a header", () => {
  it("places exactly one, last, and keeps the rest as written", () => {
    expect(place(bearer, [["X-A", "1"], ...attempts], "/x?access_token=PAGE")).toEqual({
      headers: [
        ...["X-A", "1"],
        ...["x-api-KEY", "ATT"],
        ...["user-agent", "relay"],
        ...["accept", "application/json"],
        ...["authorization", `Bearer ${TOKEN}`],
      ],
      path: "/x?access_token=PAGE",
    });
  });

  it("drops the caller's Authorization also where the credential is another header", () => {
    expect(place(apiKey, [...attempts, ...ALIKE]).headers).toEqual(["x-api-key", TOKEN]);
  });

  it("prefers the caller's headers to the definition's, and those to the relay's", () => {
    const defaults: HeaderPairs = [
      ["user-agent", "relay-default"],
      ["accept", "*/*"],
      ["x-default", "1"],
      ["authorization", "never"],
    ];
    expect(place(bearer, [["USER-AGENT", "mine"]], "/", defaults).headers).toEqual([
      ...["USER-AGENT", "mine"],
      ...["accept", "application/json"],
      ...["x-default", "1"],
      ...["authorization", `Bearer ${TOKEN}`],
    ]);
  });
});

describe("placeCredential() in the query", () => {
  const own = "access_token=CANARY_t0ken%2F%2B%3D";

  it.each([
    ["/x", `/x?${own}`],
    ["/x?", `/x?${own}`],
    ["/x?a=1", `/x?a=1&${own}`],
    ["/x?a=1&&b='%20+", `/x?a=1&&b='%20+&${own}`],
    ["/x?access_token=ATT", `/x?${own}`],
    ["/x?a=1&access_token=ATT&b=2&access_token=ATT2", `/x?a=1&b=2&${own}`],
    ["/x?access_token", `/x?${own}`],
    ["/x?Access_Token=ATT", `/x?${own}`],
    ["/x?%61ccess_token=ATT", `/x?${own}`],
    ["/x?access%5Ftoken=ATT&access%5ftoken=ATT", `/x?${own}`],
    ["/x?%41%43CESS_TOKE%4e=ATT", `/x?${own}`],
    ["/x?my_access_token=1&access_token2=2", `/x?my_access_token=1&access_token2=2&${own}`],
    ["/x?a=access_token=1", `/x?a=access_token=1&${own}`],
    ["/x?a=%zz&%=1", `/x?a=%zz&%=1&${own}`],
  ])("%s", (path, expected) => {
    expect(place(query, attempts, path)).toEqual({ headers: ["x-api-KEY", "ATT"], path: expected });
  });
});

describe("placeCredential() result", () => {
  it("never prints the token", () => {
    for (const provider of [bearer, query]) {
      const placed = placeCredential({
        provider,
        headers: [],
        defaults: [],
        path: "/",
        texts: [new Secret(TOKEN)],
        values: {},
      });
      for (const text of [JSON.stringify(placed), inspect(placed), inspect({ ...placed }), JSON.stringify([placed])]) {
        expect(text).not.toContain("CANARY");
      }
    }
  });
});
