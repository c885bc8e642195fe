import { setTimeout as delay } from "node:timers/promises";
import { startHttp1Caller } from "./http1-load.js";
import { startHttp2Callers } from "./http2-load.js";
import type { LoadNotice, LoadOrder } from "./load-order.js";
import { Tally } from "./tally.js";

const tally = new Tally();

/** Times that a window may be made longer; then few calls have to do. */
const MAX_WINDOWS = 50;

function tell(notice: LoadNotice): void {
  process.send?.(notice);
}

/** Makes calls for the time that is asked for, and tells what came of them. */
async function run(order: LoadOrder): Promise<void> {
  let problem: string | undefined;
  const onFailure = (text: string) => {
    problem ??= text;
  };
  const ends =
    order.protocol === "http2"
      ? [startHttp2Callers(order, tally, onFailure)]
      : Array.from({ length: order.callers }, () => startHttp1Caller(order, tally, onFailure));
  await delay(order.warmMs);
  tally.begin();
  tell({ notice: "begun" });
  // Where something else has the cores, longer than was asked for: of no call there is no cost.
  for (let windows = 0; windows < MAX_WINDOWS && tally.calls < order.callers; windows++) await delay(order.ms);
  const done = tally.end();
  if (done.calls === 0) onFailure("no call was answered");
  tell(problem === undefined ? { notice: "ended", ...done } : { notice: "failed", problem });
  for (const end of ends) end();
}

process.on("message", (order) => void run(order as LoadOrder));
process.send?.({ port: 0 });
