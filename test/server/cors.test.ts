import { join } from "node:path";
import Database from "better-sqlite3";
import { type Dispatcher, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const PAGE = "https://app.example.com";
const OTHER_PAGE = "https://other.example.com";
const DISABLED_PAGE = "https://disabled.example.com";
const RPC = "/relay.v1.RelayService/Call";

let harness: Harness;
let application: TestApplication;
let other: TestApplication;
let unlisted: TestApplication;

beforeAll(async () => {
  harness = await startHarness();
  application = await harness.createApplication({ allowedOrigins: [PAGE, "http://localhost:3000"] });
  other = await harness.createApplication({ allowedOrigins: [OTHER_PAGE] });
  unlisted = await harness.createApplication();
  await harness.createApplication({ allowedOrigins: [DISABLED_PAGE], state: "DISABLED" });
  for (const one of [application, other, unlisted]) await harness.connect(one, "ada");
});

afterAll(() => harness.close());

interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

async function send(
  method: Dispatcher.HttpMethod,
  path: string,
  headers: Record<string, string>,
  body?: string | Buffer,
) {
  const answer = await request(harness.url + path, { method, headers, body: body ?? null });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

function preflight(path: string, origin: string, requested = "content-type"): Promise<Answer> {
  return send("OPTIONS", path, {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": requested,
  });
}

const routeFor = (publicKey: string, user = "ada") =>
  `/oauth/method/sandbox/call?user_id=${user}&public_key=${publicKey}`;
const me = () => ({ url: `${harness.sandbox.origin}/me`, method: "GET" });

function expectReadable({ headers }: Answer, origin: string): void {
  expect(headers["access-control-allow-origin"]).toBe(origin);
  expect(headers["access-control-allow-credentials"]).toBe("true");
  expect(headers["vary"]).toMatch(/\borigin\b/i);
}

/** A browser gives nothing of such an answer to the page. */
function expectUnreadable({ headers }: Answer): void {
  expect(Object.keys(headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  expect(headers["vary"]).toMatch(/\borigin\b/i);
}

const STRANGERS = [
  "https://evil.example",
  "null",
  "*",
  "",
  "HTTPS://APP.EXAMPLE.COM",
  "http://app.example.com",
  "https://app.example.com/",
  "https://app.example.com:443",
  "https://app.example.com.evil.example",
  "https://evil.example/https://app.example.com",
  "https://xapp.example.com",
  `${PAGE}, ${PAGE}`,
  `${PAGE} https://evil.example`,
];

describe("the JSON route for a browser", () => {
  it.each(STRANGERS)("refuses the preflight and the call of a page at '%s'", async (origin) => {
    const asked = await preflight(routeFor(application.publicKey), origin);
    expect(asked.status).toBe(403);
    expectUnreadable(asked);
    const called = await send("POST", routeFor(application.publicKey), { origin }, JSON.stringify(me()));
    expect(called.status).toBe(200);
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ errorType: "CALLER_NOT_ALLOWED", statusCode: 403 }] });
    expectUnreadable(called);
  });

  it("refuses the preflight with an unknown public key and with two", async () => {
    const path = routeFor(application.publicKey);
    for (const target of [routeFor("nobody"), `${path}&public_key=x`, `${path}&user_id=%`]) {
      const asked = await preflight(target, PAGE);
      expect(asked.status).toBe(403);
      expectUnreadable(asked);
    }
  });

  it("lets no page call an application without origins", async () => {
    expectUnreadable(await preflight(routeFor(unlisted.publicKey), PAGE));
    const called = await send("POST", routeFor(unlisted.publicKey), { origin: PAGE }, JSON.stringify(me()));
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ errorType: "CALLER_NOT_ALLOWED" }] });
    expectUnreadable(called);
  });

  it("lets no page call another application", async () => {
    expectUnreadable(await preflight(routeFor(other.publicKey), PAGE));
    const called = await send("POST", routeFor(other.publicKey), { origin: PAGE }, JSON.stringify(me()));
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ errorType: "CALLER_NOT_ALLOWED" }] });
    expectUnreadable(called);
  });

  it.each([PAGE, "http://localhost:3000"])("allows the preflight of a listed page at %s", async (origin) => {
    const asked = await preflight(routeFor(application.publicKey), origin, "content-type,x-partner-key");
    expect(asked.status).toBe(204);
    expectReadable(asked, origin);
    expect(asked.headers["access-control-allow-methods"]).toBe("POST");
    expect(asked.headers["access-control-allow-headers"]).toBe("content-type,x-partner-key");
    expect(asked.headers["access-control-max-age"]).toMatch(/^\d+$/);
  });

  it.each(["a;b", "a\tb", "*", "x".repeat(3000)])("repeats no odd list of headers: %s", async (requested) => {
    const asked = await preflight(routeFor(application.publicKey), PAGE, requested);
    expect(asked.status).toBe(204);
    expect(asked.headers["access-control-allow-headers"]).toBe("content-type");
  });

  it.each([
    ["JSON that is cut off", "{", undefined, "CALL_FORMAT_ERROR"],
    ["an unknown user", undefined, "nobody", "INVALID_OAUTHID"],
    ["another host", '{"url":"https://evil.example/","method":"GET"}', undefined, "URL_NOT_ALLOWED"],
  ])("lets a listed page read the row of %s", async (_what, body, user, errorType) => {
    const path = routeFor(application.publicKey, user);
    const called = await send("POST", path, { origin: PAGE }, body ?? JSON.stringify(me()));
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ errorType }] });
    expectReadable(called, PAGE);
  });

  it("lets a listed page call and read the answer", async () => {
    const called = await send("POST", routeFor(application.publicKey), { origin: PAGE }, JSON.stringify(me()));
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ pincStatus: "success" }] });
    expectReadable(called, PAGE);
  });

  it("says nothing of CORS to a caller that is no browser", async () => {
    const called = await send("POST", routeFor(application.publicKey), {}, JSON.stringify(me()));
    expect(JSON.parse(called.text)).toMatchObject({ rows: [{ pincStatus: "success" }] });
    expect(Object.keys(called.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });
});

const CONNECT = { "content-type": "application/json", "connect-protocol-version": "1" };
const GRPC_WEB = { "content-type": "application/grpc-web+json", "x-grpc-web": "1" };

/** A message as each protocol of browsers frames it. */
const PROTOCOLS: ReadonlyArray<readonly [string, Record<string, string>, (json: string) => Buffer]> = [
  ["Connect", CONNECT, (json) => Buffer.from(json)],
  ["gRPC-Web", GRPC_WEB, (json) => Buffer.concat([envelopeHead(Buffer.byteLength(json)), Buffer.from(json)])],
];

function envelopeHead(length: number): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return head;
}

describe.each(PROTOCOLS)("%s for a browser", (_protocol, fields, frame) => {
  const message = ({ publicKey }: TestApplication, userId = "ada") =>
    frame(JSON.stringify({ providerName: "sandbox", userId, publicKey, call: me() }));
  const call = (origin: string, body: Buffer) => send("POST", RPC, { ...fields, origin }, body);

  it.each(STRANGERS)("refuses the preflight and the call of a page at '%s'", async (origin) => {
    const asked = await preflight(RPC, origin, Object.keys(fields).join(","));
    expect(asked.status).toBe(403);
    expectUnreadable(asked);
    const called = await call(origin, message(application));
    expect(called.status).toBe(200);
    expect(called.text).toContain('"errorType":"CALLER_NOT_ALLOWED"');
    expectUnreadable(called);
  });

  it("refuses the page of a disabled application", async () => {
    const asked = await preflight(RPC, DISABLED_PAGE);
    expect(asked.status).toBe(403);
    expectUnreadable(asked);
  });

  it("allows the preflight of a page that any application lists, and refuses its call of another one", async () => {
    const asked = await preflight(RPC, OTHER_PAGE);
    expect(asked.status).toBe(204);
    expectReadable(asked, OTHER_PAGE);
    const called = await call(OTHER_PAGE, message(application));
    expect(called.text).toContain('"errorType":"CALLER_NOT_ALLOWED"');
    expectReadable(called, OTHER_PAGE);
  });

  it("allows everything that clients in browsers send", async () => {
    const asked = await preflight(RPC, PAGE, "");
    expect(asked.headers["access-control-allow-methods"]).toBe("POST");
    const allowed = String(asked.headers["access-control-allow-headers"]).toLowerCase().split(", ");
    const sent = ["content-type", "connect-protocol-version", "connect-timeout-ms", "grpc-timeout", "x-grpc-web"];
    expect(allowed).toEqual(expect.arrayContaining([...sent, "x-user-agent", "authorization", "x-partner-key"]));
    const own = await preflight(RPC, PAGE, "traceparent,x-request-id");
    expect(own.headers["access-control-allow-headers"]).toBe("traceparent,x-request-id");
  });

  it("lets a listed page read what is wrong with a call", async () => {
    const wrongUser = await call(PAGE, message(application, "nobody"));
    expect(wrongUser.text).toContain('"errorType":"INVALID_OAUTHID"');
    expectReadable(wrongUser, PAGE);
    expectReadable(await call(PAGE, frame("{")), PAGE);
    const wrongType = await send(
      "POST",
      RPC,
      { ...fields, "content-type": "text/plain", origin: PAGE },
      message(application),
    );
    expect(wrongType.status).toBe(415);
    expectReadable(wrongType, PAGE);
  });

  it("lets a listed page call and read the answer, with the status of gRPC-Web", async () => {
    const called = await call(PAGE, message(application));
    expect(called.text).toContain('"pincStatus":"success"');
    expectReadable(called, PAGE);
    const exposed = String(called.headers["access-control-expose-headers"]).toLowerCase().split(", ");
    expect(exposed).toEqual(expect.arrayContaining(["grpc-status", "grpc-message", "grpc-status-details-bin"]));
  });
});

describe("a browser while the store cannot be read", () => {
  it("is answered, and may read nothing", async () => {
    const db = new Database(join(harness.folder, "relay.db"));
    db.exec("ALTER TABLE applications RENAME TO away");
    try {
      const message = JSON.stringify({ providerName: "sandbox", userId: "ada", publicKey: "x", call: me() });
      for (const [path, body] of [
        [routeFor(application.publicKey), JSON.stringify(me())],
        [RPC, message],
      ] as const) {
        const asked = await preflight(path, PAGE);
        expect(asked.status).toBe(403);
        expectUnreadable(asked);
        const called = await send("POST", path, { ...CONNECT, origin: PAGE }, body);
        expect(JSON.parse(called.text)).toMatchObject({ rows: [{ pincStatus: "error" }] });
        expectUnreadable(called);
      }
    } finally {
      db.exec("ALTER TABLE away RENAME TO applications");
      db.close();
    }
  });
});
