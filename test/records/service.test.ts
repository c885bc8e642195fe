import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { StoredCall } from "../../src/records/call-block.js";
import type { CaptureContent } from "../../src/records/call-capture.js";
import { findCapture } from "../../src/records/capture-store.js";
import { findCall, listCalls } from "../../src/records/list-calls.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { createStreamCallers } from "../support/stream-callers.js";

let harness: Harness;
let application: TestApplication;
let token: string;

beforeAll(async () => {
  harness = await startHarness();
});
afterAll(() => harness.close());

beforeEach(async () => {
  application = await harness.createApplication();
  token = await harness.connect(application, "ada");
});

const at = (path: string) => `${harness.sandbox.origin}${path}`;

/** Calls over the JSON route. Everything secret or personal is a canary. */
async function call(description: object, userId = "ada") {
  const [[, rest] = []] = createCallers(harness.url);
  const request = { providerName: "sandbox", userId, publicKey: application.publicKey, call: description as never };
  return (await rest?.(request)) as Readonly<Record<string, unknown>>;
}

/** Every call that was recorded of the application, oldest first, when it is so many. */
function recorded(count: number): Promise<StoredCall[]> {
  const filter = { applicationId: application.id, providers: undefined, errorType: undefined };
  return vi.waitFor(
    async () => {
      const { calls } = await listCalls(harness.store.calls, filter, { pageSize: 1000, from: undefined });
      expect(calls).toHaveLength(count);
      return calls.toReversed();
    },
    { timeout: 10_000 },
  );
}

async function switchCapture(untilMs: number): Promise<void> {
  const captureUntil = untilMs === 0 ? 0 : Date.now() + untilMs;
  await harness.store.applications.update(application.publicKey, { captureUntil }, Date.now());
  if (process.env["TEST_DATABASE"] !== "postgres") return;
  // Another process sees it at the latest then.
  await new Promise((resolve) => setTimeout(resolve, 1100));
}

const capturedOf = (row: Readonly<Record<string, unknown>>): Promise<CaptureContent> =>
  vi.waitFor(
    async () => {
      const sealed = await harness.store.captures.find(String(row["callId"]));
      if (sealed === undefined) throw new Error("not captured yet");
      expect(Buffer.from(sealed.content).toString("latin1")).not.toContain("response");
      const { content } = await findCapture(harness.store.captures, harness.sealer, sealed.callId);
      if (content === undefined) throw new Error("cannot be opened");
      return content;
    },
    { timeout: 10_000 },
  );

describe("a recorded call", () => {
  it("tells where it went, how it ended and how long each part took, over every protocol", async () => {
    const description = {
      url: at("/echo/a%20b?one=CANARY_QUERY&CANARY_BARE&one=2#CANARY_FRAGMENT"),
      method: "POST",
      headers: { "x-secret": "CANARY_HEADER" },
      payload: { member: "CANARY_BODY" },
      queryString: { two: "CANARY_QUERY", "three/4": 1 },
    };
    const request = { providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call: description };
    for (const [, caller] of createCallers(harness.url))
      expect(await caller(request)).toMatchObject({ statusCode: 200 });
    const calls = await recorded(5);
    expect(calls.map(({ surface }) => surface)).toEqual(["rest", "connect", "connect", "grpc", "grpc-web"]);
    for (const each of calls) {
      const { totalMs, tokenMs = Number.NaN, queueMs = Number.NaN, providerMs = Number.NaN } = each;
      expect(each).toMatchObject({
        provider: "sandbox",
        method: "POST",
        origin: harness.sandbox.origin,
        path: "/echo/a%20b",
        queryKeys: ["one", "two", "three/4"],
        status: 200,
        errorType: undefined,
        requestBytes: JSON.stringify(description.payload).length,
        isCaptured: false,
      });
      expect(tokenMs + queueMs + providerMs).toBeLessThanOrEqual(totalMs + 0.3);
      expect(each.responseBytes).toBeGreaterThan(0);
      expect(Math.abs(each.startedAt - Date.now())).toBeLessThan(60_000);
      expect(await findCall(harness.store.calls, each.callId)).toEqual(each);
    }
    expect(JSON.stringify(calls)).not.toContain("CANARY");
  });

  it("tells of streams, too", async () => {
    const request = {
      providerName: "sandbox",
      userId: "ada",
      publicKey: application.publicKey,
      call: { url: at("/me"), method: "GET" },
    };
    for (const [, caller] of createStreamCallers(harness.url)) await caller(request);
    const calls = await recorded(6);
    for (const { status, responseBytes, path } of calls) {
      expect([status, path]).toEqual([200, "/me"]);
      expect(responseBytes).toBeGreaterThan(0);
    }
  });

  it("counts the bytes of a text, not its characters", async () => {
    await call({ url: at("/html"), method: "GET" });
    const [{ responseBytes } = { responseBytes: 0 }] = await recorded(1);
    const provided = await fetch(at("/html"), { headers: { authorization: `Bearer ${token}` } });
    expect(responseBytes).toBe((await provided.arrayBuffer()).byteLength);
  });

  it("tells of what was refused: the rule, and of the url nothing", async () => {
    await call({ url: "https://CANARY.example/CANARY", method: "GET" });
    await call({ url: at("/me"), method: "CANARY" });
    await call({ url: at("/status/404"), method: "GET" });
    await call({ url: at("/me?x=CANARY"), method: "GET" }, "CANARY_NOBODY");
    const calls = await recorded(4);
    expect(calls.map(({ status, errorType, rule, path, method }) => [status, errorType, rule, path, method])).toEqual([
      [403, "URL_NOT_ALLOWED", "origin_not_listed", undefined, "GET"],
      [400, "CALL_FORMAT_ERROR", undefined, undefined, undefined],
      [404, "API_ERROR", harness.sandbox.origin, "/status/404", "GET"],
      [401, "INVALID_OAUTHID", harness.sandbox.origin, "/me", "GET"],
    ]);
    expect(JSON.stringify(calls)).not.toContain("CANARY");
  });

  it("is found by its answer's callId, and only by a whole one", async () => {
    const { callId } = await call({ url: at("/me"), method: "GET" });
    await recorded(1);
    expect(await findCall(harness.store.calls, String(callId))).toMatchObject({ callId, path: "/me" });
    for (const id of [String(callId).slice(0, -1), "", `${callId}x`, '","', "%"]) {
      expect(await findCall(harness.store.calls, id)).toBeUndefined();
    }
  });
});

describe("a captured call", () => {
  it("shows what was sent and answered, without token and credentials", async () => {
    await switchCapture(60_000);
    const row = await call({
      url: at("/echo-headers/x?api_key=CANARY%5FQUERY&page=2"),
      method: "POST",
      headers: { "x-api-key": "CANARY_HEADER", "x-note": "plain", "content-type": "application/json" },
      payload: { password: "CANARY_P", name: "Ada" },
    });
    const { request, response, message } = await capturedOf(row);
    const text = JSON.stringify({ request, response });
    for (const secret of [token, "CANARY"]) expect(text).not.toContain(secret);
    expect(request).toMatchObject({
      isSent: true,
      method: "POST",
      url: at("/echo-headers/x?api_key=[masked]&page=2"),
      body: { text: '{"password":"[masked]","name":"Ada"}', isCut: false },
    });
    const fields = Object.fromEntries(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
    expect(fields).toMatchObject({ authorization: "[masked]", "x-api-key": "[masked]", "x-note": "plain" });
    expect(response).toMatchObject({ statusCode: 200, body: { isCut: false } });
    expect(message).toBeUndefined();
    expect((await recorded(1))[0]).toMatchObject({ isCaptured: true });
  });

  it("holds no token that a provider sends back in any spelling, nor the beginning of one at a cut", async () => {
    await switchCapture(60_000);
    for (const as of ["raw", "base64", "urlencoded", "json", "header"]) {
      const row = await call({ url: at(`/echo-token?as=${as}`), method: "GET" });
      const text = JSON.stringify(await capturedOf(row));
      expect(text).not.toContain(token.slice(0, 16));
      expect(text).not.toContain(Buffer.from(token).toString("base64").slice(0, 16));
    }
  });

  it("is bounded, and says so", async () => {
    await switchCapture(60_000);
    const row = await call({ url: at("/raw-echo/x"), method: "POST", payload: { text: "é".repeat(20_000) } });
    const { request, response } = await capturedOf(row);
    for (const body of [request.body, response?.body]) {
      expect(body).toMatchObject({ bytes: 40_011, isCut: true });
      expect(Buffer.byteLength(body?.text ?? "")).toBeGreaterThan(4000);
      expect(Buffer.byteLength(body?.text ?? "")).toBeLessThanOrEqual(4096);
      expect(body?.text).not.toContain("\uFFFD");
    }
  });

  it("shows a streamed answer as far as it is captured", async () => {
    await switchCapture(60_000);
    const [[, raw] = []] = createStreamCallers(harness.url);
    const description = { url: at("/echo-token?as=raw"), method: "GET" };
    await raw?.({ providerName: "sandbox", userId: "ada", publicKey: application.publicKey, call: description });
    const [recordedCall] = await recorded(1);
    const { response } = await capturedOf({ callId: recordedCall?.callId });
    expect(response).toMatchObject({ statusCode: 200, body: { text: "token [redacted] end", isCut: false } });
  });

  it("shows a refused call as its caller described it, and why", async () => {
    await switchCapture(60_000);
    const row = await call({
      url: "https://user:CANARY@evil.example/?token=CANARY",
      method: "GET",
      headers: { authorization: "CANARY" },
    });
    const { request, response, message } = await capturedOf(row);
    expect(request).toEqual({
      isSent: false,
      method: "GET",
      url: "https://[masked]@evil.example/?token=[masked]",
      headers: [["authorization", "[masked]"]],
    });
    expect([response, message]).toEqual([undefined, row["inernalError"]]);
  });

  it.each<[string, object]>([
    [
      "JSON in a part",
      {
        method: "MULTIPART-FORM",
        payload: { contentPart1: { contentType: "application/json", content: { password: "CANARY" } } },
      },
    ],
    ["an object of a multipart form", { method: "MULTIFORM-POST", payload: { user: { password: "CANARY" } } }],
    ["an object of a form", { method: "FORM", payload: { user: { password: "CANARY" } } }],
    ["JSON text of a form", { method: "FORM", payload: { data: '{"password":"CANARY"}' } }],
    ["an object of the query", { method: "GET", queryString: { filter: { password: "CANARY" } } }],
    [
      "the payload of a form that is refused",
      {
        method: "FORM",
        url: "https://evil.example/",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        payload: { password: "CANARY" },
      },
    ],
    ["the fragment of a url that is refused", { method: "GET", url: "https://evil.example/#access_token=CANARY" }],
  ])("shows no credential in %s", async (_, description) => {
    await switchCapture(60_000);
    const content = await capturedOf(await call({ url: at("/me"), ...description }));
    expect(JSON.stringify(content.request)).toMatch(/masked/);
    expect(JSON.stringify(content)).not.toContain("CANARY");
  });

  it.each([
    ["a form that is called a text", "text/plain", "access_token=CANARY&expires=1"],
    ["a form that is called HTML", "text/html", "access_token=CANARY&expires=1"],
    ["JSON that is called a form", "application/x-www-form-urlencoded", '{"access_token":"CANARY"}'],
    ["CDATA", "application/xml", "<access_token><![CDATA[CANARY]]></access_token>"],
    ["JSON of a batch", "multipart/mixed; boundary=b", '--b\r\n\r\nHTTP/1.1 200\r\n\r\n{"pin":"CANARY"}\r\n--b--'],
    ["a link", "application/json", '{"download_url":"https://x.example/?token=CANARY"}'],
    ["a setting", "text/yaml", "user: ada\npassword: CANARY"],
  ])("shows no credential of an answer in %s", async (_, type, text) => {
    await switchCapture(60_000);
    const body = Buffer.from(text).toString("base64");
    const content = await capturedOf(
      await call({ url: at("/raw-echo/x"), method: "POST", headers: { "content-type": type }, body }),
    );
    expect(content.response?.body?.text).toMatch(/masked/);
    expect(JSON.stringify(content)).not.toContain("CANARY");
  });

  it("shows no credential of a redirection", async () => {
    await switchCapture(60_000);
    for (const sign of ["?", "#"]) {
      const to = `https://app.example/cb${sign}access_token=CANARY&state=1`;
      const content = await capturedOf(await call({ url: at("/redirect"), method: "GET", queryString: { to } }));
      expect(content.response?.headers).toContainEqual([
        "Location",
        `https://app.example/cb${sign}access_token=[masked]&state=1`,
      ]);
      expect(JSON.stringify(content)).not.toContain("CANARY");
    }
  });

  it("is none when the capture is off or over", async () => {
    await switchCapture(-1);
    const over = await call({ url: at("/me"), method: "GET" });
    await switchCapture(0);
    const off = await call({ url: at("/me"), method: "GET" });
    for (const each of await recorded(2)) expect(each.isCaptured).toBe(false);
    for (const { callId } of [over, off]) expect(await harness.store.captures.find(String(callId))).toBeUndefined();
  });
});

describe("a store that is away", () => {
  it("costs records, which are counted, and no call", async () => {
    const own = await startHarness();
    if (process.env["TEST_DATABASE"] === "postgres") {
      await own.close();
      return;
    }
    mkdirSync(join(own.folder, "relay.db-calls"));
    const { publicKey } = await own.createApplication();
    const [[, rest] = []] = createCallers(own.url);
    const description = { url: `${own.sandbox.origin}/me`, method: "GET" };
    const request = { providerName: "sandbox", userId: "nobody", publicKey, call: description };
    for (let calls = 0; calls < 3; calls += 1) {
      expect(await rest?.(request)).toMatchObject({ errorType: "INVALID_OAUTHID" });
    }
    await own.closeRelay();
    const lines = own.logLines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "call records dropped");
    expect(lines).toMatchObject([{ dropped: 3, class: "RelayError", code: expect.stringContaining("StoreOpenError") }]);
    await own.close();
  });
});

describe("stopping", () => {
  it("writes what waits", async () => {
    const own = await startHarness();
    const { publicKey, id } = await own.createApplication();
    const [[, rest] = []] = createCallers(own.url);
    const description = { url: `${own.sandbox.origin}/me`, method: "GET" };
    for (let calls = 0; calls < 3; calls += 1) {
      await rest?.({ providerName: "sandbox", userId: "nobody", publicKey, call: description });
    }
    await own.closeRelay();
    const blocks = await own.store.calls.list({ applicationId: id, beforeSequence: undefined, limit: 10 });
    expect(blocks.reduce((sum, { count }) => sum + count, 0)).toBe(3);
    await own.close();
  });

  it("records nothing when it is switched off", async () => {
    const own = await startHarness({ env: { RELAY_CALL_RECORDS: "off" } });
    const { publicKey } = await own.createApplication();
    await own.store.applications.update(publicKey, { captureUntil: Date.now() + 60_000 }, Date.now());
    const [[, rest] = []] = createCallers(own.url);
    const description = { url: `${own.sandbox.origin}/me`, method: "GET" };
    const row = await rest?.({ providerName: "sandbox", userId: "nobody", publicKey, call: description });
    await own.closeRelay();
    expect(await own.store.calls.lastSequence()).toBe(0);
    expect(await own.store.captures.find(String(row?.["callId"]))).toBeUndefined();
    await own.close();
  });
});
