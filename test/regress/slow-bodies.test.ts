import { afterAll, beforeAll, expect, it } from "vitest";
import { connectRaw } from "../http/support.js";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

/**
 * A request once was a call in flight from its first byte on: as many clients as calls may be in flight, each of which
 * sent a byte a second, kept everybody else out, without so much as a public key. So did a few that sent all but the last
 * byte of as much as may be buffered.
 */
const MAX_IN_FLIGHT = 5;

const MAX_BUFFERED_BYTES = 1024 * 1024;

let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  const env = {
    RELAY_MAX_IN_FLIGHT: String(MAX_IN_FLIGHT),
    RELAY_MAX_BUFFERED_BYTES: String(MAX_BUFFERED_BYTES),
  };
  harness = await startHarness({ env });
  application = await harness.createApplication();
  await harness.connect(application, "u");
});

afterAll(() => harness.close());

const PATHS = ["/oauth/method/sandbox/call?user_id=u&public_key=x", "/relay.v1.RelayService/Call"];

/** Sends a request all but the last byte of its body. */
async function sendUnfinished(path: string, length: number): Promise<void> {
  const { socket } = await connectRaw(Number(new URL(harness.url).port));
  const fields = `Host: x\r\nContent-Type: application/json\r\nContent-Length: ${length}`;
  socket.write(`POST ${path} HTTP/1.1\r\n${fields}\r\n\r\n{`.padEnd(length, " "));
}

async function expectGoodCalls(): Promise<void> {
  const call = { url: `${harness.sandbox.origin}/me`, method: "GET" };
  const request = { providerName: "sandbox", userId: "u", publicKey: application.publicKey, call };
  for (const [, caller] of createCallers(harness.url)) {
    expect(await caller(request)).toMatchObject({ pincStatus: "success" });
  }
}

it.each(PATHS)("more requests to %s than calls may be in flight, which never end, keep nobody out", async (path) => {
  for (let at = 0; at < 4 * MAX_IN_FLIGHT; at++) await sendUnfinished(path, 200);
  await expectGoodCalls();
});

it.each(PATHS)("requests to %s that fill the memory and never end keep nobody out", async (path) => {
  for (let at = 0; at < 4; at++) await sendUnfinished(path, MAX_BUFFERED_BYTES / 2);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await expectGoodCalls();
});
