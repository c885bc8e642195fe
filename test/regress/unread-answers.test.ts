import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";

const MIB = 1024 * 1024;
const ANSWER = Buffer.from(JSON.stringify("x".repeat(9 * MIB)));

let harness: Harness;
let provider: RawProvider;
let greedy: TestApplication;
let other: TestApplication;
const cleanUps: (() => void)[] = [];

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    if (head.startsWith("GET /small")) socket.write(answer("{}", "Content-Type: application/json"));
    else if (!head.startsWith("GET /silence")) socket.write(answer(ANSWER, "Content-Type: application/json"));
  });
  harness = await startHarness({
    env: { RELAY_MAX_BUFFERED_BYTES: String(64 * MIB), RELAY_MAX_IN_FLIGHT: "18" },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
  });
  [greedy, other] = [await harness.createApplication(), await harness.createApplication()];
  for (const application of [greedy, other]) await harness.connect(application, "u", { providerName: "raw" });
});

afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const target = ({ publicKey }: TestApplication) => `/oauth/method/raw/call?user_id=u&public_key=${publicKey}`;
const body = (path: string) => JSON.stringify({ url: provider.origin + path, method: "GET" });

/** Asks for an answer and does not read it. Resolves when its head is here. */
async function askOverHttp1(application: TestApplication, path: string): Promise<void> {
  const socket = connect(Number(new URL(harness.url).port), "127.0.0.1");
  cleanUps.push(() => socket.destroy());
  socket.on("error", () => {
    // It is cut: that is what this is about.
  });
  const text = body(path);
  socket.write(`POST ${target(application)} HTTP/1.1\r\nhost: x\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
  if (path !== "/silence") await Promise.race([once(socket, "readable"), once(socket, "close")]);
}

async function askOverHttp2(application: TestApplication, path: string): Promise<void> {
  const session = http2.connect(harness.url);
  cleanUps.push(() => session.destroy());
  session.on("error", () => {
    // As above.
  });
  const stream = session.request({ ":method": "POST", ":path": target(application) });
  stream.on("error", () => {
    // As above.
  });
  stream.end(body(path));
  await Promise.race([once(stream, "response"), once(stream, "close")]);
}

const call = ({ publicKey }: TestApplication, path: string) => ({
  ...{ providerName: "raw", userId: "u", publicKey },
  call: { url: provider.origin + path, method: "GET" },
});

describe("answers that nobody reads", () => {
  it.each(
    thin([
      ["HTTP/1.1", askOverHttp1],
      ["HTTP/2", askOverHttp2],
    ] as const),
  )("over %s leave another application its share of the memory", async (_protocol, ask) => {
    for (let at = 0; at < 7; at++) await ask(greedy, "/large");
    for (const [protocol, caller] of createCallers(harness.url)) {
      const row = await caller(call(other, "/large"));
      expect([protocol, row["errorType"], typeof row["data"]]).toEqual([protocol, undefined, "string"]);
    }
  });
});

describe("an application that wants all places", () => {
  it("gets eight ninths of them, and leaves the others to another one", async () => {
    const before = provider.requests.length;
    for (let at = 0; at < 16; at++) await askOverHttp1(greedy, "/silence");
    await provider.seen(before + 16);
    for (const [, caller] of createCallers(harness.url)) {
      expect(await caller(call(greedy, "/small"))).toMatchObject({ errorType: "OVERLOADED", statusCode: 503 });
      expect(await caller(call(other, "/small"))).toMatchObject({ pincStatus: "success" });
    }
  });
});
