import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { parseTokenResponse, TokenResponseError, tokenResponseFrom } from "../../src/oauth/token-response.js";

const parse = (members: object) => parseTokenResponse(JSON.stringify({ access_token: "token", ...members }));

/** The message of the TokenResponseError; nothing of it may quote the input. */
function problemOf(text: string): string {
  try {
    parseTokenResponse(text);
  } catch (error) {
    expect(error).toBeInstanceOf(TokenResponseError);
    expect(inspect(error)).not.toContain("CANARY");
    return (error as Error).message;
  }
  return "none";
}

describe("parseTokenResponse() of a wrapped token response", () => {
  it.each([
    ['{"status":0,"body":{"access_token":"a"}}', "body"],
    ['{"access_token":"other","x":{"y":{"access_token":"a"}}}', "x.y"],
    ['{"access_token":"a"}', "body"],
  ])("reads %s by the path %s", (text, member) => {
    expect(parseTokenResponse(text, member).accessToken.reveal()).toBe("a");
  });

  it("takes no token from beside the wrapper", () => {
    expect(() => parseTokenResponse('{"access_token":"bot","authed_user":{"id":"U"}}', "authed_user")).toThrow(
      "access_token is missing",
    );
  });
});

describe("parseTokenResponse()", () => {
  it.each(["api_key", "basic", "client_credentials"])("takes %s, which tells rows apart, for no token type", (word) => {
    expect(parse({ token_type: word }).tokenType).toBe("Bearer");
    expect(parse({ token_type: "mac" }).tokenType).toBe("mac");
  });

  it.each([
    ["", "is not valid JSON"],
    ["CANARY", "is not valid JSON"],
    ['{"access_token":"CANARY"', "is not valid JSON"],
    ["access_token=CANARY&token_type=bearer", "is not valid JSON"],
    ['{"access_token":"CANARY"} CANARY', "is not valid JSON"],
    ['["CANARY"]', "must be a JSON object"],
    ['"CANARY"', "must be a JSON object"],
    ["null", "must be a JSON object"],
    ["7", "must be a JSON object"],
    ["{}", "access_token is missing"],
    ['{"access_token":null}', "access_token is missing"],
    ['{"access_token":""}', "access_token is missing"],
    ['{"Access_Token":"CANARY"}', "access_token is missing"],
    ['{"error":"invalid_grant","error_description":"CANARY"}', "this is an error response"],
    ['{"access_token":["CANARY"]}', "access_token must be a string"],
    ['{"access_token":123}', "access_token must be a string"],
    ['{"access_token":"CANARY x"}', "access_token must be printable ASCII"],
    ['{"access_token":"CANARY\\r\\nX: y"}', "access_token must be printable ASCII"],
    ['{"access_token":"CANARY\\n"}', "access_token must be printable ASCII"],
    ['{"access_token":"CANARY\\u0000"}', "access_token must be printable ASCII"],
    ['{"access_token":"CANARY\\u007f"}', "access_token must be printable ASCII"],
    ['{"access_token":"CANARYé"}', "access_token must be printable ASCII"],
    [JSON.stringify({ access_token: "CANARY".padEnd(16_385, "x") }), "access_token must be at most 16384"],
    ['{"access_token":"t","refresh_token":{"CANARY":1}}', "refresh_token must be a string"],
    ['{"access_token":"t","refresh_token":"CANARY\\t"}', "refresh_token must be printable ASCII"],
    ['{"access_token":"t","id_token":"CANARY y"}', "id_token must be printable ASCII"],
    ['{"access_token":"t","token_type":["CANARY"]}', "token_type must be a string"],
    ['{"access_token":"t","token_type":"CANARY\\n"}', "token_type must be printable ASCII"],
    ['{"access_token":"t","scope":{"CANARY":1}}', "scope must be a string"],
    ['{"access_token":"t","scope":["CANARY",1]}', "scope must be a string or a list"],
    ['{"access_token":"t","scope":"CANARY\\n"}', "scope must be printable ASCII"],
  ])("refuses %j", (text, problem) => expect(problemOf(text)).toContain(problem));

  it.each([
    [3600, 3600],
    ["3600", 3600],
    [" 3600 ", 3600],
    [3599.9, 3599],
    ["3599.9", 3599],
    [1, 1],
    [0.5, undefined],
    [0, undefined],
    [-1, undefined],
    ["-1", undefined],
    [1e12, 31_536_000],
    ["999999999999999999", 31_536_000],
    [31_536_001, 31_536_000],
    [null, undefined],
    [undefined, undefined],
    ["", undefined],
    ["abc", undefined],
    ["0x10", undefined],
    ["1e3", undefined],
    ["Infinity", undefined],
    [true, undefined],
    [[3600], undefined],
    [{}, undefined],
  ])("reads expires_in %j of a provider's answer as %j", (value, seconds) => {
    expect(tokenResponseFrom({ access_token: "token", expires_in: value }).expiresInS).toBe(seconds);
  });

  it.each([
    [3600, 3600],
    [" 3599.9 ", 3599],
    [0, undefined],
    ["0", undefined],
    [0.5, undefined],
    [1e12, 31_536_000],
    [null, undefined],
    ["", undefined],
  ])("reads expires_in %j that somebody stores as %j", (value, seconds) => {
    expect(parse({ expires_in: value }).expiresInS).toBe(seconds);
  });

  it.each([-5, -0.5, "-5", "abc", "1h", true, [3600], {}, "9".repeat(19)])(
    "refuses expires_in %j from somebody who stores it",
    (value) => expect(() => parse({ expires_in: value })).toThrow("expires_in must be a number of seconds, 0 or more"),
  );

  it("clamps a number too large for a double", () => {
    expect(parseTokenResponse('{"access_token":"t","expires_in":1e999}').expiresInS).toBe(31_536_000);
  });

  it.each([undefined, null, ""])("takes refresh_token and id_token %j as absent", (value) => {
    const { refreshToken, idToken } = parse({ refresh_token: value, id_token: value });
    expect([refreshToken, idToken]).toEqual([undefined, undefined]);
  });

  it.each([
    ["repo user", "repo user"],
    [["chat:read", "bits:read"], "chat:read bits:read"],
    ["repo,user", "repo,user"],
    [[], ""],
    ["", ""],
    [null, ""],
    [undefined, ""],
  ])("keeps scope %j as %j", (scope, text) => expect(parse({ scope }).scope).toBe(text));

  it.each([
    ["bearer", "bearer"],
    [undefined, "Bearer"],
    [null, "Bearer"],
    ["", "Bearer"],
  ])("keeps token_type %j as %j", (given, tokenType) => expect(parse({ token_type: given }).tokenType).toBe(tokenType));

  it("takes every visible character, the longest token, a byte order mark and unknown members", () => {
    const visible = String.fromCharCode(...Array.from({ length: 94 }, (_, at) => at + 0x21));
    expect(parse({ access_token: visible }).accessToken.reveal()).toBe(visible);
    expect(parse({ access_token: "x".repeat(16_384) }).accessToken.reveal()).toHaveLength(16_384);
    expect(parse({ refresh_token: "with space" }).refreshToken?.reveal()).toBe("with space");
    expect(parseTokenResponse('\uFEFF{"access_token":"t","x":{"y":[1]}}').accessToken.reveal()).toBe("t");
  });

  it("does not print its tokens", () => {
    const response = parse({ access_token: "CANARY1", refresh_token: "CANARY2", id_token: "CANARY3" });
    expect(inspect(response) + JSON.stringify(response)).not.toContain("CANARY");
  });
});
