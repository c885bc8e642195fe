import { setTimeout as delay } from "node:timers/promises";
import { measureOnce } from "./measure.js";
import { medianOf } from "./median.js";
import { orderFor } from "./order.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import { POINTS, type Point } from "./points.js";
import { type Memory, memoryOf } from "./process-figures.js";
import { type Providers, startProviders } from "./providers.js";
import { startLoad } from "./stage.js";
import { type Subject, startSubject } from "./subject.js";

const STARTS = 5;
/** Until what a start has left behind was collected, and after a load, in milliseconds. */
const REST_MS = 20_000;
const REST_AFTER_LOAD_MS = 30_000;
const STREAMED_BYTES = 1024 ** 3;
const LARGE_ANSWERS = 10_000;
/** Of one measurement of a load. */
const LOAD_MS = 4_000;
const MIB = 1024 ** 2;

/** One line of the table, in MiB. */
interface MemoryRow {
  readonly what: string;
  /** Resident, with what other processes of the machine share, as the program of Node.js. */
  readonly rssMib: number;
  /** What would be free without this process; undefined for a peak. */
  readonly privateMib: number | undefined;
}

/**
 * Measures what a relay on SQLite holds in memory, the administration port on: at rest, under load, after it, and what a
 * worker takes. Medians of five starts at rest; Linux alone tells it.
 *
 * @param onProgress told what is measured next.
 */
export async function measureMemory(onProgress: (text: string) => void): Promise<readonly MemoryRow[]> {
  const providers = await startProviders();
  try {
    onProgress(`${STARTS} starts of Node.js alone, of a relay and of a relay with two workers`);
    const bare = await atRest(startNode);
    const relay = await atRest(() => startSubject("relay-administered", providers, pointOf("json-1k")));
    const workers = await atRest(() => startSubject("relay-administered-workers", providers, pointOf("json-1k")));
    return [
      rowFrom("Node.js alone", bare, 0),
      rowFrom("relay at rest", relay, 0),
      ...(await underLoad(providers, onProgress)),
      rowFrom("two workers at rest: the process that starts them", workers, 0),
      rowFrom("two workers at rest: each of them", workers, 1),
    ];
  } finally {
    await providers.close();
  }
}

/** The rows for people to read. */
export function memoryTableFrom(rows: readonly MemoryRow[]): string {
  const width = Math.max(...rows.map(({ what }) => what.length));
  const lines = rows.map(({ what, rssMib, privateMib }) => {
    const own = privateMib === undefined ? "" : `, ${privateMib.toFixed(0)} of them its own`;
    return `${what.padEnd(width)}  ${rssMib.toFixed(0)} MiB${own}`;
  });
  return lines.join("\n");
}

type Started = Pick<Subject, "pid" | "close">;

/** Memory of a process and of those that it has started, of each start; all rest together. */
async function atRest(start: () => Promise<Started>): Promise<ReadonlyArray<readonly Memory[]>> {
  const started: Started[] = [];
  try {
    for (let at = 0; at < STARTS; at++) started.push(await start());
    await delay(REST_MS);
    return started.map(({ pid }) => memoryOf(pid));
  } finally {
    for (const { close } of started) await close();
  }
}

async function startNode(): Promise<Started> {
  const child = startPinned({ core: "measured", args: ["--eval", "process.send({}); setInterval(() => {}, 1e6)"] });
  await nextMessage(child);
  return { pid: child.pid as number, close: () => stopPinned(child) };
}

function rowFrom(what: string, starts: ReadonlyArray<readonly Memory[]>, process: number): MemoryRow {
  const median = (member: keyof Memory) => medianOf(starts.map((each) => each[process]?.[member] ?? 0)) ?? 0;
  return { what, rssMib: median("rssMib"), privateMib: median("privateMib") };
}

/** Of one process, one load after the other. */
async function underLoad(providers: Providers, onProgress: (text: string) => void): Promise<readonly MemoryRow[]> {
  const subject = await startSubject("relay-administered", providers, pointOf("json-1k"));
  const load = await startLoad(providers);
  const run = (point: Point) => measureOnce(subject, orderOf(point, subject, providers), load);
  try {
    onProgress("256 callers");
    const { peakMib: called } = await run(pointOf("json-1k-256-callers"));
    onProgress("1 GiB of streams, 10,000 answers of 100 KiB");
    const streamed = await runUntil(() => run(pointOf("via-10m")), STREAMED_BYTES / (10 * MIB));
    const answered = await runUntil(() => run(pointOf("json-100k")), LARGE_ANSWERS);
    await delay(REST_AFTER_LOAD_MS);
    return [
      { what: "256 callers: peak", rssMib: called, privateMib: undefined },
      {
        what: "1 GiB of streams, 10,000 answers of 100 KiB: peak",
        rssMib: Math.max(streamed, answered),
        privateMib: undefined,
      },
      rowFrom("30 s after that", [memoryOf(subject.pid)], 0),
    ];
  } finally {
    await stopPinned(load);
    await subject.close();
  }
}

/** Runs a load until so many calls were made; resolves to the peak of memory. */
async function runUntil(run: () => ReturnType<typeof measureOnce>, calls: number): Promise<number> {
  let [made, peak] = [0, 0];
  while (made < calls) {
    const { callsPerSecond, peakMib } = await run();
    made += (callsPerSecond * LOAD_MS) / 1000;
    peak = Math.max(peak, peakMib);
  }
  return peak;
}

function orderOf(point: Point, subject: Subject, providers: Providers) {
  return orderFor(point, subject, providers[point.provider].origin, { warmMs: 0, ms: LOAD_MS });
}

function pointOf(name: string): Point {
  const point = POINTS.find((each) => each.name === name);
  if (point === undefined) throw new Error(`no point ${name}`);
  return point;
}
