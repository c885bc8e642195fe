import { connect } from "node:http2";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers, postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";

const USER = "u";
let harness: Harness;
let application: TestApplication;

beforeAll(async () => {
  harness = await startHarness({
    env: { RELAY_MAX_BUFFERED_BYTES: String(4 * 1024 * 1024), RELAY_MAX_IN_FLIGHT: "1", RELAY_DEADLINE_MS: "5000" },
  });
  application = await harness.createApplication();
  await harness.connect(application, USER);
});

afterAll(() => harness.close());

const callTo = (path: string, call = {}) => ({
  providerName: "sandbox",
  userId: USER,
  publicKey: application.publicKey,
  call: { url: harness.sandbox.origin + path, method: "GET", ...call },
});
const rest = async (path: string, call = {}) =>
  JSON.parse((await postRest(harness.url, callTo(path, call))).text).rows[0];

/** Resolves when the sandbox has received `count` requests more than now. */
async function receivedMore(count: number): Promise<void> {
  const target = harness.sandbox.requests.length + count;
  while (harness.sandbox.requests.length < target) await new Promise((resolve) => setImmediate(resolve));
}

describe("the budget of calls in flight", () => {
  it("answers OVERLOADED over every surface while it is used up, and takes calls again afterwards", async () => {
    const full = receivedMore(1);
    const held = rest("/slow?ms=3000");
    await full;
    for (const [, caller] of createCallers(harness.url)) {
      expect(await caller(callTo("/me"))).toMatchObject({ errorType: "OVERLOADED", statusCode: 503 });
    }
    expect(await held).toMatchObject({ pincStatus: "success" });
    expect(await rest("/me")).toMatchObject({ pincStatus: "success" });
  });
});

describe("the budget of requests that are being read", () => {
  it("ends each of them over the typed protocols, also while the origin of its page is looked up", async () => {
    const session = connect(harness.url);
    const fields = {
      ":method": "POST",
      ":path": "/relay.v1.RelayService/Call",
      "content-type": "application/json",
      origin: "https://page.test",
    };
    const end = async () => {
      const stream = session.request(fields);
      const closed = new Promise((resolve) => stream.on("close", resolve));
      let row = "";
      stream.on("error", () => {}); // Cut off, to make room.
      stream.on("data", (chunk) => {
        row += chunk;
      });
      stream.end("{}");
      await closed;
      return row === "" ? "cut off" : "answered";
    };
    // As many requests as one connection may begin in one turn of the event loop.
    const ends = await Promise.all(Array.from({ length: 8 }, end));
    session.destroy();
    expect(ends).toEqual([...Array(4).fill("cut off"), ...Array(4).fill("answered")]);
  });
});

describe("the budget of buffered bytes", () => {
  it("refuses an answer that does not fit, and gives the bytes back", async () => {
    for (const _ of [1, 2]) expect(await rest("/json?size=2200000")).toMatchObject({ errorType: "OVERLOADED" });
    for (const _ of [1, 2, 3]) expect(await rest("/json?size=2000000")).toMatchObject({ pincStatus: "success" });
  });

  it("refuses a request body that does not fit, and gives the bytes back", async () => {
    const url = `${harness.url}/oauth/method/sandbox/call?user_id=${USER}&public_key=${application.publicKey}`;
    const post = async (mib: number) => {
      const answer = await request(url, { method: "POST", body: Buffer.alloc(mib * 1024 * 1024, 0x20) });
      return ((await answer.body.json()) as { rows: object[] }).rows[0];
    };
    for (const _ of [1, 2]) {
      expect(await post(5)).toMatchObject({ errorType: "OVERLOADED", statusCode: 503 });
      expect(await post(3)).toMatchObject({ errorType: "CALL_FORMAT_ERROR" });
    }
  });

  it("charges a compressed answer for what it becomes", async () => {
    expect(await rest("/gzip-bomb?mib=8")).toMatchObject({ errorType: expect.stringMatching(/OVERLOADED|TOO_LARGE/) });
    expect(await rest("/gzip")).toMatchObject({ pincStatus: "success" });
  });
});
