import { once } from "node:events";
import { connect } from "node:net";
import { inspect } from "node:util";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ProviderSchema } from "../../gen/relay/admin/v1/provider_pb.js";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { call, send } from "./call.js";
import { exchange } from "./raw-socket.js";

describe("startSandbox()", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
    sandbox.acceptToken("CANARY/+=", { login: "grace" });
  });
  afterAll(() => sandbox.close());

  it("takes a token made elsewhere and shows its account", async () => {
    const answer = await send(`${sandbox.origin}/me`, { headers: { authorization: "Bearer CANARY/+=" } });
    expect(JSON.parse(answer.text)).toMatchObject({ login: "grace", sub: "1001", id: "1001" });
  });

  it("remembers a request as it was received", async () => {
    await call(sandbox, "/echo/%7E/a//b?x=%20&x", { method: "PUT", body: "{ }", headers: { "X-Odd-CASE": "1" } });
    const last = sandbox.requests.at(-1);
    expect(last).toMatchObject({
      method: "PUT",
      target: "/echo/%7E/a//b?x=%20&x",
      httpVersion: "1.1",
      authorized: true,
    });
    expect(last?.rawHeaders).toContain("X-Odd-CASE");
    expect(last?.body.toString()).toBe("{ }");
  });

  it("remembers a request it refused", async () => {
    await send(`${sandbox.origin}/me`);
    expect(sandbox.requests.at(-1)).toMatchObject({ target: "/me", authorized: false });
  });

  it("prints a remembered request without its target's query, fields and content", async () => {
    const headers = { authorization: "Bearer CANARY/+=" };
    await send(`${sandbox.origin}/echo?t=CANARY`, { method: "POST", headers, body: "CANARY" });
    const last = sandbox.requests.at(-1);
    expect(JSON.stringify(last) + inspect(last) + inspect(sandbox.requests, { depth: 9 })).not.toContain("CANARY");
  });

  it("stops taking a token that was revoked, and keeps its refresh token", async () => {
    const { access_token } = sandbox.issueToken();
    const headers = { authorization: `Bearer ${access_token}` };
    expect((await send(`${sandbox.origin}/me`, { headers })).statusCode).toBe(200);
    sandbox.revoke(access_token);
    expect((await send(`${sandbox.origin}/me`, { headers })).statusCode).toBe(401);
  });

  it("describes itself as a provider definition", () => {
    const definition = sandbox.providerDefinition("acme");
    const provider = fromJson(ProviderSchema, JSON.parse(JSON.stringify(definition)) as JsonValue);
    expect(provider).toMatchObject({ name: "acme", apiOrigins: [sandbox.origin] });
    expect(provider.oauth2?.tokenEndpoint).toBe(`${sandbox.origin}/oauth/token`);
    expect(sandbox.providerDefinition().name).toBe("sandbox");
  });

  it("keeps a connection for the next request", async () => {
    const { hostname, port } = new URL(sandbox.origin);
    const socket = connect(Number(port), hostname);
    for (let i = 0; i < 2; i++) {
      socket.write(`GET /me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer CANARY/+=\r\n\r\n`);
      const [chunk] = (await once(socket, "data")) as [Buffer];
      expect(chunk.toString()).toContain("HTTP/1.1 200 OK");
    }
    socket.destroy();
  });
});

describe("Sandbox.close()", () => {
  it("ends requests that are being answered, and may be called again", async () => {
    const sandbox = await startSandbox();
    const slow = call(sandbox, "/slow?ms=60000").catch(() => "cut");
    const drip = call(sandbox, "/drip?bytes=1000&ms=5").catch(() => "cut");
    while (sandbox.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await sandbox.close();
    await sandbox.close();
    expect([await slow, await drip]).toEqual(["cut", "cut"]);
  });
});

describe("a running sandbox", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await startSandbox();
    sandbox.acceptToken("t");
  });
  afterAll(() => sandbox.close());

  const auth = "Host: x\r\nAuthorization: Bearer t\r\n";
  const close = "Connection: close\r\n\r\n";
  it.each([
    ["garbage", "\x16\x03\x01\x02\r\n\r\n", "400"],
    ["no Host", `GET /me HTTP/1.1\r\n${close}`, "400"],
    ["a Host that is no host", `GET /me HTTP/1.1\r\nHost: [\r\nAuthorization: Bearer t\r\n${close}`, "200"],
    ["the absolute form", `GET http://x:99999/me HTTP/1.1\r\n${auth}${close}`, "200"],
    ["a target of slashes", `GET // HTTP/1.1\r\n${auth}${close}`, "404"],
    ["the asterisk form", `OPTIONS * HTTP/1.1\r\n${auth}${close}`, "404"],
    ["a broken percent-encoding", `GET /echo/%zz?a=%&%ff=%zz HTTP/1.1\r\n${auth}${close}`, "200"],
    ["two lengths", `POST /echo HTTP/1.1\r\n${auth}Content-Length: 1\r\nContent-Length: 2\r\n${close}ab`, "400"],
    ["a bad chunk", `POST /echo HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n${close}zz\r\n`, "400"],
    ["17 KB of fields", `GET /me HTTP/1.1\r\n${auth}X: ${"x".repeat(17_000)}\r\n${close}`, "431"],
    ["an upgrade nobody knows", `GET /me HTTP/1.1\r\n${auth}Connection: Upgrade, close\r\nUpgrade: x\r\n\r\n`, "200"],
    ["an expectation nobody knows", `GET /me HTTP/1.1\r\n${auth}Expect: x\r\n${close}`, "417"],
    ["a redirect that would split the answer", `GET /redirect?to=%0d%0aX:1 HTTP/1.1\r\n${auth}${close}`, "400"],
    ["a field name that is no token", `GET /headers?a%20b=c HTTP/1.1\r\n${auth}${close}`, "400"],
    ["a field value outside latin1", `GET /headers?a=%E2%82%AC HTTP/1.1\r\n${auth}${close}`, "400"],
    ["a pipelined second request", `GET /me HTTP/1.1\r\n${auth}\r\nGET /me HTTP/1.1\r\n${auth}${close}`, "200"],
  ])("answers %s and stays up", async (_, bytes, status) => {
    expect(await exchange(sandbox.origin, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect((await call(sandbox, "/me")).statusCode).toBe(200);
  });

  it.each([
    ["in the content", `POST /echo HTTP/1.1\r\n${auth}Content-Length: 100\r\n\r\nabc`],
    ["while it waits", `GET /slow?ms=30 HTTP/1.1\r\n${auth}\r\n`],
    ["within a stream", `GET /drip?bytes=1000&ms=1 HTTP/1.1\r\n${auth}\r\n`],
    ["within a bomb", `GET /gzip-bomb?mib=64 HTTP/1.1\r\n${auth}\r\n`],
    ["within a large answer", `GET /bytes?size=30000000 HTTP/1.1\r\n${auth}\r\n`],
  ])("stays up when the client leaves %s", async (_, bytes) => {
    const { hostname, port } = new URL(sandbox.origin);
    const socket = connect(Number(port), hostname);
    socket.write(bytes);
    await new Promise((resolve) => setTimeout(resolve, 15));
    socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect((await call(sandbox, "/me")).statusCode).toBe(200);
  });

  it("refuses content over its limit and closes the connection", async () => {
    const chunk = `100000\r\n${"x".repeat(0x100000)}\r\n`;
    const head = `POST /echo HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\n`;
    const answer = await exchange(sandbox.origin, head + chunk.repeat(33));
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toMatch(/connection: close/i);
  });

  it("remembers requests in the order received", async () => {
    for (const id of [1, 2, 3]) await call(sandbox, `/echo/${id}`);
    expect(sandbox.requests.slice(-3).map(({ target }) => target)).toEqual(["/echo/1", "/echo/2", "/echo/3"]);
  });
});
