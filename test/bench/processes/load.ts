import { setTimeout as delay } from "node:timers/promises";
import { startHttp1Caller } from "./http1-load.js";
import { startHttp2Callers } from "./http2-load.js";
import type { LoadNotice, LoadOrder } from "./load-order.js";
import { Tally } from "./tally.js";

const tally = new Tally();

/** How long a window may become in milliseconds where there are few calls; then these have to do. */
const MAX_MS = 20_000;

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
  const latest = performance.now() + MAX_MS;
  do await delay(order.ms);
  while (problem === undefined && tally.calls < order.callers && performance.now() < latest);
  const done = tally.end();
  if (done.calls === 0) onFailure("no call was answered");
  tell(problem === undefined ? { notice: "ended", ...done } : { notice: "failed", problem });
  for (const end of ends) end();
}

process.on("message", (order) => void run(order as LoadOrder));
process.send?.({ port: 0 });
