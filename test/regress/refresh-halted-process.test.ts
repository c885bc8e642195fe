import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { bytesOf } from "../../src/lib/chunks.js";
import { createTokenEndpoint } from "../../src/oauth/token-endpoint.js";
import type { Upstream, UpstreamAnswer } from "../../src/upstream/request.js";
import { refreshTargetForTest } from "../oauth/refresh-target-for-test.js";

const TARGET = refreshTargetForTest({
  connectionId: "c",
  tokenEndpoint: "http://127.0.0.1:1/token",
  client: { clientId: "c", clientSecret: undefined },
});
const ANSWER = { statusCode: 200, rawHeaders: [], body: bytesOf(Buffer.from("{}")) } satisfies UpstreamAnswer;
const DEADLINE_MS = 8000;

/** Answers after a time, as far as the limits it is given allow. */
function upstreamAfter(answerMs: number): Upstream {
  return {
    send: (_request, { deadline, signal }) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener("abort", { handleEvent: () => reject(signal.reason) });
        const deadlineMs = deadline - performance.now();
        if (Number.isFinite(deadlineMs)) setTimeout(() => reject(new Error("the deadline")), deadlineMs);
        setTimeout(() => resolve(ANSWER), answerMs);
      }),
    stream: () => Promise.reject(new Error("nothing here is streamed")),
    close: async () => {},
  };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a process that stood still until the deadline of a token request had passed", () => {
  const ask = (answerMs: number) =>
    createTokenEndpoint(upstreamAfter(answerMs))(TARGET, { headers: [], body: Buffer.alloc(0) });

  it("still reads the answer that came meanwhile", async () => {
    const answer = ask(DEADLINE_MS + 1);
    await vi.advanceTimersByTimeAsync(DEADLINE_MS + 1);
    expect((await answer).statusCode).toBe(200);
  });

  it("does not wait for an answer that has not come", async () => {
    const answer = expect(ask(60_000)).rejects.toMatchObject({ reason: "PROVIDER_TIMEOUT" });
    await vi.advanceTimersByTimeAsync(DEADLINE_MS + 1000);
    await answer;
  });
});
