import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Sandbox, startSandbox } from "../support/sandbox.js";
import { type CallOptions, send } from "./call.js";
import { exchange } from "./raw-socket.js";

const TOKEN = 'CANARY/a+b="c\\d';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
  sandbox.acceptToken(TOKEN);
});
afterAll(() => sandbox.close());

function callWithToken(target: string, options: CallOptions = {}) {
  const headers = { Authorization: `Bearer ${TOKEN}`, ...options.headers };
  return send(sandbox.origin + target, { ...options, headers });
}

async function echo(target: string, options: CallOptions = {}) {
  const { text } = await callWithToken(target, options);
  return { text, echo: JSON.parse(text) };
}

describe("/echo", () => {
  it("shows method, target, path and query as received", async () => {
    const { echo: received } = await echo("/echo/%7Ea/b//c?x=1&x=%2B+&y&=z", { method: "PROPFIND" });
    expect(received).toMatchObject({
      method: "PROPFIND",
      target: "/echo/%7Ea/b//c?x=1&x=%2B+&y&=z",
      path: "/echo/%7Ea/b//c",
      query: [
        ["x", "1"],
        ["x", "+ "],
        ["y", ""],
        ["", "z"],
      ],
    });
  });

  it("shows fields in order and case, the Authorization field without its value", async () => {
    const { text, echo: received } = await echo("/echo", { headers: { "X-One": "1", "x-ONE": "2" } });
    expect(received.headers).toEqual(
      expect.arrayContaining([
        ["X-One", "1"],
        ["x-ONE", "2"],
        ["Authorization", ""],
      ]),
    );
    expect(text).not.toContain("CANARY");
  });

  it("leaves the credential in on /echo-headers", async () => {
    const { echo: received } = await echo("/echo-headers/below");
    expect(received.headers).toContainEqual(["Authorization", `Bearer ${TOKEN}`]);
  });

  it("splices a JSON body as it stood in the request", async () => {
    const body = '{ "id":9007199254740993,"v":1.0,\n"b":1,"a":2,"__proto__":{} }';
    const headers = { "content-type": "application/vnd.api+json; charset=utf-8" };
    const { text, echo: received } = await echo("/echo", { method: "POST", headers, body });
    expect(text.endsWith(`,"json":${body}}`)).toBe(true);
    expect(received).toMatchObject({ body, bodyEncoding: "text", bodyBytes: body.length });
  });

  it.each([
    ["another type", "text/plain", "{}"],
    ["broken JSON", "application/json", '{"a":'],
    ["two values", "application/json", '1,"x":2'],
    ["no content", "application/json", ""],
  ])("has no json member for %s", async (_, contentType, body) => {
    const { echo: received } = await echo("/echo", { method: "POST", headers: { "content-type": contentType }, body });
    expect(received).not.toHaveProperty("json");
    expect(received.body).toBe(body);
  });

  it("shows content that is not UTF-8 as base64", async () => {
    const body = Buffer.from([0xff, 0, 0x41]);
    const headers = { "content-type": "application/json" };
    const { echo: received } = await echo("/echo", { method: "POST", headers, body });
    expect(received).toMatchObject({ body: "/wBB", bodyEncoding: "base64", bodyBytes: 3 });
    expect(received).not.toHaveProperty("json");
  });

  it("refuses two Authorization fields, as RFC 6750 section 3.1 says", async () => {
    const field = `Authorization: Bearer ${TOKEN}\r\n`;
    const text = `GET /echo HTTP/1.1\r\nHost: x\r\n${field}${field}Connection: close\r\n\r\n`;
    const answer = await exchange(sandbox.origin, text);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain('error="invalid_request"');
  });
});

describe("/raw-echo", () => {
  it("answers the bytes and the type it got", async () => {
    const body = Buffer.from([0, 1, 0xfe, 0xff]);
    const headers = { "content-type": "image/x-odd; a=b" };
    const answer = await callWithToken("/raw-echo/x", { method: "PATCH", headers, body });
    expect(answer.bytes.equals(body)).toBe(true);
    expect(answer.headers["content-type"]).toBe("image/x-odd; a=b");
  });

  it("names a type when it got none", async () => {
    expect((await callWithToken("/raw-echo")).headers["content-type"]).toBe("application/octet-stream");
  });
});

describe("/echo-token", () => {
  it.each([
    ["raw", `token ${TOKEN} end`],
    ["base64", `token ${Buffer.from(TOKEN).toString("base64")} end`],
    ["urlencoded", `access_token=${encodeURIComponent(TOKEN)}&token_type=Bearer`],
    ["json", String.raw`{"access_token":"CANARY\/a+b=\"c\\d"}`],
  ])("gives the token away as %s", async (as, text) => {
    expect(await callWithToken(`/echo-token?as=${as}`)).toMatchObject({ statusCode: 200, text });
  });

  it("gives the token away in a field, in Location and in the reason phrase", async () => {
    expect((await callWithToken("/echo-token?as=header")).headers["x-access-token"]).toBe(TOKEN);
    const redirect = await callWithToken("/echo-token?as=location");
    expect(redirect.statusCode).toBe(302);
    expect(redirect.headers["location"]).toBe(`/echo?access_token=${encodeURIComponent(TOKEN)}`);
    const head = `GET /echo-token?as=reason HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\n`;
    const answer = await exchange(sandbox.origin, `${head}Connection: close\r\n\r\n`);
    expect(answer.split("\r\n", 1)[0]).toBe(`HTTP/1.1 200 ${TOKEN}`);
  });
});
