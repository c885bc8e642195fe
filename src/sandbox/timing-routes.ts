import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "./answer.js";
import { jsonAnswer } from "./answer.js";
import { integerParameter } from "./parameters.js";
import type { ResourceRequest, ResourceRoute } from "./resource.js";
import { getRoute } from "./resource.js";

/** Answers that take their time. */
export const TIMING_ROUTES: readonly ResourceRoute[] = [getRoute("/slow", answerSlow), getRoute("/drip", answerDrip)];

/** Longer than any sensible deadline, and an end for every request. */
const MAX_WAIT_MS = 60_000;

async function answerSlow({ query }: ResourceRequest): Promise<Answer> {
  const ms = waitParameter(query, 1000);
  await wait(ms);
  return jsonAnswer(JSON.stringify({ waitedMs: ms }));
}

function answerDrip({ query }: ResourceRequest): Answer {
  const bytes = integerParameter(query, "bytes", { fallback: 10, min: 1, max: 1_000_000 });
  const ms = waitParameter(query, 100);
  return { statusCode: 200, fields: ["Content-Type", "text/plain"], body: () => drip(bytes, ms) };
}

/** One byte at once, and one more after each wait. */
async function* drip(bytes: number, ms: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  for (let sent = 1; sent < bytes; sent++) {
    await wait(ms);
    yield Buffer.from("a");
  }
}

function waitParameter(query: URLSearchParams, fallback: number): number {
  const ms = integerParameter(query, "ms", { fallback, min: 0, max: Number.MAX_SAFE_INTEGER });
  return Math.min(ms, MAX_WAIT_MS);
}

/** Does not hold the process: while the sandbox is open, its socket does. */
function wait(ms: number): Promise<void> {
  return delay(ms, undefined, { ref: false });
}
