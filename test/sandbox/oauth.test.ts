import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { send, sendForm } from "./call.js";

const CLIENTS = [
  { client_id: "c", client_secret: "s" },
  { client_id: "o:d+d", client_secret: "p&ss %" },
  { client_id: "public" },
] as const;
const POST = { client_id: "c", client_secret: "s" };
const REDIRECT_URI = "http://127.0.0.1:1/cb?keep=1";
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");

let sandbox: Sandbox;
let nowMs: number;
beforeEach(async () => {
  nowMs = 1_700_000_000_000;
  sandbox = await startSandbox({ clients: CLIENTS as never, now: () => nowMs });
});
afterEach(() => sandbox.close());

const token = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
  sendForm(`${sandbox.origin}/oauth/token`, parameters, headers);

const revoke = (parameters: Record<string, string>) => sendForm(`${sandbox.origin}/oauth/revoke`, parameters);

const me = async (accessToken: string) =>
  (await send(`${sandbox.origin}/me`, { headers: { authorization: `Bearer ${accessToken}` } })).statusCode;

function authorize(parameters: Record<string, string> = {}) {
  const query = { response_type: "code", client_id: "c", redirect_uri: REDIRECT_URI, ...parameters };
  return send(`${sandbox.origin}/oauth/authorize?${new URLSearchParams(query)}`);
}

async function obtainCode(parameters: Record<string, string> = {}): Promise<string> {
  const { headers } = await authorize(parameters);
  return new URL(String(headers["location"])).searchParams.get("code") ?? "";
}

const redeem = (code: string, parameters: Record<string, string> = POST) =>
  token({ grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, ...parameters });

const basic = (id: string, secret: string) => ({
  authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
});

describe("GET /oauth/authorize", () => {
  it("sends code and state back and keeps the query of redirect_uri", async () => {
    const answer = await authorize({ state: "a b&c" });
    expect(answer.statusCode).toBe(302);
    const { searchParams } = new URL(String(answer.headers["location"]));
    expect(searchParams.get("code")).toMatch(/^sandbox_ac_[\w-]{32}$/);
    expect(answer.headers["location"]).toBe(`${REDIRECT_URI}&code=${searchParams.get("code")}&state=a+b%26c`);
  });

  it.each([
    [{ client_id: "nobody" }, /client_id/],
    [{ client_id: "" }, /client_id/],
    [{ redirect_uri: "" }, /redirect_uri/],
    [{ redirect_uri: "/relative" }, /redirect_uri/],
    [{ redirect_uri: "javascript:alert(1)" }, /redirect_uri/],
    [{ redirect_uri: "http://x/#f" }, /redirect_uri/],
    [{ redirect_uri: "http://[" }, /redirect_uri/],
  ])("never redirects for %o", async (parameters, text) => {
    const answer = await authorize(parameters as Record<string, string>);
    expect(answer).toMatchObject({ statusCode: 400, text: expect.stringMatching(text) });
    expect(answer.headers["location"]).toBeUndefined();
  });

  it("never redirects when a parameter is repeated", async () => {
    const query = new URLSearchParams({ response_type: "code", client_id: "c", redirect_uri: REDIRECT_URI });
    expect((await send(`${sandbox.origin}/oauth/authorize?${query}&client_id=c`)).statusCode).toBe(400);
  });

  it.each([
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ response_type: "" }, "invalid_request"],
    [{ code_challenge: "x" }, "invalid_request"],
    [{ code_challenge: "x", code_challenge_method: "plain" }, "invalid_request"],
  ])("sends the error of %o back with the state", async (parameters, error) => {
    const { headers } = await authorize({ ...(parameters as Record<string, string>), state: "s" });
    const { searchParams } = new URL(String(headers["location"]));
    expect([searchParams.get("error"), searchParams.get("state"), searchParams.get("code")]).toEqual([
      error,
      "s",
      null,
    ]);
  });
});

describe("grant_type=authorization_code", () => {
  it("answers as RFC 6749 section 5.1 says, with a token that works", async () => {
    const answer = await redeem(await obtainCode({ scope: "a b" }));
    expect(answer.statusCode).toBe(200);
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "cache-control": "no-store" });
    expect(answer.headers["pragma"]).toBe("no-cache");
    const response = JSON.parse(answer.text);
    const access_token = expect.stringMatching(/^sandbox_at_[\w-]{32}$/);
    const refresh_token = expect.stringMatching(/^sandbox_rt_[\w-]{32}$/);
    expect(response).toEqual({ access_token, token_type: "Bearer", expires_in: 3600, refresh_token, scope: "a b" });
    expect(await me(response.access_token)).toBe(200);
  });

  it("takes a code once, and ends the tokens it gave when it comes again", async () => {
    const code = await obtainCode();
    const { access_token } = JSON.parse((await redeem(code)).text);
    const second = await redeem(code);
    expect([second.statusCode, JSON.parse(second.text).error]).toEqual([400, "invalid_grant"]);
    expect(await me(access_token)).toBe(401);
  });

  it("checks the PKCE verifier", async () => {
    const pkce = { code_challenge: CHALLENGE, code_challenge_method: "S256" };
    const code = await obtainCode(pkce);
    expect((await redeem(code)).text).toContain("invalid_grant");
    expect((await redeem(code, { ...POST, code_verifier: "wrong" })).text).toContain("invalid_grant");
    expect((await redeem(code, { ...POST, code_verifier: VERIFIER })).statusCode).toBe(200);
    expect((await redeem(await obtainCode(), { ...POST, code_verifier: VERIFIER })).text).toContain("invalid_grant");
  });

  it("serves a public client by its client_id alone", async () => {
    const code = await obtainCode({ client_id: "public" });
    expect((await redeem(code, { client_id: "public" })).statusCode).toBe(200);
  });

  it("refuses a code after a minute, for another client, and for another redirect_uri", async () => {
    const code = await obtainCode();
    const other = { client_id: "o:d+d", client_secret: "p&ss %" };
    expect((await redeem(code, other)).text).toContain("another client");
    expect((await redeem(code, { ...POST, redirect_uri: "http://127.0.0.1:1/" })).text).toContain("redirect_uri");
    expect((await redeem(code, { ...POST, redirect_uri: "" })).text).toContain("redirect_uri");
    nowMs += 60_000;
    expect((await redeem(code)).text).toContain("expired");
    expect((await redeem("made up")).text).toContain("invalid_grant");
  });
});

describe("grant_type=refresh_token", () => {
  const refresh = (refresh_token: string, more: Record<string, string> = {}) =>
    token({ grant_type: "refresh_token", refresh_token, ...POST, ...more });

  it("rotates the refresh token; the old access token lives on until it expires", async () => {
    const first = sandbox.issueToken({ expiresInSeconds: 60 });
    const second = JSON.parse((await refresh(first.refresh_token)).text);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect([await me(first.access_token), await me(second.access_token)]).toEqual([200, 200]);
    nowMs += 60_000;
    expect([await me(first.access_token), await me(second.access_token)]).toEqual([401, 200]);
  });

  it("ends the whole grant when a refresh token is used twice", async () => {
    const first = sandbox.issueToken();
    const second = JSON.parse((await refresh(first.refresh_token)).text);
    expect((await refresh(first.refresh_token)).text).toContain("invalid_grant");
    expect(await me(second.access_token)).toBe(401);
    expect((await refresh(second.refresh_token)).text).toContain("invalid_grant");
  });

  it("takes a used refresh token again within the grace window after its first use, and not later", async () => {
    await sandbox.close();
    sandbox = await startSandbox({ clients: CLIENTS as never, now: () => nowMs, refreshGraceMs: 30_000 });
    const { refresh_token } = sandbox.issueToken();
    const second = JSON.parse((await refresh(refresh_token)).text);
    nowMs += 29_999;
    const third = JSON.parse((await refresh(refresh_token)).text);
    expect([await me(second.access_token), await me(third.access_token)]).toEqual([200, 200]);
    nowMs += 1;
    expect((await refresh(refresh_token)).text).toContain("invalid_grant");
    expect(await me(third.access_token)).toBe(401);
  });

  it("changes the tokens before its answer is held", async () => {
    await sandbox.close();
    const held: string[] = [];
    const holdTokenAnswer = async (received: { body: Buffer }, { statusCode }: { statusCode: number }) => {
      held.push(`${statusCode} ${new URLSearchParams(received.body.toString()).get("grant_type")}`);
      if (held.length === 1) expect((await refresh(refresh_token)).statusCode).toBe(400);
    };
    sandbox = await startSandbox({ clients: CLIENTS as never, holdTokenAnswer });
    const { refresh_token } = sandbox.issueToken();
    expect((await refresh(refresh_token)).statusCode).toBe(200);
    expect(held).toEqual(["200 refresh_token", "400 refresh_token"]);
  });

  it("narrows the scope on request and never widens it", async () => {
    const { refresh_token } = sandbox.issueToken({ scope: "a b" });
    expect(JSON.parse((await refresh(refresh_token, { scope: "a c" })).text).error).toBe("invalid_scope");
    const narrowed = JSON.parse((await refresh(refresh_token, { scope: "b" })).text);
    expect(narrowed.scope).toBe("b");
    expect(JSON.parse((await refresh(narrowed.refresh_token)).text).scope).toBe("a b");
  });

  it("refuses another client's and unknown refresh tokens", async () => {
    const { refresh_token } = sandbox.issueToken();
    const other = { client_id: "public", client_secret: "" };
    expect((await refresh(refresh_token, other)).text).toContain("invalid_grant");
    expect((await refresh("x")).text).toContain("invalid_grant");
    expect((await refresh(refresh_token)).statusCode).toBe(200);
  });
});

describe("POST /oauth/token", () => {
  const body = () => ({ grant_type: "refresh_token", refresh_token: sandbox.issueToken().refresh_token });

  it("takes the client by Basic, form-urlencoded as RFC 6749 section 2.3.1 says", async () => {
    expect((await token(body(), basic("c", "s"))).statusCode).toBe(200);
    const odd = await token(body(), basic("o%3Ad%2Bd", "p%26ss+%25"));
    expect(odd.text).toContain("belongs to another client");
  });

  it.each([
    ["no client", {}, {}, 401, "invalid_client"],
    ["a wrong secret", { client_id: "c", client_secret: "x" }, {}, 401, "invalid_client"],
    ["no secret", { client_id: "c" }, {}, 401, "invalid_client"],
    ["a secret of a client without one", { client_id: "public", client_secret: "x" }, {}, 401, "invalid_client"],
    ["a wrong secret by Basic", {}, basic("c", "x"), 401, "invalid_client"],
    ["an Authorization that is not Basic", {}, { authorization: "Bearer x" }, 401, "invalid_client"],
    ["Basic without a colon", {}, { authorization: "Basic eA==" }, 401, "invalid_client"],
    ["two methods at once", POST, basic("c", "s"), 400, "invalid_request"],
    ["two clients", { client_id: "public" }, basic("c", "s"), 400, "invalid_request"],
    ["no grant_type", { ...POST, grant_type: "" }, {}, 400, "invalid_request"],
    ["a grant_type it does not have", { ...POST, grant_type: "password" }, {}, 400, "unsupported_grant_type"],
    ["no refresh_token", { ...POST, refresh_token: "" }, {}, 400, "invalid_request"],
    ["no code", { ...POST, grant_type: "authorization_code" }, {}, 400, "invalid_request"],
    ["JSON", POST, { "content-type": "application/json" }, 400, "invalid_request"],
  ])("refuses %s", async (_, parameters, headers, statusCode, error) => {
    const answer = await token({ ...body(), ...parameters }, headers as Record<string, string>);
    expect([answer.statusCode, JSON.parse(answer.text).error]).toEqual([statusCode, error]);
    expect(answer.headers["cache-control"]).toBe("no-store");
    if (statusCode === 401) expect(answer.headers["www-authenticate"]).toMatch(/^Basic /);
  });

  it("refuses a repeated parameter and other methods", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const repeated = "grant_type=refresh_token&grant_type=refresh_token&client_id=public&refresh_token=x";
    const url = `${sandbox.origin}/oauth/token`;
    expect((await send(url, { method: "POST", headers, body: repeated })).text).toContain("repeated");
    expect((await send(url)).statusCode).toBe(405);
  });
});

describe("POST /oauth/revoke", () => {
  it("ends an access token alone", async () => {
    const { access_token, refresh_token } = sandbox.issueToken();
    expect(await revoke({ ...POST, token: access_token })).toMatchObject({ statusCode: 200, text: "" });
    expect(await me(access_token)).toBe(401);
    expect((await token({ ...POST, grant_type: "refresh_token", refresh_token })).statusCode).toBe(200);
  });

  it("ends the whole grant with a refresh token", async () => {
    const { access_token, refresh_token } = sandbox.issueToken();
    await revoke({ ...POST, token: refresh_token, token_type_hint: "refresh_token" });
    expect(await me(access_token)).toBe(401);
    expect((await token({ ...POST, grant_type: "refresh_token", refresh_token })).text).toContain("invalid_grant");
  });

  it("answers 200 for a token it does not know, and refuses another client's", async () => {
    expect((await revoke({ ...POST, token: "x" })).statusCode).toBe(200);
    const { access_token } = sandbox.issueToken();
    expect((await revoke({ client_id: "public", token: access_token })).text).toContain("invalid_grant");
    expect(await me(access_token)).toBe(200);
    expect((await revoke({ ...POST, client_secret: "x", token: access_token })).statusCode).toBe(401);
    expect((await revoke(POST)).text).toContain("token is missing");
  });
});
