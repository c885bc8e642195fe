import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../support/free-port.js";
import { createRandom } from "../support/random.js";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

const WORKERS = 2;
const CALLERS = 8;
/**
 * The cluster module of Node.js forgets a connection that is on its way to a worker which is killed: nobody closes it,
 * and it is open until its client gives up. Milliseconds.
 */
const HUNG_MS = 30_000;
/** By when killed workers are there again: each reads store, keys and definitions, on two busy cores. Milliseconds. */
const MAX_ABSENT_MS = 20_000;

/** Kills workers under callers, one and all at once. */
export async function runWorkers(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const world = await startWorld(script, {
    settings: { RELAY_WORKERS: String(WORKERS), RELAY_LISTEN: `127.0.0.1:${await freePort()}` },
  });
  try {
    const relay = world.startRelay();
    const url = await requireListening(world, relay);
    const userId = await world.connect();
    await world.call(url, userId);
    const service = { url, userId, pid: relay.pid };
    const random = createRandom(seed);
    const one = await killOften(world, service, { count, random, isAll: false });
    const all = await killOften(world, service, { count, random, isAll: true });
    const findings = [...one.findings, ...all.findings];
    const refused = one.results.get("refused") ?? 0;
    if (refused > 0) findings.push(`${refused} connections were refused although a worker lived`);
    const replaced = world.faults.filter((line) => line.includes("a worker exited unexpectedly")).length;
    return {
      lines: [
        `${count} times one of ${WORKERS} workers killed under ${CALLERS} callers, ${one.text}`,
        `${count} times all of them at once, ${all.text}; ${replaced} replaced in all`,
      ],
      findings,
    };
  } finally {
    await world.close();
  }
}

interface Service {
  readonly url: string;
  readonly userId: string;
  /** Of the supervisor. */
  readonly pid: number;
}

/** @param isAll whether all workers are killed at once; the first one lives for ever otherwise. */
async function killOften(
  world: World,
  { url, userId, pid }: Service,
  { count, random, isAll }: { readonly count: number; readonly random: () => number; readonly isAll: boolean },
) {
  const results = new Map<string, number>();
  let isOver = false;
  let goodAt = 0;
  const call = async () => {
    while (!isOver) {
      const startedAt = performance.now();
      const result = await world.call(url, userId);
      const isLong = performance.now() - startedAt > HUNG_MS;
      const kind = isLong ? `${result} after more than ${HUNG_MS / 1000} s` : result;
      results.set(kind, (results.get(kind) ?? 0) + 1);
      if (result === "success") goodAt = performance.now();
      else await delay(20);
    }
  };
  const callers = Array.from({ length: CALLERS }, call);
  const [survivor] = isAll ? [] : workersOf(pid);
  let absentMs = 0;
  for (let round = 0; round < count; round += 1) {
    await delay(random() * 500);
    const victims = workersOf(pid).filter((each) => each !== survivor);
    for (const victim of victims) process.kill(victim, "SIGKILL");
    const killedAt = performance.now();
    const isBack = () =>
      workersOf(pid).filter((each) => !victims.includes(each)).length === WORKERS && goodAt > killedAt;
    while (!isBack() && performance.now() - killedAt < MAX_ABSENT_MS) await delay(20);
    absentMs = Math.max(absentMs, performance.now() - killedAt);
  }
  isOver = true;
  await Promise.all(callers);
  return {
    results,
    findings: absentMs < MAX_ABSENT_MS ? [] : [`workers were not back after ${MAX_ABSENT_MS} ms`],
    text: `back, and a call answered, within ${Math.round(absentMs)} ms; calls: ${textOf(results)}`,
  };
}

/** https://man7.org/linux/man-pages/man5/proc_pid_children.5.html */
function workersOf(supervisor: number): number[] {
  const children = readFileSync(`/proc/${supervisor}/task/${supervisor}/children`, "utf8");
  return children.split(" ").filter(Boolean).map(Number);
}
