import { type Dispatcher, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { restCaller } from "../../support/connection-callers.js";
import { describeConnections, SCENARIO_PROVIDERS } from "../../support/connection-scenarios.js";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";

const PAGE = "https://app.example.com";
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({ providers: SCENARIO_PROVIDERS });
  application = await harness.createApplication({ allowedOrigins: [PAGE] });
  await harness.connect(application, "ada");
});

afterAll(() => harness.close());

describe("the methods about connections over REST", () => {
  describeConnections(() => ({ harness, caller: restCaller(harness.url), kind: "rest" }));
});

async function send(method: string, path: string, headers: Record<string, string> = {}, body?: string | Buffer) {
  const options = { method: method as Dispatcher.HttpMethod, headers, body: body ?? null };
  const answer = await request(harness.url + path, options);
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

const listPath = (query = `user_id=ada&public_key=${application.publicKey}`) => `/oauth/connections?${query}`;

describe("GET /oauth/connections", () => {
  it("is kept by nobody", async () => {
    expect((await send("GET", listPath())).headers).toMatchObject({
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
  });

  it("reads its query as a call's is read", async () => {
    const { publicKey } = application;
    expect((await send("GET", listPath(`userId=ada&pinc_client_id=${publicKey}&_=1`))).status).toBe(200);
    for (const query of ["user_id=ada&user_id=ada", "user_id=%FF", "user_id[]=ada", "user_id=%E0%A4%A"]) {
      const { status, text } = await send("GET", listPath(`${query}&public_key=${publicKey}`));
      expect([status, JSON.parse(text).rows[0].errorType]).toEqual([400, "CALL_FORMAT_ERROR"]);
    }
  });
});

describe("methods", () => {
  it.each([
    ["/oauth/connections", "POST", "GET, OPTIONS"],
    ["/oauth/connections", "HEAD", "GET, OPTIONS"],
    ["/oauth/connections", "DELETE", "GET, OPTIONS"],
    ["/oauth/connections/sandbox", "GET", "DELETE, OPTIONS"],
    ["/oauth/connections/sandbox", "PUT", "DELETE, OPTIONS"],
    ["/oauth/connect-links", "GET", "POST, OPTIONS"],
  ])("of %s: %s is none", async (path, method, allow) => {
    const answer = await send(method, path);
    expect([answer.status, answer.headers["allow"]]).toEqual([405, allow]);
  });

  it.each(["/oauth/connections/", "/oauth/connections/a/b", "/oauth/connect-links/", "/oauth/connection"])(
    "of %s: there is nothing",
    async (path) => {
      expect((await send("GET", path)).status).toBe(404);
    },
  );
});

describe("POST /oauth/connect-links", () => {
  const post = (body: string | Buffer, headers = {}) =>
    send("POST", "/oauth/connect-links", { authorization: `Bearer ${application.privateKey}`, ...headers }, body);
  const good = () => ({ public_key: application.publicKey, user_id: "ada" });

  it("takes the names of the schema, in both spellings", async () => {
    const { publicKey } = application;
    for (const body of [good(), { publicKey, userId: "ada" }, { ...good(), origin_parameters: {} }]) {
      expect((await post(JSON.stringify(body), { "content-type": "text/plain" })).status).toBe(200);
    }
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "public_key=a"],
    ["more than one object", '{"user_id":"a"}x', "it is not valid JSON"],
    ["a list", "[]"],
    ["null", "null"],
    ["an unknown member", '{"user":"CANARY"}', "it has the field user, which is not in the schema"],
    ["an unknown member that may be a secret", '{"CANARY_1":"a"}', "it has a field that is not in the schema"],
    ["a member of another type that says JSON", '{"origin_parameters":"no JSON"}', "it has a value of the wrong type"],
    ["a member of another type", '{"user_id":1}', "it has a value of the wrong type"],
    ["the same member twice", '{"user_id":"CANARY","user_id":"b"}', "an object in it has the same key twice"],
    ["half a surrogate pair", '{"user_id":"CANARY\\ud800"}'],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), "it is not UTF-8 text"],
    ["deep nesting", "[".repeat(10_000)],
  ])("refuses %s, and quotes none of it", async (_, body, fault = "it ") => {
    const { status, text } = await post(body);
    const [row] = JSON.parse(text).rows;
    expect([status, row.errorType]).toEqual([400, "CALL_FORMAT_ERROR"]);
    expect(row.inernalError).toContain(`with the fields of relay.v1.CreateConnectLinkRequest; ${fault}`);
    expect(text).not.toContain("CANARY");
  });

  it("refuses more than 64 KiB", async () => {
    expect((await post(JSON.stringify({ ...good(), scope: "x".repeat(66_000) }))).status).toBe(413);
  });

  it("reads nothing of its query", async () => {
    const { publicKey, privateKey } = application;
    const query = `user_id=ada&public_key=${publicKey}&private_key=${privateKey}`;
    expect((await send("POST", `/oauth/connect-links?${query}`, {}, "{}")).status).toBe(400);
  });
});

describe("CORS", () => {
  const preflight = (path: string, origin: string, method: string) =>
    send("OPTIONS", path, { origin, "access-control-request-method": method });

  it("lets a listed page list and delete", async () => {
    const one = `/oauth/connections/sandbox?user_id=cors&public_key=${application.publicKey}`;
    for (const [path, method] of [
      [listPath(), "GET"],
      [one, "DELETE"],
    ] as const) {
      const asked = await preflight(path, PAGE, method);
      expect([asked.status, asked.headers["access-control-allow-methods"]]).toEqual([204, method]);
      const answer = await send(method, path, { origin: PAGE });
      expect(answer.headers).toMatchObject({ "access-control-allow-origin": PAGE, vary: "Origin" });
    }
  });

  it.each(["https://evil.example", "https://app.example.com.evil.example", "http://app.example.com", "null"])(
    "lets no page at %s",
    async (origin) => {
      expect((await preflight(listPath(), origin, "GET")).status).toBe(403);
      const answer = await send("GET", listPath(), { origin });
      expect(answer.status).toBe(403);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
      expect(answer.text).not.toContain("sandbox");
    },
  );

  it("lets no page make links: the private key is not in a browser", async () => {
    expect((await preflight("/oauth/connect-links", PAGE, "POST")).status).toBe(403);
  });

  it("lets no page end a connection without naming the application: a call token ends none", async () => {
    expect((await preflight("/oauth/connections/sandbox", PAGE, "DELETE")).status).toBe(403);
    expect((await preflight("/oauth/connections", PAGE, "GET")).status).toBe(204);
  });

  it("answers a page that is not listed nothing that it could read", async () => {
    const other = await harness.createApplication({ allowedOrigins: ["https://other.example.com"] });
    const path = listPath(`user_id=ada&public_key=${other.publicKey}`);
    expect((await send("GET", path, { origin: PAGE })).headers["access-control-allow-origin"]).toBeUndefined();
  });
});
