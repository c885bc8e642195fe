import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { createConnection, type Socket } from "node:net";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { type RawProvider, startRawProvider } from "../../support/raw-provider.js";
import { createStreamCallers, rawTarget, type StreamCaller } from "../../support/stream-callers.js";

const EVENTS = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
/** What HTTP/2 allows on no answer (RFC 9113 section 8.2.2), and a field that it does. */
const CONNECTION_FIELDS = {
  connection: "keep-alive",
  "http2-settings": "AAMAAABkAAQAAP__",
  "keep-alive": "timeout=5",
  "proxy-connection": "keep-alive",
  te: "gzip",
  "transfer-encoding": "chunked",
  upgrade: "h2c",
};
const MIB = 1024 * 1024;

let provider: RawProvider;
/** The provider's side of the newest call. */
let socket: Socket;
let harness: Harness;
let application: TestApplication;
let callers: ReadonlyMap<string, StreamCaller>;

beforeAll(async () => {
  provider = await startRawProvider((opened, { head }) => {
    socket = opened;
    if (head.includes("/events")) opened.write(EVENTS);
    if (head.includes("/endless")) fill(opened);
    if (head.includes("/connection-fields")) {
      const fields = Object.entries({ ...CONNECTION_FIELDS, "x-fine": "1" }).map((field) => `${field.join(": ")}\r\n`);
      opened.write(`HTTP/1.1 200 OK\r\n${fields.join("")}\r\n0\r\n\r\n`);
    }
  });
  harness = await startHarness({
    env: { RELAY_MAX_IN_FLIGHT: "4", RELAY_DEADLINE_MS: "1000" },
    providers: [
      {
        name: "raw",
        apiOrigins: [provider.origin],
        expirySignals: [{ statusCode: 200, member: "error", values: ["token_expired"] }],
      },
    ],
  });
  application = await harness.createApplication({ allowedOrigins: ["https://app.test"] });
  await harness.connect(application, "u", { providerName: "raw" });
  await harness.connect(application, "u");
  callers = new Map(createStreamCallers(harness.url));
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

/** Sends bytes as long as somebody takes them. */
function fill(opened: Socket): void {
  opened.write("HTTP/1.1 200 OK\r\n\r\n");
  const piece = Buffer.alloc(64 * 1024, "a");
  const more = () => {
    while (!opened.destroyed && opened.write(piece));
  };
  opened.on("drain", more);
  more();
}

const json = (text: string) =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const callTo = (path: string, call: object = {}, providerName = "raw") => ({
  providerName,
  userId: "u",
  publicKey: application.publicKey,
  call: { url: (providerName === "raw" ? provider.origin : harness.sandbox.origin) + path, method: "GET", ...call },
});
const open = (path: string, options: object = {}) =>
  request(harness.url + rawTarget(callTo(path)), {
    method: "POST",
    body: JSON.stringify(callTo(path).call),
    ...options,
  });

/** Resolves with the log line of the newest call, once there are that many. */
async function logLine(count: number): Promise<Record<string, unknown>> {
  for (;;) {
    const lines = harness.logLines.filter((line) => line.includes('"msg":"call"'));
    if (lines.length >= count) return JSON.parse(lines[count - 1] as string) as Record<string, unknown>;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
const calls = () => harness.logLines.filter((line) => line.includes('"msg":"call"')).length;

describe("an event stream", () => {
  it("has its head and each event passed on at once over HTTP/1.1", async () => {
    const before = calls();
    const { statusCode, headers, body } = await open("/events");
    expect(statusCode).toBe(200);
    expect(headers).toMatchObject({ "content-type": "text/event-stream", "x-content-type-options": "nosniff" });
    const events = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    for (const event of ["data: 1\n\n", "data: 2\n\n"]) {
      socket.write(chunk(event));
      expect((await events.next()).value?.toString()).toBe(event);
    }
    socket.write("0\r\n\r\n");
    expect((await events.next()).done).toBe(true);
    expect(await logLine(before + 1)).toMatchObject({ status: 200, responseBytes: 18, callId: headers["x-call-id"] });
  });

  it("has its head and each event passed on at once over HTTP/2", async () => {
    const session = connectHttp2(harness.url);
    const stream = session.request({ ":method": "POST", ":path": rawTarget(callTo("/events")) });
    stream.end(JSON.stringify(callTo("/events").call));
    expect((await once(stream, "response"))[0]).toMatchObject({ ":status": 200, "content-type": "text/event-stream" });
    for (const event of ["data: 1\n\n", "data: 2\n\n"]) {
      socket.write(chunk(event));
      expect(String((await once(stream, "data"))[0])).toBe(event);
    }
    socket.write("0\r\n\r\n");
    await once(stream, "end");
    session.close();
  });
});

describe("fields that belong to a connection", () => {
  it.each(["raw HTTP/1.1", "raw HTTP/2"])("stay behind over %s", async (protocol) => {
    const { head } = await (callers.get(protocol) as StreamCaller)(callTo("/connection-fields"));
    expect(head).toMatchObject({ statusCode: 200, headers: { "x-provider-x-fine": "1" } });
    const provided = Object.entries(head?.headers ?? {}).filter(
      ([name, value]) => (CONNECTION_FIELDS as Record<string, string>)[name] === value,
    );
    // Of HTTP/1.1 the relay has such fields of its own.
    const own = ["connection", "keep-alive", "transfer-encoding"];
    expect(provided.filter(([name]) => protocol === "raw HTTP/2" || !own.includes(name))).toEqual([]);
  });
});

describe("an answer that fails after its head", () => {
  it.each([
    ["is cut short", () => socket.end()],
    ["is reset", () => socket.resetAndDestroy()],
    ["is no HTTP any more", () => socket.write("zz\r\n")],
  ])("is not taken for a complete one when it %s", async (_name, fail) => {
    const before = calls();
    const { body } = await open("/events");
    socket.write(chunk("data: 1\n\n"));
    const events = body[Symbol.asyncIterator]();
    await events.next();
    fail();
    await expect(events.next()).rejects.toThrow();
    expect(await logLine(before + 1)).toMatchObject({ status: 502, errorType: "PROVIDER_RESPONSE_INVALID" });
  });

  it("resets the stream of HTTP/2, and not its connection", async () => {
    const session = connectHttp2(harness.url);
    const stream = session.request({ ":method": "POST", ":path": rawTarget(callTo("/events")) });
    stream.end(JSON.stringify(callTo("/events").call));
    await once(stream, "response");
    socket.end();
    stream.resume();
    const [error] = await once(stream, "error");
    expect(String(error)).toContain("INTERNAL_ERROR");
    expect(session.closed).toBe(false);
    session.close();
  });

  it("resets the connection of HTTP/1.0, which knows no other sign", async () => {
    const client = createConnection(Number(new URL(harness.url).port), "127.0.0.1");
    const body = JSON.stringify(callTo("/events").call);
    client.write(
      `POST ${rawTarget(callTo("/events"))} HTTP/1.0\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await once(client, "data");
    socket.end();
    const [error] = await once(client, "error");
    expect(error).toMatchObject({ code: "ECONNRESET" });
  });
});

describe("a caller that goes away", () => {
  it.each(["/silence", "/events", "/endless"])("ends the call at the provider: %s", async (path) => {
    const before = calls();
    const seen = provider.requests.length;
    const controller = new AbortController();
    const opened = open(path, { signal: controller.signal }).catch((error: unknown) => error);
    await provider.seen(seen + 1);
    if (path !== "/silence") await opened;
    controller.abort();
    await provider.letGo(seen);
    await logLine(before + 1);
    expect(harness.logLines.join("")).not.toContain('"fault"');
  });

  it("does so though it read nothing, and little was taken from the provider until then", async () => {
    const before = calls();
    const client = createConnection(Number(new URL(harness.url).port), "127.0.0.1");
    const body = JSON.stringify(callTo("/endless").call);
    client.pause();
    const seen = provider.requests.length;
    client.write(
      `POST ${rawTarget(callTo("/endless"))} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await provider.seen(seen + 1);
    let written = -1;
    while (written !== socket.bytesWritten) {
      written = socket.bytesWritten;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(written).toBeLessThan(32 * MIB);
    client.destroy();
    await provider.letGo(seen);
    expect(((await logLine(before + 1))["responseBytes"] as number) / MIB).toBeLessThan(32);
  });
});

describe("a stream", () => {
  it("counts as a call in flight, and gives its place back", async () => {
    const controllers = [1, 2, 3, 4].map(() => new AbortController());
    await Promise.all(controllers.map(({ signal }) => open("/events", { signal })));
    const refused = await open("/events");
    expect(refused.statusCode).toBe(503);
    expect(refused.headers["x-error-type"]).toBe("OVERLOADED");
    await refused.body.dump();
    const before = calls();
    for (const controller of controllers) controller.abort();
    await logLine(before + 4);
    const again = await open("/events");
    expect(again.statusCode).toBe(200);
    again.body.destroy();
  });

  it("has only until its head for the deadline of a call", async () => {
    const { body } = await open("/events");
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    socket.write(chunk("late\n"));
    const events = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    expect((await events.next()).value?.toString()).toBe("late\n");
    body.destroy();
    const silent = await open("/silence");
    expect(silent.statusCode).toBe(504);
    expect(await silent.body.json()).toMatchObject({ rows: [{ errorType: "PROVIDER_TIMEOUT" }] });
  });

  it("has no token in it, though it comes in two pieces", async () => {
    const token = await harness.connect(application, "u", { providerName: "raw" });
    const { body } = await open("/events");
    const events = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    socket.write(chunk(`data: ${token.slice(0, 12)}`));
    expect((await events.next()).value?.toString()).toBe("data: ");
    socket.write(chunk(`${token.slice(12)}\n\n`));
    expect((await events.next()).value?.toString()).toBe("[redacted]\n\n");
    body.destroy();
  });
});

describe("answers on the raw route", () => {
  it.each([
    ["204", "/no-content", {}, 204],
    ["304", "/status/304", {}, 304],
    ["205", "/status/205", {}, 205],
    ["HEAD", "/json?size=100", { method: "HEAD" }, 200],
  ])("have no body or the right status: %s", async (_name, path, call, status) => {
    for (const protocol of ["raw HTTP/1.1", "raw HTTP/2"]) {
      const { head, body } = await (callers.get(protocol) as StreamCaller)(callTo(path, call, "sandbox"));
      expect(head?.statusCode).toBe(status);
      expect(body).toHaveLength(0);
    }
  });

  it("are none with a status that HTTP does not have", async () => {
    for (const protocol of ["raw HTTP/1.1", "raw HTTP/2"]) {
      const { head, row } = await (callers.get(protocol) as StreamCaller)(callTo("/status/999", {}, "sandbox"));
      expect(head).toBeUndefined();
      expect(row).toMatchObject({ statusCode: 502, errorType: "PROVIDER_RESPONSE_INVALID" });
    }
  });

  it("are ended where HTTP has no content, and the provider's socket is let go, though it sends some", async () => {
    const before = calls();
    const opened = open("/asked");
    const seen = provider.requests.length;
    await provider.seen(seen + 1);
    socket.write("HTTP/1.1 205 Reset Content\r\n\r\nsome\n");
    const { statusCode, body } = await opened;
    expect([statusCode, await body.text()]).toEqual([205, ""]);
    await provider.letGo(seen);
    expect(await logLine(before + 1)).toMatchObject({ status: 205 });
  });

  it("let a listed page read them, with the names of their fields", async () => {
    const headers = { origin: "https://app.test" };
    const whole = await request(harness.url + rawTarget(callTo("/multi", {}, "sandbox")), {
      method: "POST",
      headers,
      body: JSON.stringify(callTo("/multi", {}, "sandbox").call),
    });
    expect(whole.headers).toMatchObject({
      "access-control-allow-origin": "https://app.test",
      "access-control-expose-headers": expect.stringContaining("x-call-id"),
      "content-security-policy": expect.stringContaining("sandbox"),
    });
    await whole.body.dump();
    const preflight = await request(harness.url + rawTarget(callTo("/multi")), { method: "OPTIONS", headers });
    expect(preflight.statusCode).toBe(204);
    const get = await request(harness.url + rawTarget(callTo("/multi")));
    expect(get.statusCode).toBe(405);
    expect(get.headers["allow"]).toBe("POST, OPTIONS");
    await get.body.dump();
  });
});

describe("a token that has ended", () => {
  it.each([
    ["its status", 'HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error="invalid_token"\r\nContent-Length: 0\r\n\r\n'],
    ["a member of its body", json('{"error":"token_expired"}')],
  ])("is replaced before a head is passed on, when the answer says so by %s", async (_name, refusal) => {
    const seen = provider.requests.length;
    const opened = open("/asked");
    await provider.seen(seen + 1);
    const token = await harness.connect(application, "u", { providerName: "raw" });
    socket.write(refusal);
    await provider.seen(seen + 2);
    expect(provider.requests[seen + 1]?.head).toContain(token);
    socket.write(json('{"ok":true}'));
    const { statusCode, body } = await opened;
    expect([statusCode, await body.text()]).toEqual([200, '{"ok":true}']);
  });

  it("is looked for in the first 64 KiB of JSON only, and all of it is passed on", async () => {
    const seen = provider.requests.length;
    const opened = open("/asked");
    await provider.seen(seen + 1);
    const text = `{"error":"token_expired","rest":"${"a".repeat(200_000)}"}`;
    socket.write(json(text));
    expect(await (await opened).body.text()).toBe(text);
    expect(provider.requests).toHaveLength(seen + 1);
  });
});

describe("a relay that stops", () => {
  it("lets a stream come to its end, and ends the others cut short", async () => {
    const short = await open("/events");
    const shortSocket = socket;
    const long = await open("/events");
    const closing = harness.closeRelay();
    shortSocket.write(`${chunk("end")}0\r\n\r\n`);
    expect(await short.body.text()).toBe("end");
    await expect(long.body.text()).rejects.toThrow();
    await closing;
  });
});
