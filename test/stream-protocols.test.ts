import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rowFromStream } from "./support/row-from-stream.js";
import { callOf, error, protocolsAt, SCENARIOS, type Scenario, startWorld, type World } from "./support/scenarios.js";
import { createStreamCallers, type StreamCaller, type Streamed } from "./support/stream-callers.js";

const PROTOCOLS = ["raw HTTP/1.1", "raw HTTP/2", "Connect JSON", "Connect binary", "gRPC", "gRPC-Web"] as const;

let world: World;
let callers: ReadonlyMap<string, StreamCaller>;

beforeAll(async () => {
  world = await startWorld();
  callers = new Map(createStreamCallers(world.harness.url));
});

afterAll(() => world.harness.close());

const STREAMED = SCENARIOS.filter(({ notStreamed }) => notStreamed === undefined).map((scenario, at) => ({
  ...scenario,
  protocols: protocolsAt(PROTOCOLS, at),
}));

const call = (protocol: string, scenario: Scenario): Promise<Streamed> =>
  (callers.get(protocol) as StreamCaller)(callOf(world, scenario));

/** What a row says of the provider's answer, which a stream must say as well. */
function answerOf({ pincStatus: _status, errorType: _type, inernalError: _error, ...answer }: Scenario["row"]) {
  return answer;
}

/** What the same call must say over every protocol. */
function comparable({ head, body, row }: Streamed) {
  const { callId: _id, headers: _headers, ...members } = row ?? {};
  return { statusCode: head?.statusCode, body: body.toString("latin1").replace(/"relay[0-9a-f]+"/g, ""), row: members };
}

describe.each(STREAMED)("$name", ({ protocols, ...scenario }) => {
  const test = scenario.isWaiting ? it.concurrent : it;
  let expected: unknown;

  test.each(protocols)("is streamed over %s", async (protocol) => {
    const streamed = await call(protocol, scenario);
    const errorType = scenario.row["errorType"];
    if (errorType === undefined || errorType === "API_ERROR") {
      expect(streamed.row).toBeUndefined();
      expect(rowFromStream(streamed, scenario.row)).toMatchObject(answerOf(scenario.row));
    } else {
      expect(streamed.head).toBeUndefined();
      expect(streamed.row).toMatchObject(scenario.row);
    }
    for (const spelled of [world.token, Buffer.from(world.token).toString("base64").slice(3, -4)]) {
      expect(streamed.body.toString("latin1") + JSON.stringify(streamed.head)).not.toContain(spelled);
    }
    expected ??= comparable(streamed);
    expect(comparable(streamed)).toEqual(expected);
  });
});

describe("limits", () => {
  it.each(PROTOCOLS)("has no limit of size over %s", async (protocol) => {
    const { head, body } = await call(protocol, { name: "", to: "/json?size=1000000", row: {} });
    expect(head?.statusCode).toBe(200);
    expect(body.length).toBe(1_000_000);
  });

  it.each(PROTOCOLS.slice(2))("ends a decompression bomb over %s", async (protocol) => {
    const { head, row } = await call(protocol, { name: "", to: "/gzip-bomb?mib=10", row: {} });
    expect(head?.statusCode).toBe(200);
    expect(row).toMatchObject(error("RESPONSE_TOO_LARGE", 502));
  });

  it.each(PROTOCOLS.slice(0, 2))("cuts a decompression bomb short over %s", async (protocol) => {
    await expect(call(protocol, { name: "", to: "/gzip-bomb?mib=10", row: {} })).rejects.toThrow();
  });
});

describe("what leaves the relay", () => {
  it("never has a token in a log line, of which there is one for each call", async () => {
    const { logLines } = world.harness;
    const calls = () => logLines.filter((line) => line.includes('"msg":"call"')).length;
    await expect.poll(calls).toBe(STREAMED.flatMap(({ protocols }) => protocols).length + 2 * PROTOCOLS.length);
    const log = logLines.join("");
    expect(log).not.toContain("CANARY");
    expect(log).not.toContain('"msg":"fault"');
  });
});
