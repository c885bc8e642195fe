import { describe, expect, it } from "vitest";
import { decideTokenAnswer, parseRetryAfter, type TokenAnswerHabits } from "../../src/oauth/token-answer.js";

const NOW = Date.parse("2026-11-27T00:00:00Z");
const decideWith = (habits: Partial<TokenAnswerHabits>, statusCode: number, body: string | Buffer) =>
  decideTokenAnswer({ statusCode, body: Buffer.from(body as string), retryAfter: "" }, NOW, {
    tokenResponseMember: undefined,
    tokenErrorMember: undefined,
    expiresAtMember: undefined,
    refreshEndedErrors: new Set(),
    ...habits,
  });
const decide = (statusCode: number, body: string | Buffer, tokenResponseMember?: string) =>
  decideWith({ tokenResponseMember }, statusCode, body);
const error = (code: string) => JSON.stringify({ error: code, error_description: "CANARY refresh token" });
const tokens = (members: object) => JSON.stringify({ access_token: "new-access", ...members });

describe("decideTokenAnswer()", () => {
  it.each([
    ["invalid_grant", 400, error("invalid_grant"), "ended"],
    ["bad_refresh_token of a provider that does not list it", 200, error("bad_refresh_token"), "refused"],
    ["invalid_grant with status 401", 401, error("invalid_grant"), "ended"],
    ["invalid_grant as a form", 400, "error=invalid_grant&error_description=x", "ended"],
    ["invalid_client", 401, error("invalid_client"), "misconfigured"],
    ["unauthorized_client", 400, error("unauthorized_client"), "refused"],
    ["401 without a body", 401, "", "refused"],
    ["401 with JSON that is no error", 401, '{"message":"Unauthorized"}', "refused"],
    ["401 with HTML", 401, "<html>", "failed"],
    ["GitHub's incorrect_client_credentials", 200, error("incorrect_client_credentials"), "misconfigured"],
    ["Slack's bad_client_secret", 200, error("bad_client_secret"), "misconfigured"],
    ["an unknown code", 400, error("something_new"), "refused"],
    ["an error that is an object", 400, JSON.stringify({ error: { code: 190, type: "OAuthException" } }), "refused"],
    ["400 without a body", 400, "", "refused"],
    ["400 with HTML", 400, "<html>", "failed"],
    ["400 with words", 400, "blocked", "failed"],
    ["400 with broken JSON", 400, '{"error":"inv', "failed"],
    ["403 without a body", 403, "", "failed"],
    ["rate_limit_exceeded with status 403", 403, error("rate_limit_exceeded"), "failed"],
    ["slow_down", 400, error("slow_down"), "failed"],
    ["invalid_request", 400, error("invalid_request"), "refused"],
    ["invalid_scope", 400, error("invalid_scope"), "refused"],
    ["temporarily_unavailable", 400, error("temporarily_unavailable"), "failed"],
    ["429", 429, error("rate_limited"), "failed"],
    ["500 that names invalid_grant", 500, error("invalid_grant"), "failed"],
    ["503", 503, "", "failed"],
    ["302", 302, "", "failed"],
    ["307", 307, tokens({}), "failed"],
    ["403 HTML of a proxy", 403, "<html>", "failed"],
    ["404", 404, "", "failed"],
    ["200 without access_token", 200, "{}", "failed"],
    ["200 with an empty body", 200, "", "failed"],
    ["200 with HTML", 200, "<html>", "failed"],
    ["200 with broken JSON", 200, '{"access_token":"a', "failed"],
    ["200 with a JSON array", 200, "[]", "failed"],
    ["200 with an access_token that cannot be sent", 200, JSON.stringify({ access_token: "a\nb" }), "failed"],
    ["200 with tokens", 200, tokens({}), "granted"],
    ["201 with tokens", 201, tokens({}), "granted"],
    ["203 with tokens", 203, tokens({}), "granted"],
    ["tokens behind a byte order mark", 200, `\ufeff${tokens({})}`, "granted"],
    ["tokens as a form", 200, "access_token=new-access&scope=a%2Cb&token_type=bearer", "granted"],
    ["tokens beside a member that is of no use", 200, tokens({ id_token: "a\nb", scope: { a: 1 } }), "granted"],
    ["tokens beside error: null", 200, tokens({ error: null }), "granted"],
    ["tokens beside an empty error", 200, tokens({ error: "" }), "granted"],
  ])("takes %s for what it is", (_what, status, body, kind) => {
    expect(decide(status, body)).toHaveProperty("kind", kind);
  });

  it.each([
    [400, '{"status":"BAD_REFRESH_TOKEN","message":"CANARY"}', "status", "ended"],
    [400, '{"error":"invalid_grant"}', "status", "ended"],
    [400, '{"status":"OTHER"}', "status", "refused"],
    [400, '{"status":{"BAD_REFRESH_TOKEN":1}}', "status", "refused"],
    [400, '{"errors":[{"code":"gone"}]}', "errors.0.code", "ended"],
    [400, '{"errors":[]}', "errors.0.code", "refused"],
    [200, '{"error":"gone"}', undefined, "ended"],
    [200, "error=gone", undefined, "ended"],
    [500, '{"error":"gone"}', undefined, "failed"],
    [400, "<html>gone", undefined, "failed"],
    [200, tokens({ status: "" }), "status", "granted"],
    [200, tokens({}), "constructor.name", "granted"],
  ])("knows the words of a definition: %s %s by %s", (status, body, tokenErrorMember, kind) => {
    const refreshEndedErrors = new Set(["BAD_REFRESH_TOKEN", "gone"]);
    expect(decideWith({ tokenErrorMember, refreshEndedErrors }, status, body)).toHaveProperty("kind", kind);
  });

  it.each([
    [400, error("unauthorized_client"), "unauthorized_client"],
    [400, error("consent_required"), "consent_required"],
    [400, error("CANARY"), "unknown_error"],
    [401, "", "status_401"],
    [401, error("invalid_client_id"), "invalid_client"],
    [403, error("too_many_requests"), "rate_limited"],
    [503, "", "server_error"],
    [400, "<html>", "unreadable"],
  ])("has a word of its own for %s %s", (status, body, word) => {
    expect(decide(status, body)).toHaveProperty("answer", word);
  });

  it("tells the same words from others, and keeps none", () => {
    const words = (code: string) => (decide(400, error(code)) as { words: string }).words;
    expect(words("CANARY")).toBe(words("CANARY"));
    expect(words("CANARY")).not.toBe(words("CANARY2"));
    expect(words("CANARY")).toMatch(/^[0-9a-f]{16}$/);
  });

  it.each([
    [{ refresh_token: "r" }, "r"],
    [{ refresh_token: "" }, undefined],
    [{ refresh_token: null }, undefined],
    [{}, undefined],
  ])("reads the refresh token of %j", (members, refreshToken) => {
    const verdict = decide(200, tokens(members));
    expect(verdict.kind === "granted" && verdict.tokens.refreshToken?.reveal()).toBe(refreshToken);
  });

  it.each([
    [3600, 3600],
    ["3600", 3600],
    [3599.9, 3599],
    ["3599.9", 3599],
    [null, undefined],
    ["abc", undefined],
    [0, undefined],
    [-1, undefined],
    ["-1", undefined],
    [1e12, 365 * 86_400],
    [true, undefined],
    [{}, undefined],
  ])("reads expires_in %j as %j seconds", (expires_in, seconds) => {
    const verdict = decide(200, tokens({ expires_in }));
    expect(verdict.kind === "granted" && verdict.tokens.expiresInS).toBe(seconds);
  });

  it("never throws a rotated refresh token away because of what came with it", () => {
    const verdict = decide(200, JSON.stringify({ refresh_token: "rotated", access_token: 7 }));
    expect(verdict.kind === "failed" && verdict.refreshToken?.reveal()).toBe("rotated");
  });

  it("never prints what it read", () => {
    const printed = JSON.stringify(decide(200, tokens({ refresh_token: "CANARY_R" })));
    expect(printed).not.toMatch(/CANARY|new-access/);
    expect(JSON.stringify(decide(400, error("invalid_grant")))).not.toContain("CANARY");
  });
});

describe("decideTokenAnswer() of a request that is signed for a time", () => {
  const habits = {
    tokenResponseMember: undefined,
    tokenErrorMember: undefined,
    expiresAtMember: undefined,
    refreshEndedErrors: new Set<string>(),
  };
  const decideAt = (secondsAhead: number, isTimed: boolean, body = '{"error":"invalid_grant"}', statusCode = 400) => {
    const date = new Date(NOW + secondsAhead * 1000).toUTCString();
    return decideTokenAnswer({ statusCode, body: Buffer.from(body), retryAfter: "", date }, NOW, {
      ...habits,
      isTimed,
    });
  };

  it("takes a refusal for the clock's where the provider's stands more than half a minute apart", () => {
    for (const seconds of [-3600, -32, 32, 86_400])
      expect(decideAt(seconds, true)).toMatchObject({ kind: "failed", answer: "clock_differs" });
    for (const seconds of [-29, 0, 29]) expect(decideAt(seconds, true)).toMatchObject({ kind: "ended" });
    expect(decideAt(3600, false)).toMatchObject({ kind: "ended" });
    expect(decideAt(3600, true, '{"access_token":"a"}', 200)).toMatchObject({ kind: "granted" });
    const undated = { statusCode: 400, body: Buffer.from('{"error":"invalid_grant"}'), retryAfter: "" };
    for (const date of [undefined, "", "yesterday"])
      expect(
        decideTokenAnswer({ ...undated, ...(date !== undefined && { date }) }, NOW, { ...habits, isTimed: true }),
      ).toMatchObject({ kind: "ended" });
  });
});

describe("decideTokenAnswer() of an answer that wraps the token response", () => {
  const wrapped = (body: unknown, members: object = {}) => JSON.stringify({ status: 0, body, ...members });

  it.each([
    ["tokens in the wrapper", wrapped({ access_token: "a" }), "granted"],
    ["tokens without the wrapper", tokens({}), "granted"],
    ["tokens beside a wrapper that is a list", wrapped([1], { access_token: "a" }), "granted"],
    ["tokens beside a wrapper that is null", wrapped(null, { access_token: "a" }), "granted"],
    ["tokens beside a wrapper that is a text", wrapped("x", { access_token: "a" }), "granted"],
    ["tokens as a form", "access_token=a", "granted"],
    ["a wrapper without tokens", wrapped({}), "failed"],
    ["a wrapper without tokens beside other tokens", wrapped({ id: "U1" }, { access_token: "a" }), "failed"],
    ["an error beside an empty wrapper", wrapped({}, { error: "invalid_grant" }), "ended"],
    ["an error in the wrapper", wrapped({ error: "invalid_grant" }), "ended"],
    ["an error in words", wrapped({}, { status: 503, error: "Invalid Params: CANARY" }), "refused"],
    ["broken JSON", '{"body":{"access_token":"a"', "failed"],
  ])("takes %s for what it is", (_what, body, kind) => {
    expect(decide(200, body, "body")).toHaveProperty("kind", kind);
  });

  it("reads the wrapper's members and no others", () => {
    const inner = { access_token: "inner", refresh_token: "r", expires_in: 60, scope: "a b" };
    const verdict = decide(200, JSON.stringify({ access_token: "outer", a: { b: inner } }), "a.b");
    if (verdict.kind !== "granted") throw new Error(verdict.kind);
    const { accessToken, refreshToken, expiresInS, scope } = verdict.tokens;
    expect([accessToken.reveal(), refreshToken?.reveal(), expiresInS, scope]).toEqual(["inner", "r", 60, "a b"]);
  });

  it("finds no member that an object inherits", () => {
    expect(decide(200, tokens({}), "constructor.prototype")).toHaveProperty("kind", "granted");
    expect(decide(200, tokens({}), "__proto__")).toHaveProperty("kind", "granted");
  });

  it.each([302, 403, 429, 503])("never throws a rotated refresh token away that came with status %i", (status) => {
    const verdict = decide(status, tokens({ refresh_token: "rotated" }));
    expect(verdict.kind === "failed" && verdict.refreshToken?.reveal()).toBe("rotated");
  });

  it.each([
    ["in the wrapper", wrapped({ refresh_token: "rotated", access_token: 7 })],
    ["in the wrapper, with another beside it", wrapped({ refresh_token: "rotated" }, { refresh_token: "other" })],
    ["beside the wrapper", wrapped({ access_token: 7 }, { refresh_token: "rotated" })],
    ["without a wrapper", JSON.stringify({ refresh_token: "rotated", access_token: 7 })],
  ])("never throws a rotated refresh token away that came %s", (_where, body) => {
    const verdict = decide(200, body, "body");
    expect(verdict.kind === "failed" && verdict.refreshToken?.reveal()).toBe("rotated");
  });
});

describe("parseRetryAfter()", () => {
  it.each([
    ["7", 7000],
    [" 7 ", 7000],
    ["999999999", 300_000],
    ["Fri, 27 Nov 2026 00:00:10 GMT", 10_000],
    ["Fri, 27 Nov 2020 00:00:00 GMT", 0],
    ["-1", 0],
    ["soon", 0],
    ["", 0],
  ])("reads %j as %i ms", (text, ms) => {
    expect(parseRetryAfter(text, NOW)).toBe(ms);
  });
});
