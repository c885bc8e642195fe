import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { signCallToken } from "../../support/call-tokens.js";
import { ADMIN_TOKENS } from "../../support/harness.js";
import { startViaBed, type ViaBed } from "../via/via-bed.js";
import { connectAgent, LIST_TOOLS, post } from "./agent.js";

const ORIGIN = "https://agent.example.com";

let bed: ViaBed;

beforeAll(async () => {
  bed = await startViaBed({ env: { RELAY_MCP: "on" } });
});

afterAll(() => bed.close());

const seconds = () => Math.floor(Date.now() / 1000);
const other = { publicKey: "nobody", privateKey: "CANARY_no_key_of_the_application" };

describe("POST /mcp", () => {
  it.each<[string, () => Record<string, string>, string]>([
    ["nothing", () => ({}), "Send a call token as Authorization: Bearer."],
    ["another scheme", () => ({ authorization: `Basic ${bed.callToken()}` }), "Send a call token"],
    ["an empty token", () => ({ authorization: "Bearer " }), "Send a call token"],
    [
      "a call token in another field",
      () => ({ "x-relay-authorization": `Bearer ${bed.callToken()}` }),
      "Send a call token",
    ],
    [
      "the names of application and user",
      () => ({ "x-relay-public-key": bed.application.publicKey, "x-relay-user-id": "ada" }),
      "Send a call token",
    ],
    [
      "the private key",
      () => ({ authorization: `Bearer ${bed.application.privateKey}` }),
      "Only a call token is accepted",
    ],
    [
      "an operator's token",
      () => ({ authorization: `Bearer ${ADMIN_TOKENS.operator}` }),
      "Only a call token is accepted",
    ],
    ["a provider's token", () => ({ authorization: `Bearer ${bed.token}` }), "Only a call token is accepted"],
    [
      "the private key beside a call token",
      () => ({
        authorization: `Bearer ${bed.callToken()}`,
        "x-partner-key": `${bed.application.publicKey}.${bed.application.privateKey}`,
      }),
      "Only a call token is accepted",
    ],
    ["no JWT", () => ({ authorization: "Bearer a.b.c" }), "it is not a JWT signed with HS256"],
    [
      "an unsigned token",
      () => ({ authorization: `Bearer ${bed.callToken({ header: { alg: "none", typ: "relay-call+jwt" } })}` }),
      "its alg must be HS256",
    ],
    [
      "a JWT of another type",
      () => ({ authorization: `Bearer ${bed.callToken({ header: { alg: "HS256", typ: "JWT" } })}` }),
      "its typ must be",
    ],
    ["a token of no application", () => ({ authorization: `Bearer ${signCallToken(other)}` }), "No active application"],
    [
      "a token that another key has signed",
      () => ({ authorization: `Bearer ${signCallToken({ ...other, publicKey: bed.application.publicKey })}` }),
      "it is not signed with this application's private key",
    ],
    [
      "a token whose claims were changed",
      () => {
        const [header, , signature] = bed.callToken({ claims: { sub: "eve" } }).split(".");
        return { authorization: `Bearer ${header}.${bed.callToken().split(".")[1]}.${signature}` };
      },
      "it is not signed",
    ],
    [
      "a token that has ended",
      () => ({ authorization: `Bearer ${bed.callToken({ claims: { iat: seconds() - 900, exp: seconds() - 61 } })}` }),
      "it has expired",
    ],
    [
      "a token of tomorrow",
      () => ({ authorization: `Bearer ${bed.callToken({ claims: { iat: seconds() + 90, exp: seconds() + 900 } })}` }),
      "it is not valid yet",
    ],
    [
      "a token for two days",
      () => ({ authorization: `Bearer ${bed.callToken({ claims: { exp: seconds() + 172_800 } })}` }),
      "its exp must be at most",
    ],
    [
      "a token for somebody else as well",
      () => ({ authorization: `Bearer ${bed.callToken({ claims: { aud: ["provider-call-relay", "x"] } })}` }),
      "its aud must be",
    ],
    [
      "a token of 5,000 characters",
      () => ({ authorization: `Bearer ${bed.callToken({ claims: { x: "a".repeat(5000) } })}` }),
      "it is longer than 4096",
    ],
  ])("refuses %s with 401, before it reads what is asked", async (what, fields, message) => {
    const logged = bed.harness.logLines.length;
    // Whatever is asked: this is not even JSON.
    const answered = await post(bed, fields(), "{");
    expect(answered).toMatchObject({ status: 401, message: expect.stringContaining(message) });
    const isShown = "authorization" in fields();
    expect(answered.fields.get("www-authenticate")).toBe(isShown ? 'Bearer error="invalid_token"' : "Bearer");
    await expect
      .poll(() => bed.harness.logLines.slice(logged).join(""))
      .toMatch(/"surface":"mcp".*"errorType":"(?:CALLER_NOT_ALLOWED|INVALID_PUBLIC_KEY)"/);
    const told = JSON.stringify([...answered.fields]) + answered.text + bed.harness.logLines.join("");
    const signature = fields()["authorization"]?.split(".")[2];
    for (const secret of [bed.application.privateKey, ADMIN_TOKENS.operator, other.privateKey, bed.token, signature]) {
      if (secret !== undefined && secret !== "c") expect([what, told.includes(secret)]).toEqual([what, false]);
    }
  });

  it("does not look into the query for a token", async () => {
    for (const name of ["private_key", "access_token", "token"]) {
      const { status } = await post(bed, {}, undefined, `/mcp?${name}=${bed.callToken()}`);
      expect([name, status]).toEqual([name, 401]);
    }
  });

  it("refuses two tokens, of which somebody in front might read the other one", async () => {
    const response = await fetch(`${bed.harness.url}/mcp`, {
      method: "POST",
      headers: [
        ["authorization", `Bearer ${bed.callToken()}, Bearer ${bed.callToken()}`],
        ["accept", "application/json, text/event-stream"],
      ],
      body: JSON.stringify(LIST_TOOLS),
    });
    expect(response.status).toBe(401);
  });

  it("ends with the token, and with the application", async () => {
    // Before the relay starts, which takes its clock then.
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const timed = await startViaBed({ env: { RELAY_MCP: "on" } });
    onTestFinished(() => timed.close());
    const agent = await connectAgent(timed);
    const get = { provider: "plain", url: `http://${timed.host}/a`, method: "GET" };
    expect(await agent.use("perform_call", get)).toMatchObject({ isError: false });
    vi.setSystemTime(Date.now() + 1_000_000);
    for (const tool of ["perform_call", "explain_call", "list_accounts"]) {
      await expect(agent.use(tool, get)).rejects.toThrow(/has expired/);
    }
    expect(timed.received).toHaveLength(1);
    const disabled = await bed.harness.createApplication({ state: "DISABLED" });
    expect(await post(bed, { authorization: `Bearer ${signCallToken(disabled)}` })).toMatchObject({ status: 401 });
  });

  it("holds a browser to the application's list of origins, and a client to that of addresses", async () => {
    const listed = await bed.harness.createApplication({ allowedOrigins: [ORIGIN] });
    const authorization = `Bearer ${signCallToken(listed)}`;
    const allowed = await post(bed, { authorization, origin: ORIGIN });
    expect([allowed.status, allowed.fields.get("access-control-allow-origin")]).toEqual([200, ORIGIN]);
    for (const origin of ["https://evil.example.com", "null", bed.harness.url, `${ORIGIN}.evil.test`]) {
      const refused = await post(bed, { authorization, origin });
      expect([origin, refused.status, refused.message]).toEqual([origin, 403, expect.stringMatching(/browser origin/)]);
      expect(refused.fields.get("access-control-allow-origin")).toBeNull();
      expect(refused.fields.get("www-authenticate")).toBeNull();
    }
    const elsewhere = await bed.harness.createApplication({ allowedAddresses: ["192.0.2.0/24"] });
    const refused = await post(bed, { authorization: `Bearer ${signCallToken(elsewhere)}` });
    expect(refused).toMatchObject({ status: 403, message: expect.stringMatching(/client address/) });
  });

  it("answers a preflight for an origin that some application lists, and for no other", async () => {
    await bed.harness.createApplication({ allowedOrigins: [ORIGIN] });
    const ask = (origin: string) =>
      fetch(`${bed.harness.url}/mcp`, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization, content-type, mcp-protocol-version",
        },
      });
    const allowed = await ask(ORIGIN);
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("access-control-allow-headers")).toBe(
      "authorization, content-type, mcp-protocol-version",
    );
    expect((await ask("https://evil.example.com")).status).toBe(403);
  });

  it("answers every other method with 405, and other paths with 404", async () => {
    for (const method of ["GET", "DELETE", "PUT", "PATCH", "HEAD"]) {
      const headers = { authorization: `Bearer ${bed.callToken()}`, accept: "text/event-stream" };
      const response = await fetch(`${bed.harness.url}/mcp`, { method, headers });
      expect([method, response.status, response.headers.get("allow")]).toEqual([method, 405, "POST, OPTIONS"]);
    }
    for (const path of ["/mcp/", "/MCP", "/mcp/x", "//mcp", "/%6dcp"]) {
      const { status } = await post(bed, { authorization: `Bearer ${bed.callToken()}` }, undefined, path);
      expect([path, status]).toEqual([path, 404]);
    }
  });
});

const get = (path: string, provider = "plain") => ({ provider, url: `http://${bed.host}${path}`, method: "GET" });

describe("a token for GET at /repos/acme/** of one provider", () => {
  const rules = [{ methods: ["GET"], paths: ["/repos/acme/**"] }];
  const claims = { providers: ["plain"], rules };

  it.each<[string, () => Record<string, unknown>, string]>([
    ["another method", () => ({ ...get("/repos/acme/a"), method: "DELETE" }), "CALL_NOT_PERMITTED"],
    ["HEAD", () => ({ ...get("/repos/acme/a"), method: "HEAD" }), "CALL_NOT_PERMITTED"],
    ["the method in lower case", () => ({ ...get("/repos/acme/a"), method: "delete" }), "CALL_NOT_PERMITTED"],
    ["a form, which is a POST", () => ({ ...get("/repos/acme/a"), method: "FORM" }), "CALL_NOT_PERMITTED"],
    ["multipart, which is a POST", () => ({ ...get("/repos/acme/a"), method: "MULTIFORM-POST" }), "CALL_NOT_PERMITTED"],
    [
      "a method in the query",
      () => ({ ...get("/repos/acme/a"), queryString: { _method: "DELETE" } }),
      "CALL_NOT_PERMITTED",
    ],
    [
      "a method in the payload of a GET",
      () => ({ ...get("/repos/acme/a"), payload: { _method: "DELETE" } }),
      "CALL_NOT_PERMITTED",
    ],
    ["a method in the url", () => get("/repos/acme/a?_method=DELETE"), "CALL_NOT_PERMITTED"],
    [
      "a method in a header",
      () => ({ ...get("/repos/acme/a"), headers: { "X-HTTP-Verb": "DELETE" } }),
      "CALL_NOT_PERMITTED",
    ],
    ["another path", () => get("/user"), "CALL_NOT_PERMITTED"],
    ["a path beside it", () => get("/repos/acmes/a"), "CALL_NOT_PERMITTED"],
    ["dot segments", () => get("/repos/acme/../../user"), "CALL_NOT_PERMITTED"],
    ["encoded dot segments", () => get("/repos/acme/%2e%2e/%2e%2e/user"), "CALL_NOT_PERMITTED"],
    ["twice encoded dot segments", () => get("/repos/acme/%252e%252e/user"), "CALL_NOT_PERMITTED"],
    ["encoded slashes", () => get("/repos/acme/..%2f..%2fuser"), "CALL_NOT_PERMITTED"],
    ["a matrix parameter", () => get("/repos/acme/..;/user"), "CALL_NOT_PERMITTED"],
    ["an empty segment", () => get("/repos/acme//../../user"), "CALL_NOT_PERMITTED"],
    ["another case", () => get("/REPOS/acme/a"), "CALL_NOT_PERMITTED"],
    ["another host", () => ({ ...get(""), url: "http://127.0.0.1:1/repos/acme/a" }), "URL_NOT_ALLOWED"],
    ["the relay itself", () => ({ ...get(""), url: `${bed.harness.url}/repos/acme/a` }), "URL_NOT_ALLOWED"],
    [
      "a user name in the url",
      () => ({ ...get(""), url: `http://${bed.host}@evil.test/repos/acme/a` }),
      "URL_NOT_ALLOWED",
    ],
    ["a file", () => ({ ...get(""), url: "file:///repos/acme/a" }), "URL_NOT_ALLOWED"],
    ["another provider", () => get("/repos/acme/a", "keyed"), "CALL_NOT_PERMITTED"],
    ["another provider, percent-encoded", () => get("/repos/acme/a", "%6beyed"), "INVALID_PROVIDER"],
    ["no provider", () => get("/repos/acme/a", "nowhere"), "INVALID_PROVIDER"],
    ["a provider that is a member of every object", () => get("/repos/acme/a", "__proto__"), "INVALID_PROVIDER"],
    ["another user beside it", () => ({ ...get("/repos/acme/a"), user_id: "eve" }), "CALL_FORMAT_ERROR"],
    [
      "another application beside it",
      () => ({ ...get("/repos/acme/a"), public_key: "x", private_key: "y" }),
      "CALL_FORMAT_ERROR",
    ],
  ])("lets nothing through for %s, and says so as an explanation as well", async (_what, args, errorType) => {
    const agent = await connectAgent(bed, { claims });
    const before = bed.received.length;
    const performed = await agent.use("perform_call", args());
    expect(performed).toMatchObject({ isError: true, told: { errorType, next: expect.stringMatching(/\w/) } });
    const explained = await agent.use("explain_call", args());
    expect(explained.told).toMatchObject({ wouldBeSent: false, errorType, message: performed.told.message });
    expect(bed.received.length).toBe(before);
  });

  it("lets through what is within, with fields that are never a caller's taken out", async () => {
    const agent = await connectAgent(bed, { claims });
    const headers = { "X-HTTP-Method-Override": "DELETE", cookie: "a=b", host: "evil.test", "x-partner-key": "a.b" };
    expect(await agent.use("perform_call", { ...get("/repos/acme/a"), headers })).toMatchObject({ isError: false });
    const { method, target, fields } = bed.received.at(-1) as ViaBed["received"][number];
    expect([method, target]).toEqual(["GET", "/repos/acme/a"]);
    expect(fields).toMatchObject({ host: bed.host, authorization: `Bearer ${bed.token}` });
    for (const name of ["cookie", "x-http-method-override", "x-partner-key"]) expect(fields).not.toHaveProperty(name);
  });

  it("is for its own user alone", async () => {
    await bed.harness.connect(bed.application, "bob", { providerName: "plain", accessToken: "CANARY_of_bob" });
    const eve = await connectAgent(bed, { claims: { ...claims, sub: "eve" } });
    const { isError, told } = await eve.use("perform_call", get("/repos/acme/a"));
    expect([isError, told.errorType]).toEqual([true, "INVALID_OAUTHID"]);
    expect(told.next).toMatch(/^Ask the user to connect an account/);
    const bob = await connectAgent(bed, { claims: { ...claims, sub: "bob" } });
    expect(await bob.use("perform_call", get("/repos/acme/a"))).toMatchObject({ isError: false });
    expect(bed.received.at(-1)?.fields.authorization).toBe("Bearer CANARY_of_bob");
  });

  it("is bounded by the rules of its application as well, and by its limits", async () => {
    const callRules = { plain: [{ methods: ["GET"], hosts: undefined, paths: [["repos", "acme", "open", "**"]] }] };
    const application = await bed.harness.createApplication({ callRules, callsPerMinute: 2 });
    await bed.harness.connect(application, "ada", { providerName: "plain" });
    const agent = await connectAgent(bed, signCallToken(application, { claims }));
    const { told } = await agent.use("explain_call", get("/repos/acme/open/a"));
    expect(told).toMatchObject({ ruleOfToken: "rule 1", ruleOfApplication: "rule 1" });
    expect((await agent.use("perform_call", get("/repos/acme/a"))).told).toMatchObject({
      errorType: "CALL_NOT_PERMITTED",
      message: expect.stringMatching(/rules of this application/),
    });
    expect(await agent.use("perform_call", get("/repos/acme/open/a"))).toMatchObject({ isError: false });
    const third = await agent.use("perform_call", get("/repos/acme/open/a"));
    expect(third.told).toMatchObject({ errorType: "RATE_LIMITED", next: expect.stringMatching(/^Wait/) });
  });
});

describe("RELAY_MCP", () => {
  it("is off by default: the path is one like any other", async () => {
    const off = await startViaBed();
    onTestFinished(() => off.close());
    for (const method of ["POST", "GET", "OPTIONS"]) {
      const response = await fetch(`${off.harness.url}/mcp`, { method });
      expect([method, response.status, await response.text()]).toEqual([method, 404, "Not found.\n"]);
    }
  });
});
