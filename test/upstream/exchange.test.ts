import { describe, expect, it } from "vitest";
import { WholeExchange } from "../../src/upstream/client.js";
import type { Pool } from "../../src/upstream/pool.js";
import type { PooledSocket } from "../../src/upstream/pooled-socket.js";
import { CALL_LIMITS, type UpstreamAnswer } from "../../src/upstream/request.js";
import { failureOf, get, within } from "./upstream-for-test.js";

/** An exchange whose socket does what the test says: for what undici must not do, and therefore does not. */
function exchangeOn(send: () => void): { exchange: WholeExchange; sent: Promise<unknown> } {
  const socket = { isUsed: false, isBroken: false, send, expectAnswer() {} } as unknown as PooledSocket;
  const pool = { add: () => true, remove: () => {} } as unknown as Pool;
  const exchange = new WholeExchange(get("https://api.test"), "", pool, CALL_LIMITS);
  const sent = exchange.start(within());
  exchange.socket = socket;
  exchange.send(socket);
  return { exchange, sent };
}

describe("WholeExchange", () => {
  it("does not let a request be written twice", async () => {
    const { exchange, sent } = exchangeOn(() => {});
    let aborts = 0;
    const abort = () => {
      aborts += 1;
      exchange.onError(new Error("aborted"));
    };
    exchange.onConnect(abort);
    expect(aborts).toBe(0);
    exchange.onConnect(abort);
    expect(aborts).toBe(1);
    await failureOf(sent, "PROVIDER_UNREACHABLE");
  });

  it("does not let a request be written for a caller who is gone", async () => {
    const { exchange, sent } = exchangeOn(() => {});
    exchange.expire();
    await failureOf(sent, "PROVIDER_TIMEOUT");
    let aborts = 0;
    exchange.onConnect(() => {
      aborts += 1;
    });
    expect(aborts).toBe(1);
  });

  it("settles once, whatever comes after", async () => {
    const { exchange, sent } = exchangeOn(() => {});
    exchange.onConnect(() => {});
    exchange.onResponseStarted();
    exchange.onHeaders(200, []);
    exchange.onData(Buffer.from("a"));
    exchange.onComplete();
    exchange.onComplete();
    exchange.onError(new Error("late"));
    exchange.expire();
    exchange.handleEvent();
    exchange.onData(Buffer.from("b"));
    exchange.onHeaders(500, []);
    const { body, ...head } = (await sent) as UpstreamAnswer;
    expect(head).toEqual({ statusCode: 200, rawHeaders: [], isPossiblyTruncated: true });
    expect(body.concat().toString()).toBe("a");
  });
});
