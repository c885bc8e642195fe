import { describe, expect, it } from "vitest";
import {
  type CodeHabits,
  codeRequestFrom,
  type OAuthClient,
  type RefreshHabits,
  refreshRequestFrom,
  type TokenRequest,
} from "../../src/oauth/token-request.js";
import { Secret } from "../../src/sealing/seal.js";

const client: OAuthClient = { clientId: "the client", clientSecret: new Secret("s&cret") };
const plain: CodeHabits & RefreshHabits = {
  clientAuthentication: "client_secret_basic",
  clientIdParameter: "client_id",
  rawClientSecretBasic: false,
  tokenRequestFormat: "form",
  tokenParameters: {},
  codeParameters: {},
  refreshParameters: {},
};
const grant = {
  code: new Secret("c+de"),
  redirectUri: "https://relay.example/callback",
  codeVerifier: new Secret("v"),
};

const refresh = (habits: Partial<RefreshHabits>, by = client) =>
  refreshRequestFrom(by, new Secret("r&t"), { ...plain, ...habits });
const code = (habits: Partial<CodeHabits>, by = client) => codeRequestFrom(by, grant, { ...plain, ...habits });

function fieldOf({ headers }: TokenRequest, name: string): string | undefined {
  const at = headers.indexOf(name);
  return at === -1 ? undefined : headers[at + 1];
}

/** The parameters in the order they are sent. */
function sentIn(request: TokenRequest): Record<string, string> {
  const text = Buffer.from(request.body).toString();
  if (fieldOf(request, "content-type") === "application/json") return JSON.parse(text);
  expect(fieldOf(request, "content-type")).toBe("application/x-www-form-urlencoded");
  return Object.fromEntries(new URLSearchParams(text));
}

const REFRESH = { grant_type: "refresh_token", refresh_token: "r&t" };
const CODE = {
  grant_type: "authorization_code",
  code: "c+de",
  redirect_uri: "https://relay.example/callback",
  code_verifier: "v",
};

describe("a token request", () => {
  it("holds what RFC 6749 names and nothing else", () => {
    expect(sentIn(refresh({}))).toEqual(REFRESH);
    expect(sentIn(code({}))).toEqual(CODE);
    expect(sentIn(codeRequestFrom(client, { ...grant, codeVerifier: undefined }, plain))).not.toHaveProperty(
      "code_verifier",
    );
    expect(fieldOf(refresh({}), "accept")).toBe("application/json");
  });

  it("authenticates the client in one way", () => {
    const basic = fieldOf(refresh({}), "authorization")?.replace("Basic ", "") ?? "";
    expect(Buffer.from(basic, "base64").toString()).toBe("the+client:s%26cret");
    const post = refresh({ clientAuthentication: "client_secret_post", clientIdParameter: "client_key" });
    expect(sentIn(post)).toEqual({ ...REFRESH, client_key: "the client", client_secret: "s&cret" });
    const none = refresh({ clientAuthentication: "none" });
    expect(sentIn(none)).toEqual({ ...REFRESH, client_id: "the client" });
    for (const request of [post, none]) expect(fieldOf(request, "authorization")).toBeUndefined();
    const publicClient = refresh({}, { clientId: "public", clientSecret: undefined });
    expect(sentIn(publicClient)).toEqual({ ...REFRESH, client_id: "public" });
  });

  it("is a JSON object of strings where the provider wants that", () => {
    const habits = { tokenRequestFormat: "json", clientAuthentication: "client_secret_post" } as const;
    const request = refresh({ ...habits, tokenParameters: { expires_in: "3600" } });
    expect(fieldOf(request, "content-type")).toBe("application/json");
    expect(JSON.parse(Buffer.from(request.body).toString())).toEqual({
      ...REFRESH,
      expires_in: "3600",
      client_id: "the client",
      client_secret: "s&cret",
    });
    expect(sentIn(code({ tokenRequestFormat: "json" }))).toEqual(CODE);
    expect(fieldOf(code({ tokenRequestFormat: "json" }), "authorization")).toMatch(/^Basic /);
  });

  it.each([
    ["adds those of every request", { tokenParameters: { a: "1" } }, { a: "1" }, { a: "1" }],
    ["adds those of a code", { codeParameters: { a: "1" } }, { a: "1" }, {}],
    ["adds those of a refresh", { refreshParameters: { scope: "offline" } }, {}, { scope: "offline" }],
    [
      "prefers those of the grant",
      { tokenParameters: { a: "1" }, codeParameters: { a: "2" }, refreshParameters: { a: "" } },
      { a: "2" },
      {},
    ],
    [
      "replaces grant_type",
      { codeParameters: { grant_type: "web" }, refreshParameters: { grant_type: "refresh" } },
      { grant_type: "web" },
      { grant_type: "refresh" },
    ],
    ["leaves out what is empty", { tokenParameters: { a: "" } }, {}, {}],
    [
      "fills in what is empty for every request",
      { tokenParameters: { a: "" }, codeParameters: { a: "1" } },
      { a: "1" },
      {},
    ],
  ])("%s", (_what, habits: Partial<CodeHabits & RefreshHabits>, ofCode, ofRefresh) => {
    expect(sentIn(code(habits))).toEqual({ ...CODE, ...ofCode });
    expect(sentIn(refresh(habits))).toEqual({ ...REFRESH, ...ofRefresh });
  });

  it("says type instead of grant_type where a draft of OAuth 2.0 has it", () => {
    const habits = {
      codeParameters: { type: "web_server", grant_type: "" },
      refreshParameters: { type: "refresh", grant_type: "" },
    };
    const { grant_type: _code, ...redeemed } = CODE;
    expect(sentIn(code(habits))).toEqual({ ...redeemed, type: "web_server" });
    expect(sentIn(refresh(habits))).toEqual({ refresh_token: "r&t", type: "refresh" });
  });
});
