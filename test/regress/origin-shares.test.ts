import type { Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createUpstream } from "../../src/upstream/client.js";
import { createCallers, postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { answer, type RawProvider, startRawProvider } from "../support/raw-provider.js";
import { createStreamCallers } from "../support/stream-callers.js";
import { get } from "../upstream/upstream-for-test.js";

const KIB = 1024;

let provider: RawProvider;
let harness: Harness;
let greedy: TestApplication;
let other: TestApplication;
/** Requests that the provider has not answered yet: the ends of their paths, and their sockets. */
const held: [name: string, socket: Socket][] = [];
const sent: Promise<unknown>[] = [];

beforeAll(async () => {
  provider = await startRawProvider((socket, { head }) => {
    const [, name] = /\/slow\/(\w+)/.exec(head) ?? [];
    if (name === undefined) socket.write(answer("{}", "Content-Type: application/json"));
    else held.push([name, socket]);
  });
  harness = await startHarness({
    env: { RELAY_MAX_ORIGIN_CALLS: "18", RELAY_MAX_ORIGIN_WAITING: "81" },
    providers: [{ name: "raw", apiOrigins: [provider.origin] }],
  });
  [greedy, other] = [await harness.createApplication(), await harness.createApplication()];
  for (const application of [greedy, other]) await harness.connect(application, "u", { providerName: "raw" });
});

afterEach(async () => {
  let isOver = false;
  const all = Promise.all(sent.splice(0)).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    for (const [, socket] of held.splice(0)) socket.end(answer(""));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
});

afterAll(async () => {
  await harness.close();
  await provider.close();
});

const callOf = ({ publicKey }: TestApplication, path: string) => ({
  ...{ providerName: "raw", userId: "u", publicKey },
  call: { url: provider.origin + path, method: "GET" },
});

/** Sends so many calls that the provider does not answer; resolves when so many of them are refused. */
function sendSlow(application: TestApplication, path: string, { count, refused }: { count: number; refused: number }) {
  return new Promise<void>((resolve) => {
    let left = refused;
    for (let at = 0; at < count; at++) {
      const answered = postRest(harness.url, callOf(application, path)).then(({ text }) => {
        if (!text.includes('"errorType":"OVERLOADED"')) return;
        left -= 1;
        if (left === 0) resolve();
      });
      sent.push(answered);
    }
    if (refused === 0) resolve();
  });
}

describe("large answers", () => {
  it("are read so much of in one turn of the event loop, however many come, and small ones are not held up", async () => {
    const size = 4 * 1024 * 1024;
    const large = answer(Buffer.alloc(size));
    const peer = await startRawProvider((socket, { head }) => {
      socket.write(head.includes("/large") ? large : answer("small"));
    });
    const client = createUpstream({ allowLoopback: true });
    const readIn = new Map<number, number>();
    let turn = 0;
    let isOver = false;
    const next = () => {
      turn += 1;
      if (!isOver) setImmediate(next);
    };
    next();
    const memory = {
      reserve(bytes: number) {
        readIn.set(turn, (readIn.get(turn) ?? 0) + bytes / 2);
        return true;
      },
      giveBack: () => {},
    };
    const limits = { deadline: performance.now() + 30_000, signal: undefined, memory };
    const sent = Array.from({ length: 6 }, () => client.send(get(peer.origin, { path: "/large" }), limits));
    const small = await client.send(get(peer.origin, { path: "/small" }), { ...limits, memory: undefined });
    expect(small.body.concat().toString()).toBe("small");
    for (const { body } of await Promise.all(sent)) expect(body.length).toBe(size);
    isOver = true;
    // What each of them has at once, and one piece more than may be.
    expect(Math.max(...readIn.values())).toBeLessThanOrEqual(6 * 64 * KIB + 256 * KIB + 64 * KIB);
    await client.close();
    await peer.close();
  });
});

describe("an application whose calls to an origin take long", () => {
  it("leaves another one some of the calls at once, whichever way they come", async () => {
    await sendSlow(greedy, "/slow/greedy", { count: 100, refused: 12 });
    expect(held.map(([name]) => name)).toEqual(Array(16).fill("greedy"));
    for (const [protocol, caller] of createCallers(harness.url)) {
      expect([protocol, await caller(callOf(other, "/"))]).toMatchObject([protocol, { pincStatus: "success" }]);
    }
    expect(held).toHaveLength(16);
  });

  it("leaves another one its turns, until that one has as many calls under way", async () => {
    const before = provider.requests.length;
    await sendSlow(greedy, "/slow/greedy", { count: 100, refused: 12 });
    await sendSlow(other, "/slow/other", { count: 6, refused: 0 });
    await provider.seen(before + 18);
    const open = held.splice(0);
    expect(open.map(([name]) => name)).toEqual([...Array(16).fill("greedy"), "other", "other"]);
    for (const at of [0, 1, 2, 3]) {
      open[at]?.[1].write(answer(""));
      await provider.seen(before + 19 + at);
    }
    expect(held.map(([name]) => name)).toEqual(["other", "other", "other", "other"]);
    held.push(...open.slice(4));
  });

  it("leaves another one some of the streams", async () => {
    const before = provider.requests.length;
    const [[, stream]] = createStreamCallers(harness.url) as [ReturnType<typeof createStreamCallers>[0]];
    for (let at = 0; at < 8; at++) sent.push(stream(callOf(greedy, "/slow/stream")));
    await provider.seen(before + 8);
    for (const [, caller] of createStreamCallers(harness.url)) {
      expect(await caller(callOf(greedy, "/"))).toMatchObject({ row: { errorType: "OVERLOADED", statusCode: 503 } });
      expect(await caller(callOf(other, "/"))).toMatchObject({ head: { statusCode: 200 }, row: undefined });
    }
  });
});
