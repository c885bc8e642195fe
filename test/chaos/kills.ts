import { setTimeout as delay } from "node:timers/promises";
import { createRandom, pick } from "../support/random.js";
import { textOf } from "./expiries.js";
import { createFleet, type Fleet } from "./fleet.js";
import { createLosses, type Losses } from "./losses.js";
import type { PartOptions, PartReport } from "./part.js";
import { startWorld, type World } from "./world.js";

const PROCESSES = 4;
const USERS = 60;
const CALLERS = 24;
/** As providers with a grace window grant it (threats 3.1). */
const GRACE_MS = 30_000;
const MAX_ANSWER_MS = 400;
/** Between two kills, at most. */
const MAX_PAUSE_MS = 2000;
/** The look for processes that are gone (every 2 s), a backoff, and room for two busy cores. */
const MAX_STUCK_MS = 15_000;
/** How long a process lives that is one of the short-lived, in milliseconds: half of them from when they listen on. */
const SHORT_LIFE_MS = { from: 200, to: 3000 };

/** What a run shares. */
interface Run {
  readonly world: World;
  readonly fleet: Fleet;
  readonly losses: Losses;
  readonly users: readonly string[];
  readonly random: () => number;
  readonly results: Map<string, number>;
  isOver: boolean;
}

/** Ends processes. Resolves when it has ended so many. */
type Killer = (fleet: Fleet, count: number, random: () => number) => Promise<void>;

/** Kills processes at random moments: first with a provider that forgives a repeated refresh for 30 s, then without. */
export async function runKills(script: string, options: PartOptions): Promise<PartReport> {
  const forgiving = await runAgainst(script, options, GRACE_MS, killAnyone);
  const strict = await runAgainst(script, options, 0, killAnyone);
  return { lines: [...forgiving.lines, ...strict.lines], findings: [...forgiving.findings, ...strict.findings] };
}

/** Kills every process within seconds of its start, many of them before they listen. */
export async function runShortLives(script: string, options: PartOptions): Promise<PartReport> {
  return runAgainst(script, options, GRACE_MS, killEveryone);
}

const killAnyone: Killer = async (fleet, count, random) => {
  for (let killed = 0; killed < count; killed += 1) {
    await delay(random() * MAX_PAUSE_MS);
    fleet.kill(Math.floor(random() * PROCESSES));
  }
};

const killEveryone: Killer = async (fleet, count, random) => {
  const { from, to } = SHORT_LIFE_MS;
  const killAt = async (at: number) => {
    while (fleet.kills.length < count) {
      await fleet.started(at);
      if (random() < 0.5) await fleet.listening(at);
      await delay(from + random() * (to - from));
      fleet.kill(at);
    }
  };
  await Promise.all(Array.from({ length: PROCESSES }, (_, at) => killAt(at)));
};

async function runAgainst(
  script: string,
  { count, seed }: PartOptions,
  graceMs: number,
  killer: Killer,
): Promise<PartReport> {
  const random = createRandom(seed);
  const world = await startWorld(script, { graceMs });
  const fleet = createFleet(world, PROCESSES);
  try {
    await fleet.ready();
    const users = await Promise.all(Array.from({ length: USERS }, () => world.connect()));
    world.tokens.play = () => delay(random() * MAX_ANSWER_MS);
    const run = { world, fleet, users, random, losses: createLosses(world, fleet), results: new Map(), isOver: false };
    const callers = Array.from({ length: CALLERS }, () => callOn(run));
    await killer(fleet, count, random);
    run.isOver = true;
    await Promise.all(callers);
    await fleet.ready();
    return await reportOf(run, graceMs, await settle(run));
  } finally {
    fleet.close();
    await world.close();
  }
}

/** A caller: now and then the token of the user it calls for has ended, and it asks again while there is no answer. */
async function callOn(run: Run): Promise<void> {
  const { world, random, users } = run;
  while (!run.isOver) {
    const userId = pick(random, users);
    if (random() < 0.5) world.expire(userId);
    await callUntilAnswered(run, userId, 5);
    await delay(random() * 200);
  }
}

/** Resolves to whether the user's token is good. A user who has to connect again does so. */
async function callUntilAnswered(run: Run, userId: string, tries: number): Promise<boolean> {
  const { world, fleet, losses, results } = run;
  for (let tried = 0; tried < tries; tried += 1) {
    const result = await world.call(fleet.url(run.random), userId);
    results.set(result, (results.get(result) ?? 0) + 1);
    if (result === "success") return true;
    if (result === "REAUTHORIZATION_REQUIRED") return losses.reconnect(userId).then(() => true);
    await delay(100);
  }
  return false;
}

/** Every connection is called with a token that has ended. Resolves to what is wrong, and the longest wait. */
async function settle(run: Run): Promise<{ readonly findings: readonly string[]; readonly longestMs: number }> {
  const findings: string[] = [];
  const doubted = new Set<string>();
  let longestMs = 0;
  await Promise.all(
    run.users.map(async (userId) => {
      const startedAt = performance.now();
      run.world.expire(userId);
      while (!(await callUntilAnswered(run, userId, 1))) {
        if ((await run.world.find(userId)).lastErrorClass === "invalid_grant") return void doubted.add(userId);
        if (performance.now() - startedAt > 2 * MAX_STUCK_MS) break;
      }
      const ms = performance.now() - startedAt;
      longestMs = Math.max(longestMs, ms);
      if (ms > MAX_STUCK_MS) findings.push(`${userId} was stuck for ${Math.round(ms)} ms`);
    }),
  );
  const well = run.users.find((userId) => !doubted.has(userId));
  for (const userId of doubted) {
    if (!(await isFlaggedAtLast(run, userId, well))) findings.push(`${userId} was refused, and not flagged at last`);
  }
  for (const userId of run.users) {
    const { state, leaseUntil } = await run.world.find(userId);
    if (state !== "ACTIVE") findings.push(`${userId} ended as ${state}`);
    if (leaseUntil !== undefined) findings.push(`${userId} kept a lease`);
  }
  return { findings, longestMs };
}

/**
 * Where many are refused at once, the refusals are doubted (verdict.ts) until another connection is refreshed. Waits for
 * the next try, lets another one be refreshed, and calls.
 */
async function isFlaggedAtLast(run: Run, userId: string, well: string | undefined): Promise<boolean> {
  if (well === undefined) return false;
  const { nextTryAt = 0 } = await run.world.find(userId);
  await delay(Math.max(0, nextTryAt - Date.now()));
  run.world.expire(well);
  return (await callUntilAnswered(run, well, 5)) && (await callUntilAnswered(run, userId, 5));
}

async function reportOf(
  { world, fleet, losses, results }: Run,
  graceMs: number,
  settled: { readonly findings: readonly string[]; readonly longestMs: number },
): Promise<PartReport> {
  const integrity = world.checkIntegrity();
  const unexpected = [...results.keys()].filter((result) => !EXPECTED.has(result));
  const findings = [
    ...settled.findings,
    ...losses.findings(),
    ...world.faults,
    ...unexpected.map((result) => `${results.get(result)} calls ended with ${result}`),
    ...(integrity === "ok" ? [] : [`integrity_check: ${integrity}`]),
    ...(graceMs > 0 ? losses.avoidable(graceMs).map((text) => `lost: ${text}`) : []),
  ];
  const what = graceMs > 0 ? `with ${graceMs / 1000} s of grace` : "strict";
  return {
    lines: [
      `${what}: ${fleet.kills.length} kills over ${PROCESSES} processes, ${fleet.startingKills()} of them while starting, ` +
        `${losses.midRefresh()} refreshes cut off; ${world.tokens.exchanges.length} token requests; calls: ${textOf(results)}`,
      `${what}: ${losses.lost.length} lost of ${USERS} connections (${losses.reasons()}), all flagged: ` +
        `${losses.findings().length === 0 ? "yes" : "NO"}; at the end callable within ${Math.round(settled.longestMs)} ms; ` +
        `integrity_check ${integrity}`,
    ],
    findings,
  };
}

/** A refresh that another process died over may have to wait for its lease, and a provider that was cut off for backoff. */
const EXPECTED = new Set(["success", "refused", "unreachable", "REFRESH_UNAVAILABLE", "REAUTHORIZATION_REQUIRED"]);
