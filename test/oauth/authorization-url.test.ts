import { describe, expect, it } from "vitest";
import { authorizationUrlFrom } from "../../src/oauth/start.js";

describe("authorizationUrlFrom()", () => {
  const request = {
    endpoint: "https://as.example/authorize",
    clientId: "c&d",
    redirectUri: "https://relay.example/oauth/callback",
    scope: "",
    state: "s",
    codeChallenge: undefined,
  };
  const habits = { clientIdParameter: "client_id", authorizationParameters: {} };

  it("writes what RFC 6749 section 4.1.1 asks for, and no more", () => {
    expect(authorizationUrlFrom(request, habits)).toBe(
      "https://as.example/authorize?response_type=code&client_id=c%26d&redirect_uri=https%3A%2F%2Frelay.example%2Foauth%2Fcallback&state=s",
    );
  });

  it("keeps what the endpoint has, and lets nothing stand twice", () => {
    const endpoint = "https://as.example/authorize?tenant=1&state=x&client_id=y";
    const { searchParams } = new URL(authorizationUrlFrom({ ...request, endpoint }, habits));
    expect(searchParams.get("tenant")).toBe("1");
    expect(searchParams.getAll("state")).toEqual(["s"]);
    expect(searchParams.getAll("client_id")).toEqual(["c&d"]);
  });

  it.each([
    [{ scope: 'a "b"&state=x#y' }, {}, { scope: 'a "b"&state=x#y' }],
    [{ codeChallenge: "h" }, {}, { code_challenge: "h", code_challenge_method: "S256" }],
    [{}, { clientIdParameter: "client_key" }, { client_key: "c&d" }],
    [{}, { authorizationParameters: { access_type: "offline" } }, { access_type: "offline" }],
  ])("%# adds what request and definition want", (more, other, expected) => {
    const { searchParams, hash } = new URL(authorizationUrlFrom({ ...request, ...more }, { ...habits, ...other }));
    expect(Object.fromEntries(searchParams)).toMatchObject(expected);
    expect(searchParams.getAll("state")).toEqual(["s"]);
    expect(hash).toBe("");
  });
});
