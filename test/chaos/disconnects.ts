import { setTimeout as delay } from "node:timers/promises";
import { createRandom, pick } from "../support/random.js";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

const PROCESSES = 2;
/** Users who are called at the same time. */
const AT_ONCE = 20;
const MAX_ANSWER_MS = 300;

/** What a run shares. */
interface Run {
  readonly world: World;
  readonly urls: readonly string[];
  readonly random: () => number;
  readonly results: Map<string, number>;
  readonly findings: string[];
  /** Callers that are still to come and leave. */
  remaining: number;
}

/** Callers that leave at any moment of a refresh, at a strict provider: the refresh goes on, and its tokens are stored. */
export async function runDisconnects(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const random = createRandom(seed);
  const world = await startWorld(script);
  try {
    const relays = Array.from({ length: PROCESSES }, () => world.startRelay());
    const urls = await Promise.all(relays.map((relay) => requireListening(world, relay)));
    world.tokens.play = () => delay(random() * MAX_ANSWER_MS);
    const run: Run = { world, urls, random, results: new Map(), findings: [], remaining: count };
    const refreshes = await Promise.all(Array.from({ length: AT_ONCE }, () => callForOneUser(run)));
    const stored = refreshes.reduce((sum, each) => sum + each, 0);
    return reportOf(run, count, stored);
  } finally {
    await world.close();
  }
}

/** Resolves to how often the user's token was refreshed. */
async function callForOneUser(run: Run): Promise<number> {
  const { world, urls, random, findings } = run;
  const userId = await world.connect();
  while (run.remaining > 0) await callAndLeave(run, userId);
  world.expire(userId);
  const last = await world.call(pick(random, urls), userId);
  const { state, version } = await world.find(userId);
  if (last !== "success" || state !== "ACTIVE") findings.push(`${userId} ended as ${state}: ${last}`);
  return version - 1;
}

async function callAndLeave(run: Run, userId: string): Promise<void> {
  const { world, urls, random, results, findings } = run;
  world.expire(userId);
  const signal = AbortSignal.timeout(Math.floor(random() * MAX_ANSWER_MS));
  const result = await world.call(pick(random, urls), userId, { signal });
  results.set(result, (results.get(result) ?? 0) + 1);
  if (result === "unreachable") run.remaining -= 1;
  const next = await world.call(pick(random, urls), userId);
  if (next !== "success") findings.push(`${userId}: the next caller got ${next}`);
}

function reportOf({ world, results, findings }: Run, count: number, stored: number): PartReport {
  const { exchanges } = world.tokens;
  const refused = exchanges.filter(({ statusCode }) => statusCode !== 200).length;
  if (refused > 0) findings.push(`${refused} token requests were refused`);
  if (stored !== exchanges.length) findings.push(`${stored} refreshes were stored of ${exchanges.length}`);
  return {
    lines: [
      `at least ${count} callers that left before their answer (${textOf(results)}): ` +
        `${exchanges.length} token requests, ${refused} refused, ${stored} stored`,
    ],
    findings: [...findings, ...world.faults],
  };
}
