import { createHmac } from "node:crypto";
import { connect } from "node:http2";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { signCallToken } from "../../support/call-tokens.js";
import { answerWith, bearer, type Passed, send, startViaBed, type ViaBed } from "./via-bed.js";

let bed: ViaBed;

beforeAll(async () => {
  bed = await startViaBed();
});

afterAll(() => bed.close());

afterEach(() => {
  bed.answer = answerWith(200, { "content-type": "application/json" }, "{}");
});

const last = () => bed.received.at(-1);

/** A refusal of the relay's own: the status of the row, the envelope, and the field that says so. */
function expectRefusal({ status, fields, text }: Passed, errorType: string, statusCode: number): void {
  expect({ status, error: fields["x-relay-error"] }).toEqual({ status: statusCode, error: errorType });
  expect(JSON.parse(text)).toMatchObject({ rows: [{ pincStatus: "error", statusCode, errorType }] });
}

describe("a request that is passed through", () => {
  it.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "REPORT", "M-SEARCH", "SOURCE"])(
    "keeps its method %s",
    async (method) => {
      const answer = await send(bed, bed.via("/a"), { method, fields: bearer(bed) });
      expect(answer).toMatchObject({ status: 200, text: "{}" });
      expect(last()?.method).toBe(method);
    },
  );

  it("answers HEAD with the length that the provider names", async () => {
    bed.answer = answerWith(200, { "content-length": "12345", etag: '"e"' }, "");
    const answer = await send(bed, bed.via("/a"), { method: "HEAD", fields: bearer(bed) });
    expect(answer).toMatchObject({ status: 200, fields: { "content-length": "12345", etag: '"e"' } });
  });

  it.each([
    "/",
    "/a?",
    "/a/b%2Fc//d/?q=~'()*+%20&&x=&x=",
    "/a;v=1/b,c@d:e!$&'()*+=?a=[1]&b={c}|`^\\",
    "/%E4%b8%ad%00%0d%0a",
    "/..a/.b/c..?../../..",
    "//evil.test/x",
    "/%7B%7Baccess_token%7D%7D?{{access_token}}",
    "/http://evil.test/",
  ])("keeps path and query of %s byte for byte", async (path) => {
    expect((await send(bed, bed.via(path), { fields: bearer(bed) })).status).toBe(200);
    expect(last()?.target).toBe(path);
  });

  it("has the root as its path when it names none", async () => {
    await send(bed, bed.via(""), { fields: bearer(bed) });
    expect(last()?.target).toBe("/");
    await send(bed, bed.via("?a=1"), { fields: bearer(bed) });
    expect(last()?.target).toBe("/?a=1");
  });

  it.each(["/a/../b", "/a/%2e%2E/b", "/./a", "/a/..", "/a#b", "/a^b", "/{a}", '/a?b="c"', "/a?<", "/a\\b"])(
    "is refused where %s would go out as something else",
    async (path) => {
      const before = bed.received.length;
      expectRefusal(await send(bed, bed.via(path), { fields: bearer(bed) }), "URL_NOT_ALLOWED", 403);
      expect(bed.received.length).toBe(before);
    },
  );

  it("carries its body, with its length or in chunks, and none where there is none", async () => {
    let body = "";
    bed.answer = (request, response) => {
      body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => response.end("{}"));
    };
    for (const method of ["POST", "GET", "DELETE"]) {
      await send(bed, bed.via("/a"), { method, body: "x=1", fields: { ...bearer(bed), "content-length": "3" } });
      expect({ body, length: last()?.fields["content-length"] }).toEqual({ body: "x=1", length: "3" });
      const chunked = { ...bearer(bed), "transfer-encoding": "chunked", trailer: "x-t" };
      await send(bed, bed.via("/a"), { method, body: "y=2", fields: chunked });
      expect(body).toBe("y=2");
      expect(last()?.fields).not.toHaveProperty("trailer");
    }
    await send(bed, bed.via("/a"), { method: "POST", fields: { ...bearer(bed), "content-length": "0" } });
    expect(last()?.fields["content-length"]).toBe("0");
    await send(bed, bed.via("/a"), { method: "DELETE", fields: bearer(bed) });
    expect(last()?.fields).not.toHaveProperty("content-length");
    expect(last()?.fields).not.toHaveProperty("transfer-encoding");
  });

  it("carries the caller's fields, but for those that are never a caller's", async () => {
    const fields = {
      ...bearer(bed),
      "content-type": "text/x-own; a=b",
      "user-agent": "an-sdk/1.0",
      accept: ["a/b", "c/d"],
      "if-none-match": '"e"',
      "x-own": "1",
      connection: "x-hop, close",
      "x-hop": "1",
      te: "trailers",
      cookie: "a=b",
      "proxy-authorization": "Basic eDp5",
      "x-forwarded-for": "192.0.2.1",
      "x-http-method-override": "DELETE",
      "x-relay-anything": "1",
      x_relay_user_id: "eve",
      "accept-encoding": "gzip",
    };
    await send(bed, bed.via("/a"), { fields });
    const { rawHeaders = [] } = last() ?? {};
    expect(rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text))).toEqual([
      "host",
      bed.host,
      "connection",
      "keep-alive",
      "content-type",
      "text/x-own; a=b",
      "user-agent",
      "an-sdk/1.0",
      "accept",
      "a/b, c/d",
      "if-none-match",
      '"e"',
      "x-own",
      "1",
      "accept-encoding",
      "identity",
      "authorization",
      `Bearer ${bed.token}`,
    ]);
  });

  it("is passed through over HTTP/2 as well", async () => {
    const session = connect(bed.harness.url);
    const stream = session.request({ ":method": "PURGE", ":path": bed.via("/a%2Fb?c"), ...bearer(bed) });
    stream.end("body");
    const status = await new Promise((resolve) => stream.once("response", (fields) => resolve(fields[":status"])));
    expect(status).toBe(200);
    stream.resume();
    await new Promise((resolve) => stream.once("close", resolve));
    session.close();
    expect(last()).toMatchObject({ method: "PURGE", target: "/a%2Fb?c" });
  });
});

describe("the caller's proof", () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

  it.each<[string, (token: string) => { provider?: string; query?: string; fields?: Record<string, string> }]>([
    ["in Authorization", (token) => ({ fields: { authorization: `Bearer ${token}` } })],
    ["in Authorization of another scheme", (token) => ({ fields: { authorization: `token ${token}` } })],
    ["as the password of Basic", (token) => ({ fields: { authorization: basic(`user:${token}`) } })],
    ["in the provider's own field", (token) => ({ provider: "keyed", fields: { "X-Api-Key": token } })],
    [
      "in the provider's own field with an underscore",
      (token) => ({ provider: "underscored", fields: { x_api_key: token } }),
    ],
    ["in the provider's own parameter", (token) => ({ provider: "queried", query: `?a=1&api_key=${token}&b=2` })],
    ["alone in the provider's own parameter", (token) => ({ provider: "queried", query: `?api%5Fkey=${token}` })],
    ["in x-relay-authorization", (token) => ({ fields: { "x-relay-authorization": `Bearer ${token}` } })],
    [
      "in x-relay-authorization beside something else in the provider's place",
      (token) => ({ fields: { "x-relay-authorization": `Bearer ${token}`, authorization: "Bearer unused" } }),
    ],
  ])("is accepted %s, and does not travel on", async (_place, request) => {
    const token = bed.callToken();
    const { provider, query = "", fields = {} } = request(token);
    expect((await send(bed, bed.via(`/a${query}`, provider), { fields })).status).toBe(200);
    const sent = JSON.stringify(last());
    expect(sent).not.toContain(token.split(".")[2]);
    expect(sent).not.toContain("x-relay");
    expect(sent).not.toContain("unused");
    expect(sent.split(bed.token)).toHaveLength(provider === "queried" ? 2 : 3);
  });

  it("may be the application's keys in fields of the relay's own", async () => {
    const { publicKey, privateKey } = bed.application;
    const named = { "x-relay-public-key": publicKey, "x-relay-user-id": "ada", authorization: "Bearer anything" };
    expectRefusal(await send(bed, bed.via("/a"), { fields: named }), "CALLER_NOT_ALLOWED", 403);
    const fields = { ...named, "x-relay-private-key": privateKey };
    expect((await send(bed, bed.via("/a"), { fields })).status).toBe(200);
    expect(JSON.stringify(last())).not.toContain(privateKey);
    const signed = await bed.harness.createApplication({ callerAuth: "SIGNED_USER" });
    await bed.harness.connect(signed, "ådå", { providerName: "plain" });
    const signature = createHmac("sha256", signed.privateKey).update("ådå").digest("hex");
    const userId = Buffer.from("ådå").toString("latin1");
    const proof = { "x-relay-public-key": signed.publicKey, "x-relay-user-id": userId };
    expectRefusal(await send(bed, bed.via("/a"), { fields: proof }), "CALLER_NOT_ALLOWED", 403);
    const answer = await send(bed, bed.via("/a"), { fields: { ...proof, "x-relay-user-signature": signature } });
    expect(answer.status).toBe(200);
    expect(JSON.stringify(last())).not.toContain(signature);
  });

  it.each<[string, (token: string) => { query?: string; fields: Record<string, string>; body?: string }]>([
    ["nothing", () => ({ fields: {} })],
    ["a provider's own token", () => ({ fields: { authorization: "Bearer xoxb-1-2-3" } })],
    ["a token that is none", () => ({ fields: { authorization: "Bearer a.b.c" } })],
    [
      "two tokens",
      (token) => ({
        fields: {
          authorization: `Bearer ${token}`,
          "x-relay-authorization": `Bearer ${bed.callToken({ claims: { jti: "1" } })}`,
        },
      }),
    ],
    ["a token in a second header", (token) => ({ fields: { authorization: `Bearer ${token}`, "x-a": `b ${token}` } })],
    [
      "a token in the query as well",
      (token) => ({ query: `?token=${token}`, fields: { authorization: `Bearer ${token}` } }),
    ],
    [
      "a token in the path, percent-encoded",
      (token) => ({
        query: `/${[...token]
          .map((c) => `%${c.charCodeAt(0).toString(16)}`)
          .join("")
          .slice(-129)}`,
        fields: { authorization: `Bearer ${token}` },
      }),
    ],
    [
      "a token in the body as well",
      (token) => ({ fields: { authorization: `Bearer ${token}` }, body: `a=1&token=${token}&b=2` }),
    ],
  ])("is refused for %s, before the provider has it", async (_what, request) => {
    const token = bed.callToken();
    const { query = "", fields, body } = request(token);
    let received = "";
    bed.answer = (incoming) => incoming.on("data", (chunk) => (received += chunk)).on("error", () => {});
    const answer = await send(bed, bed.via(`/a${query}`), { fields, ...(body && { body, method: "POST" }) });
    expectRefusal(answer, "CALLER_NOT_ALLOWED", 403);
    expect(received + answer.text).not.toContain(token.split(".")[2]);
    expect(answer.text + JSON.stringify(answer.fields)).not.toContain(bed.token);
  });

  it("is judged by its rules on what is sent", async () => {
    const rules = [{ methods: ["GET"], paths: ["/repos/acme/**"], hosts: [bed.host] }];
    const fields = bearer(bed, { claims: { rules, providers: ["alias"] } });
    expect((await send(bed, bed.via("/repos/acme/site?x=1"), { fields })).status).toBe(200);
    const before = bed.received.length;
    for (const path of [
      "/repos/evil",
      "/repos/acme/..%2f..%2fuser",
      "//repos/acme/x",
      "/repos/acme/x?_method=DELETE",
      "/repos/acme/;/x",
    ]) {
      expectRefusal(await send(bed, bed.via(path), { fields }), "CALL_NOT_PERMITTED", 403);
    }
    for (const method of ["POST", "HEAD", "OPTIONS"]) {
      const { status, fields: answered } = await send(bed, bed.via("/repos/acme/x"), { method, fields });
      expect([status, answered["x-relay-error"]]).toEqual([403, "CALL_NOT_PERMITTED"]);
    }
    expectRefusal(await send(bed, bed.via("/repos/acme/x", "keyed"), { fields }), "CALL_NOT_PERMITTED", 403);
    expect(bed.received.length).toBe(before);
  });
});

describe("a refusal", () => {
  it.each([
    ["/via/", "CALL_FORMAT_ERROR", 400],
    ["/via/plain", "CALL_FORMAT_ERROR", 400],
    ["/via/plain//a", "CALL_FORMAT_ERROR", 400],
    ["/via/nobody/127.0.0.1/a", "INVALID_PROVIDER", 404],
    ["/via/__proto__/127.0.0.1/a", "INVALID_PROVIDER", 404],
    ["/via/plain/evil.test/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/evil.test@HOST/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/HOST@evil.test/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/HOST%2Fx/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/HOST.evil.test/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/HOST\\@evil.test/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/127.0.0.1/a", "URL_NOT_ALLOWED", 403],
    ["/via/plain/[::1]:80/a", "URL_NOT_ALLOWED", 403],
  ])("of %s is %s", async (target, errorType, statusCode) => {
    const before = bed.received.length;
    const answer = await send(bed, target.replace("HOST", bed.host), { fields: bearer(bed) });
    expectRefusal(answer, errorType, statusCode);
    expect(bed.received.length).toBe(before);
  });

  it("of a method is one over HTTP/2, too", async () => {
    const session = connect(bed.harness.url);
    for (const method of ["TRACE", "trace", "PRI"]) {
      const stream = session.request({ ":method": method, ":path": bed.via("/a"), ...bearer(bed) });
      stream.resume().end();
      const fields = await new Promise<Record<string, unknown>>((resolve) => stream.once("response", resolve));
      expect(fields).toMatchObject({ ":status": 400, "x-relay-error": "CALL_FORMAT_ERROR" });
    }
    session.close();
  });

  it("is no answer of the provider's, which cannot write its field", async () => {
    bed.answer = answerWith(404, { "x-relay-error": "RATE_LIMITED", "content-type": "text/plain" }, "no such thing");
    const { status, fields, text } = await send(bed, bed.via("/a"), { fields: bearer(bed) });
    expect({ status, text }).toEqual({ status: 404, text: "no such thing" });
    expect(fields["x-relay-error"]).toBeUndefined();
  });

  it("of a user without a connection is one", async () => {
    const answer = await send(bed, bed.via("/a"), { fields: bearer(bed, { claims: { sub: "nobody" } }) });
    expectRefusal(answer, "INVALID_OAUTHID", 401);
  });
});

describe("an answer", () => {
  it("has the provider's token nowhere, also where it is cut by chunks", async () => {
    const half = bed.token.length >> 1;
    bed.answer = (_request, response) => {
      response.writeHead(200, { "content-type": "text/plain", "x-page-token": bed.token });
      response.write(`token ${bed.token.slice(0, half)}`);
      setImmediate(() => response.end(`${bed.token.slice(half)} end`));
    };
    const { fields, text } = await send(bed, bed.via("/a"), { fields: bearer(bed) });
    expect(text).toBe("token [redacted] end");
    expect(JSON.stringify(fields)).not.toContain(bed.token);
  });

  it("names the provider's own places through the relay, and others as they are", async () => {
    const own = `http://${bed.host}`;
    const here = `${bed.harness.url}/via/alias/${bed.host}`;
    const table: ReadonlyArray<readonly [string, string]> = [
      [`${own}/b?c=%2F#d`, `${here}/b?c=%2F#d`],
      [`${own.toUpperCase()}/B/c'`, `${here}/B/c'`],
      [`${own}/B/../../../other/c`, `${here}/other/c`],
      ["/%2e%2E/.%2e/other/%2e?d=/../e", `${here}/other/?d=/../e`],
      ["/b/../c?d=/e", `${here}/c?d=/e`],
      [`//${bed.host}/b`, `${here}/b`],
      ["b?c", `${here}/x/b?c`],
      ["../../b", `${here}/b`],
      ["?page=2", `${here}/x/a?page=2`],
      [own, `${here}/`],
      // Latin-1 text, as node:http writes it: the bytes of UTF-8, and others.
      [`${own}/caf\u00c3\u00a9?q=\u00e9`, `${here}/caf%c3%a9?q=%e9`],
      ["https://storage.example/b?sig=1", "https://storage.example/b?sig=1"],
      [`${own}.evil.test/b`, `${own}.evil.test/b`],
      [`http://user@${bed.host}/b`, `http://user@${bed.host}/b`],
      ["http://[", "http://["],
    ];
    for (const [written, expected] of table) {
      const links = `<${written}>; rel="next", <https://other.example/>; rel=help`;
      bed.answer = answerWith(302, { location: written, "content-location": written, link: links }, "");
      const { status, fields } = await send(bed, bed.via("/x/a?page=1", "alias"), { fields: bearer(bed) });
      expect({ status, location: fields.location, place: fields["content-location"], link: fields["link"] }).toEqual({
        status: 302,
        location: expected,
        place: expected,
        link: `<${expected}>; rel="next", <https://other.example/>; rel=help`,
      });
    }
  });

  it("leads to no other place at the relay", async () => {
    for (const place of [
      `${bed.harness.url}/via/other/api.example/x`,
      `${bed.harness.url.slice(5)}/oauth/connections`,
    ]) {
      bed.answer = answerWith(307, { location: place, link: `<${place}>; rel="next"` }, "");
      const { status, fields } = await send(bed, bed.via("/a"), { fields: bearer(bed) });
      expect({ status, location: fields.location, link: fields["link"] }).toEqual({ status: 307 });
      expect([fields["x-provider-location"], fields["x-provider-link"]]).toEqual([place, `<${place}>; rel="next"`]);
    }
  });

  it("leads to nobody else where a client would show the proof there", async () => {
    const { authorization } = bearer(bed) as { authorization: string };
    bed.answer = answerWith(302, { location: "https://storage.example/b" }, "");
    const proofs = [{ "x-relay-authorization": authorization }, { "x-relay-public-key": bed.application.publicKey }];
    for (const proof of proofs) {
      const fields = { ...proof, "x-relay-user-id": "ada", ...(proof["x-relay-public-key"] && { authorization }) };
      const answer = await send(bed, bed.via("/a"), { fields });
      expect([answer.fields.location, answer.fields["x-provider-location"]]).toEqual([
        undefined,
        "https://storage.example/b",
      ]);
    }
  });

  it("has no more links than a head may have room for, and those whose addresses speak of icons", async () => {
    const many = "<>".repeat(7_000);
    for (const [link, name] of [
      [many, "x-provider-link"],
      [`<http://${bed.host}/lexicon?page=2>; rel="next"`, "link"],
      [`<http://${bed.host}/a>; rel="icon"`, "x-provider-link"],
    ] as const) {
      bed.answer = answerWith(200, { link }, "[]");
      const { fields } = await send(bed, bed.via(`/${"a".repeat(4_000)}`), { fields: bearer(bed) });
      expect(Object.keys(fields).filter((each) => each.endsWith("link"))).toEqual([name]);
    }
  });

  it("leads on through the relay when its place is asked for", async () => {
    bed.answer = answerWith(200, { link: `<http://${bed.host}/b?page=2>; rel="next"` }, "[]");
    const { fields } = await send(bed, bed.via("/b"), { fields: bearer(bed) });
    const next = new URL(/<([^>]*)>/.exec(String(fields["link"]))?.[1] ?? "");
    expect((await send(bed, next.pathname + next.search, { fields: bearer(bed) })).status).toBe(200);
    expect(last()?.target).toBe("/b?page=2");
  });
});

describe("a browser", () => {
  const PAGE = "https://app.example.com";

  it("may ask from the origins of an application's list", async () => {
    const application = await bed.harness.createApplication({ callerAuth: "PRIVATE_KEY", allowedOrigins: [PAGE] });
    await bed.harness.connect(application, "ada", { providerName: "plain" });
    const asked = { "access-control-request-method": "PATCH", "access-control-request-headers": "authorization,x-own" };
    const preflight = (origin: string) => send(bed, bed.via("/a"), { method: "OPTIONS", fields: { origin, ...asked } });
    const before = bed.received.length;
    expect(await preflight(PAGE)).toMatchObject({
      status: 204,
      fields: {
        "access-control-allow-origin": PAGE,
        "access-control-allow-methods": "PATCH",
        "access-control-allow-headers": "authorization,x-own",
      },
    });
    expect((await preflight("https://evil.test")).status).toBe(403);
    const { "access-control-request-headers": _, ...none } = asked;
    const plain = await send(bed, bed.via("/a"), { method: "OPTIONS", fields: { origin: PAGE, ...none } });
    expect(plain.fields["access-control-allow-headers"]).toBe("authorization");
    expect(bed.received.length).toBe(before);
    const fields = { origin: PAGE, authorization: `Bearer ${signCallToken(application)}` };
    const answer = await send(bed, bed.via("/a"), { method: "PATCH", fields });
    expect(answer).toMatchObject({ status: 200, fields: { "access-control-allow-origin": PAGE } });
    expect(last()?.fields).not.toHaveProperty("origin");
    const refused = await send(bed, bed.via("/a"), { fields: { ...fields, origin: "https://evil.test" } });
    expectRefusal(refused, "CALLER_NOT_ALLOWED", 403);
    expect(refused.fields).not.toHaveProperty("access-control-allow-origin");
  });

  it("may read why a request was refused before its caller was known", async () => {
    await bed.harness.createApplication({ allowedOrigins: [PAGE] });
    const unknown = bearer(bed, { claims: { iss: "nobody-has-this-public-key" } });
    for (const [target, fields, type] of [
      [bed.via("/a"), {}, "CALLER_NOT_ALLOWED"],
      [bed.via("/a"), { authorization: "Bearer no-call-token" }, "CALLER_NOT_ALLOWED"],
      [bed.via("/a"), unknown, "INVALID_PUBLIC_KEY"],
      ["/via/plain", bearer(bed), "CALL_FORMAT_ERROR"],
    ] as const) {
      const refused = await send(bed, target, { fields: { ...fields, origin: PAGE } });
      expect(refused.fields).toMatchObject({ "x-relay-error": type, "access-control-allow-origin": PAGE });
      expect(refused.fields["access-control-expose-headers"]).toContain("x-relay-error");
      const elsewhere = await send(bed, target, { fields: { ...fields, origin: "https://evil.test" } });
      expect(elsewhere.fields).not.toHaveProperty("access-control-allow-origin");
      expect((await send(bed, target, { fields })).fields).not.toHaveProperty("vary");
    }
  });
});

describe("an answer that has come whole with its head", () => {
  it("tells the length of what is left of it after redaction, but for those that have no body", async () => {
    const body = JSON.stringify({ token: bed.token, text: "grüezi" });
    bed.answer = answerWith(200, { "content-type": "application/json" }, body);
    const passed = await send(bed, bed.via("/a"), { fields: bearer(bed) });
    expect(JSON.parse(passed.text)).toEqual({ token: "[redacted]", text: "grüezi" });
    expect(passed.fields).toMatchObject({ "content-length": String(passed.body.length) });
    for (const status of [204, 304]) {
      bed.answer = answerWith(status, {}, "");
      const bare = await send(bed, bed.via("/a"), { fields: bearer(bed) });
      expect([bare.status, bare.text, bare.fields["content-length"]]).toEqual([status, "", undefined]);
    }
    bed.answer = answerWith(200, { "content-length": "1000" }, "");
    const head = await send(bed, bed.via("/a"), { method: "HEAD", fields: bearer(bed) });
    expect(head.fields["content-length"]).toBe("1000");
  });
});

describe("a link through the relay", () => {
  it("is https where a trusted proxy says that the caller came so", async () => {
    const behind = await startViaBed({ env: { RELAY_TRUSTED_PROXIES: "127.0.0.1" } });
    const linkOf = async (of: ViaBed, scheme: string) => {
      of.answer = answerWith(200, { link: `<http://${of.host}/b?page=2>; rel="next"` }, "[]");
      const fields = { ...bearer(of), host: "relay.example.com", "x-forwarded-proto": scheme };
      return (await send(of, of.via("/b"), { fields })).fields["link"];
    };
    const through = (of: ViaBed, scheme: string) => `<${scheme}://relay.example.com${of.via("/b?page=2")}>; rel="next"`;
    expect(await linkOf(behind, "https")).toBe(through(behind, "https"));
    expect(await linkOf(behind, "HTTPS, http")).toBe(through(behind, "https"));
    for (const scheme of ["http", "ftp, https", ""]) expect(await linkOf(behind, scheme)).toBe(through(behind, "http"));
    await behind.close();
    expect(await linkOf(bed, "https")).toBe(through(bed, "http"));
  });
});
