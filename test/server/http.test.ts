import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import Database from "better-sqlite3";
import { type Dispatcher, request } from "undici";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createReadiness, createRouter } from "../../src/http/dispatch.js";
import { listen } from "../../src/http/listener.js";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { createKeyCheck } from "../../src/store/verify-keys.js";
import { connectHttp2, request as requestOverHttp2 } from "../http/support.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startSecondRelay } from "./second-relay.js";

const MAX_REQUEST_BYTES = 100_000;

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({ env: { RELAY_MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES) } });
  application = await harness.createApplication();
  await harness.connect(application, "ada");
});

afterAll(() => harness.close());

interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly text: string;
}

type Body = Dispatcher.DispatchOptions["body"];

async function send(
  url: string,
  method: Dispatcher.HttpMethod,
  headers: Record<string, string> = {},
  body: Body = null,
) {
  const answer = await request(url, { method, headers, body });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}

const route = () => `/oauth/method/sandbox/call?user_id=ada&public_key=${application.publicKey}`;
const call = (path: string, method = "GET") => JSON.stringify({ url: harness.sandbox.origin + path, method });

function post(body: Body, headers: Record<string, string> = {}, url: string = harness.url): Promise<Answer> {
  return send(url + route(), "POST", headers, body);
}

const rowOf = ({ text }: Answer) => (JSON.parse(text) as { rows: Record<string, unknown>[] }).rows[0];

describe("paths", () => {
  it.each([
    "/healthz/",
    "//healthz",
    "/HEALTHZ",
    "/oauth",
    "/oauth/method//call",
    "/oauth/method/sandbox",
    "/oauth/method/sandbox/call/",
    "/oauth/method/a/b/call",
    "/relay.v1.RelayService",
    "/relay.v1.RelayService/",
    "/relay.v1.RelayService/Nothing",
    "/relay.admin.v1.ProviderService/List",
    "/metrics",
    "/__proto__",
  ])("answer 404 to %s", async (path) => {
    for (const method of ["GET", "POST"] as const) {
      const answer = await send(harness.url + path, method);
      expect(answer.status).toBe(404);
      expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    }
  });

  it.each([
    ["GET", "/oauth/method/sandbox/call", "POST, OPTIONS"],
    ["HEAD", "/oauth/method/sandbox/call", "POST, OPTIONS"],
    ["PUT", "/oauth/method/sandbox/call", "POST, OPTIONS"],
    ["POST", "/healthz", "GET, HEAD"],
    ["DELETE", "/readyz", "GET, HEAD"],
    ["GET", "/relay.v1.RelayService/Call", "POST"],
    ["GET", "/grpc.health.v1.Health/Check", "POST"],
  ] as const)("answer 405 to %s %s, with Allow: %s", async (method, path, allow) => {
    const answer = await send(harness.url + path, method);
    expect(answer.status).toBe(405);
    expect(answer.headers["allow"]).toBe(allow);
  });
});

describe("/healthz and /readyz", () => {
  it.each(["/healthz", "/readyz", "/healthz?probe=1"])("answer 200 at %s", async (path) => {
    const answer = await send(harness.url + path, "GET");
    expect(answer).toMatchObject({ status: 200, text: "ok\n" });
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(await send(harness.url + path, "HEAD")).toMatchObject({ status: 200, text: "" });
  });

  it("say that it is alive and not ready while the store cannot be read, and ready again after", async () => {
    const db = new Database(join(harness.folder, "relay.db"));
    db.exec("ALTER TABLE applications RENAME TO away");
    expect(await send(`${harness.url}/readyz`, "GET")).toMatchObject({
      status: 503,
      text: expect.stringMatching(/^not ready: The relay cannot use its store/),
    });
    expect((await send(`${harness.url}/healthz`, "GET")).status).toBe(200);
    db.exec("ALTER TABLE away RENAME TO applications");
    db.close();
    expect((await send(`${harness.url}/readyz`, "GET")).status).toBe(200);
  });

  it("say that it is alive and not ready while another process seals with a key that this one does not have", async () => {
    const db = new Database(join(harness.folder, "relay.db"));
    onTestFinished(() => void db.close());
    const keyring = await loadKeyring(join(harness.folder, "other.key"), { mustExist: false });
    const { keyId, sealed } = createKeyCheck(createSealer(keyring));
    db.prepare("INSERT INTO key_checks (key_id, sealed, created_at) VALUES (?, ?, 1)").run(keyId, sealed);
    expect((await send(`${harness.url}/readyz`, "GET")).status).toBe(503);
    expect((await send(`${harness.url}/healthz`, "GET")).status).toBe(200);
    db.prepare("DELETE FROM key_checks WHERE key_id = ?").run(keyId);
    expect((await send(`${harness.url}/readyz`, "GET")).status).toBe(200);
  });

  it("say that it is alive and not ready once it stops, and when the store is closed", async () => {
    for (const isStopping of [true, false]) {
      const readiness = createReadiness(async () => (isStopping ? undefined : "closed"));
      const handler = createRouter([], readiness);
      const options = { host: "127.0.0.1", port: 0, tls: undefined, onFault: () => {}, handler };
      const listener = await listen(options);
      onTestFinished(() => listener.close(0));
      const url = `http://127.0.0.1:${listener.address.port}`;
      if (isStopping) expect((await send(`${url}/readyz`, "GET")).status).toBe(200);
      if (isStopping) readiness.stop();
      expect((await send(`${url}/readyz`, "GET")).status).toBe(503);
      expect((await send(`${url}/healthz`, "GET")).status).toBe(200);
    }
  });
});

describe("RELAY_HTTP_STATUS", () => {
  const ROWS = [
    ["a success", "/me", 200, 200],
    ["a redirect", "/redirect?to=x", 302, 302],
    ["a refusal of the provider", "/status/404", 404, 404],
    ["an odd status", "/status/599", 599, 599],
    ["204, which has no body", "/no-content", 204, 200],
    ["205, which has no body", "/status/205", 205, 200],
    ["304, which has no body", "/status/304", 304, 200],
  ] as const;

  it.each(ROWS)("envelope answers 200 for %s", async (_what, path, statusCode) => {
    const answer = await post(call(path));
    expect(answer.status).toBe(200);
    expect(rowOf(answer)).toMatchObject({ statusCode });
  });

  it("mirror answers with the status of the row, where a response with a body can have it", async () => {
    const { url } = await startSecondRelay(harness, { RELAY_HTTP_STATUS: "mirror" });
    const session = await connectHttp2(Number(new URL(url).port));
    for (const [, path, statusCode, status] of ROWS) {
      const answer = await post(call(path), {}, url);
      expect([path, answer.status]).toEqual([path, status]);
      expect(rowOf(answer)).toMatchObject({ statusCode });
      const second = await requestOverHttp2(session, { ":method": "POST", ":path": route() }, call(path));
      expect([path, second.status]).toEqual([path, status]);
    }
  });

  it("mirror answers with the status of the relay's own refusals", async () => {
    const env = { RELAY_HTTP_STATUS: "mirror", RELAY_MAX_REQUEST_BYTES: String(MAX_REQUEST_BYTES) };
    const { url } = await startSecondRelay(harness, env);
    expect((await post("{", {}, url)).status).toBe(400);
    expect((await post(call("/me").replace(harness.sandbox.origin, "https://evil.test"), {}, url)).status).toBe(403);
    expect((await post(" ".repeat(MAX_REQUEST_BYTES + 1), {}, url)).status).toBe(413);
  });

  it.each([600, 999])("mirror answers 502 for %d, which is no status of HTTP", async (statusCode) => {
    const { url } = await startSecondRelay(harness, { RELAY_HTTP_STATUS: "mirror" });
    const session = await connectHttp2(Number(new URL(url).port));
    const fields = { ":method": "POST", ":path": route() };
    const { status, body } = await requestOverHttp2(session, fields, call(`/status/${statusCode}`));
    expect({ status, body }).toMatchObject({ status: 502, body: expect.stringContaining("PROVIDER_RESPONSE_INVALID") });
    expect((await post(call(`/status/${statusCode}`), {}, url)).status).toBe(502);
  });
});

describe("the body of the JSON route", () => {
  const padded = (size: number) => call("/me").padEnd(size);
  const chunked = (text: string) => Readable.from([text.slice(0, 100), text.slice(100)]);

  it.each([
    ["of known length", padded],
    ["in chunks", (size: number) => chunked(padded(size))],
  ])("is refused above the limit, %s", async (_how, body) => {
    for (const size of [MAX_REQUEST_BYTES + 1, MAX_REQUEST_BYTES * 3]) {
      const answer = await post(body(size));
      expect(answer.status).toBe(200);
      expect(rowOf(answer)).toMatchObject({ errorType: "REQUEST_TOO_LARGE", statusCode: 413 });
    }
    expect(rowOf(await post(body(MAX_REQUEST_BYTES)))).toMatchObject({ pincStatus: "success" });
  });

  it("is refused above the limit over HTTP/2, and the connection goes on", async () => {
    const session = await connectHttp2(Number(new URL(harness.url).port));
    const fields = { ":method": "POST", ":path": route() };
    for (let times = 0; times < 6; times++) {
      const refused = await requestOverHttp2(session, fields, padded(MAX_REQUEST_BYTES * 3));
      expect(JSON.parse(refused.body)).toMatchObject({ rows: [{ errorType: "REQUEST_TOO_LARGE" }] });
    }
    const answer = await requestOverHttp2(session, fields, call("/me"));
    expect(JSON.parse(answer.body)).toMatchObject({ rows: [{ pincStatus: "success" }] });
  });

  it.each([
    "",
    "text/plain",
    "text/plain;charset=UTF-8",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/grpc",
    "application/octet-stream",
    "no media type",
  ])("is JSON whatever content-type says: '%s'", async (contentType) => {
    expect(rowOf(await post(call("/me"), { "content-type": contentType }))).toMatchObject({ pincStatus: "success" });
  });

  it.each(["gzip", "x-gzip", "br", "deflate", "compress", "zstd", "GZIP", "identity, gzip"])(
    "may not be compressed with content-encoding %s",
    async (coding) => {
      const before = harness.sandbox.requests.length;
      const row = rowOf(await post(gzipSync(call("/me")), { "content-encoding": coding }));
      expect(row).toMatchObject({ errorType: "CALL_FORMAT_ERROR", statusCode: 400 });
      expect(row?.["inernalError"]).toMatch(/content-encoding/i);
      expect(harness.sandbox.requests.length).toBe(before);
    },
  );

  it("may say that it has no content-encoding", async () => {
    expect(rowOf(await post(call("/me"), { "content-encoding": "identity" }))).toMatchObject({ pincStatus: "success" });
  });
});
