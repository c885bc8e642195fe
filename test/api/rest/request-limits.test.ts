import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Harness, startHarness, type TestApplication } from "../../support/harness.js";
import { type RawProvider, startRawProvider } from "../../support/raw-provider.js";

const MAX_BYTES = 4096;

let harness: Harness;
let silent: RawProvider;
let application: TestApplication;

beforeAll(async () => {
  silent = await startRawProvider(() => {
    // Never answers.
  });
  harness = await startHarness({
    env: { RELAY_MAX_REQUEST_BYTES: String(MAX_BYTES) },
    providers: [{ name: "silent", apiOrigins: [silent.origin] }],
  });
  application = await harness.createApplication();
  await harness.connect(application, "u");
  await harness.connect(application, "u", { providerName: "silent" });
});

afterAll(async () => {
  await harness.close();
  await silent.close();
});

const target = (provider: string) =>
  `${harness.url}/oauth/method/${provider}/call?user_id=u&public_key=${application.publicKey}`;

async function post(body: string | Readable) {
  const answer = await request(target("sandbox"), { method: "POST", body });
  return ((await answer.body.json()) as { rows: Record<string, unknown>[] }).rows[0];
}

describe("a request body", () => {
  const call = () => JSON.stringify({ url: `${harness.sandbox.origin}/me`, method: "GET" });

  it("may be as large as the limit", async () => {
    expect(await post(call().padEnd(MAX_BYTES))).toMatchObject({ pincStatus: "success" });
  });

  it.each([1, 3 * MAX_BYTES])("is refused with %d bytes more, and names the limit", async (more) => {
    const refusal = { errorType: "REQUEST_TOO_LARGE", statusCode: 413, inernalError: expect.stringContaining("4096") };
    const body = call().padEnd(MAX_BYTES + more);
    expect(await post(body)).toMatchObject(refusal);
    // Its length is not announced.
    expect(await post(Readable.from([body.slice(0, MAX_BYTES), body.slice(MAX_BYTES)]))).toMatchObject(refusal);
  });
});

describe("a caller that goes away", () => {
  it("ends the call at the provider", async () => {
    const controller = new AbortController();
    const body = JSON.stringify({ url: `${silent.origin}/`, method: "GET" });
    const ended = request(target("silent"), { method: "POST", body, signal: controller.signal }).catch(() => "gone");
    await silent.seen(1);
    controller.abort();
    expect(await ended).toBe("gone");
    await silent.openAtMost(0);
  });

  it.each(["a reset", "an end"])("in the middle of its request is no fault of the relay: %s", async (how) => {
    const before = harness.logLines.length;
    const socket = connect(Number(new URL(harness.url).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write(`POST ${new URL(target("sandbox")).pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (how === "a reset") socket.resetAndDestroy();
    else socket.end();
    await vi.waitFor(() => expect(harness.logLines.slice(before).join("")).toContain("CALL_FORMAT_ERROR"));
    expect(harness.logLines.slice(before).join("")).not.toContain('"fault"');
  });
});
