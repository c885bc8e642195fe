import { once } from "node:events";
import http2 from "node:http2";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { totalOf } from "../support/exposition.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { thin } from "../support/long.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { scrape } from "../support/scrape.js";
import { rawTarget } from "../support/stream-callers.js";

const ANSWER = Buffer.from(JSON.stringify("x".repeat(9 * 1024 * 1024)));

let harness: Harness;
let provider: RawProvider;
let application: TestApplication;
const cleanUps: (() => void)[] = [];

beforeAll(async () => {
  provider = await startRawProvider((socket) => socket.write(answer(ANSWER, "Content-Type: application/json")));
  harness = await startHarness({
    env: { RELAY_WRITE_TIMEOUT_MS: "1000" },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
  });
  application = await harness.createApplication();
  await harness.connect(application, "u", { providerName: "raw" });
});

afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

interface Request {
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Every way to ask for an answer; connect-node writes those of a typed call that came compressed. */
function requests(): Record<string, Request> {
  const { publicKey } = application;
  const call = { url: `${provider.origin}/`, method: "GET" };
  const named = { providerName: "raw", userId: "u", publicKey, call };
  const message = Buffer.from(JSON.stringify(named));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const json = (path: string, body: Buffer, fields = {}) => ({
    path,
    fields: { "content-type": "application/json", ...fields },
    body,
  });
  return {
    "the JSON route": json(rawTarget(named).replace("/stream?", "/call?"), Buffer.from(JSON.stringify(call))),
    "the raw route": json(rawTarget(named), Buffer.from(JSON.stringify(call))),
    Call: json("/relay.v1.RelayService/Call", message),
    // An answer that is compressed as well would be a few kilobytes, and all of it sent.
    "Call, compressed": json("/relay.v1.RelayService/Call", gzipSync(message), {
      "content-encoding": "gzip",
      "accept-encoding": "identity",
    }),
    CallStream: json("/relay.v1.RelayService/CallStream", Buffer.concat([prefix, message]), {
      "content-type": "application/connect+json",
    }),
  };
}

/** Sends a request, reads its head and then nothing; what it resolves with reads the rest, and tells its length. */
type Ask = (request: Request) => Promise<() => Promise<number>>;

const askOverHttp1: Ask = async ({ path, fields, body }) => {
  const socket = connect(Number(new URL(harness.url).port), "127.0.0.1");
  cleanUps.push(() => socket.destroy());
  const lines = Object.entries({ host: "x", "content-length": body.length, ...fields }).map(([n, v]) => `${n}: ${v}`);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  socket.write(body);
  await once(socket, "readable");
  return () => lengthOf(socket);
};

const askOverHttp2: Ask = async ({ path, fields, body }) => {
  const session = http2.connect(harness.url);
  cleanUps.push(() => session.destroy());
  session.on("error", ignore);
  const stream = session.request({ ":method": "POST", ":path": path, ...fields });
  stream.end(body);
  const [head] = await once(stream.on("error", ignore), "response");
  expect(head[":status"]).toBe(200);
  return () => lengthOf(stream);
};

/** It is cut: that is what this is about. */
function ignore(): void {}

async function lengthOf(source: Duplex): Promise<number> {
  let length = 0;
  source.on("error", ignore).on("data", (chunk: Buffer) => {
    length += chunk.length;
  });
  if (!source.destroyed) await once(source, "close");
  return length;
}

describe("answers that nobody reads", () => {
  it.each(
    thin([
      ["HTTP/1.1", askOverHttp1],
      ["HTTP/2", askOverHttp2],
    ]),
  )(
    "over %s are cut when nothing is taken for RELAY_WRITE_TIMEOUT_MS, and hold nothing from then on",
    async (_protocol, ask) => {
      const asked: [string, () => Promise<number>][] = [];
      for (const [name, one] of Object.entries(requests())) asked.push([name, await ask(one)]);
      const gauge = async (name: string) => totalOf(await scrape(harness.adminUrl), name);
      await expect.poll(() => gauge("relay_calls_in_flight"), { timeout: 60_000 }).toBe(0);
      expect(await gauge("relay_buffered_bytes")).toBe(0);
      for (const [name, rest] of asked) expect([name, (await rest()) < ANSWER.length]).toEqual([name, true]);
    },
    90_000,
  );
});
