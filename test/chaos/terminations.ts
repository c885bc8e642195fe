import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import type { RelayProcess } from "./relay-process.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

const CALLS = 20;
const REFRESHES = 10;
/** A call is this long at the provider, and so is a token answer that a caller waits for. */
const CALL_MS = 3000;
/** The others outlive every call, so that nothing but the refresh itself holds the relay. */
const LEFT_MS = 5000;
/** What a relay may take for calls, and then for token requests. */
const MAX_EXIT_MS = 10_000 + 8_000;

/** SIGTERM during calls and refreshes, half of them with no caller left, at a strict provider. */
export async function runTerminations(script: string, { count }: PartOptions): Promise<PartReport> {
  const reports: PartReport[] = [];
  while (reports.length < count) reports.push(await terminateOnce(script));
  return { lines: reports.flatMap(({ lines }) => lines), findings: reports.flatMap(({ findings }) => findings) };
}

async function terminateOnce(script: string): Promise<PartReport> {
  const world = await startWorld(script);
  try {
    const relay = world.startRelay();
    const url = await requireListening(world, relay);
    const callers = await Promise.all(Array.from({ length: CALLS }, () => world.connect()));
    for (const userId of callers) await world.call(url, userId);
    const users = await Promise.all(Array.from({ length: REFRESHES }, () => world.connect()));
    const pending = await begin(world, url, { callers, users });
    const { exitMs, findings } = await terminate(relay);
    const results = new Map<string, number>();
    for (const result of await Promise.all(pending)) results.set(result, (results.get(result) ?? 0) + 1);
    if (results.get("success") !== CALLS + REFRESHES / 2) findings.push(`calls ended as ${textOf(results)}`);
    const stored = (await Promise.all(users.map(world.find))).filter(({ version }) => version === 2).length;
    if (stored !== REFRESHES) findings.push(`${stored} of ${REFRESHES} refreshes were stored`);
    findings.push(...(await callAgain(world, [...callers, ...users])), ...world.faults);
    return {
      lines: [
        `SIGTERM during ${CALLS} calls and ${REFRESHES} refreshes: exit after ${Math.round(exitMs)} ms, ${stored} refreshes stored; ` +
          `calls: ${textOf(results)}`,
      ],
      findings,
    };
  } finally {
    await world.close();
  }
}

/** Resolves when all calls and refreshes are at the provider and half of those who wait for a refresh have left. */
async function begin(
  world: World,
  url: string,
  { callers, users }: { readonly callers: readonly string[]; readonly users: readonly string[] },
): Promise<ReadonlyArray<Promise<string>>> {
  const known = world.tokens.exchanges.length;
  const left = new Set(users.filter((_, at) => at % 2 === 1));
  world.tokens.play = ({ userId = "" }) => delay(left.has(userId) ? LEFT_MS : CALL_MS);
  const leaving = new AbortController();
  const refreshes = users.map((userId) => world.call(url, userId, left.has(userId) ? { signal: leaving.signal } : {}));
  const calls = callers.map((userId) => world.call(url, userId, { path: `/slow?ms=${CALL_MS}` }));
  while (world.tokens.exchanges.length < known + users.length) await delay(10);
  await delay(300);
  leaving.abort();
  await delay(100);
  return [...calls, ...refreshes];
}

async function terminate(relay: RelayProcess): Promise<{ readonly exitMs: number; readonly findings: string[] }> {
  const startedAt = performance.now();
  relay.kill("SIGTERM");
  const { code, signal } = await relay.exited;
  const exitMs = performance.now() - startedAt;
  const findings = code === 0 ? [] : [`exit code ${code}, signal ${signal}`];
  if (exitMs > MAX_EXIT_MS) findings.push(`the exit took ${Math.round(exitMs)} ms`);
  return { exitMs, findings };
}

/** The next process refreshes every one of them: nothing was lost. */
async function callAgain(world: World, users: readonly string[]): Promise<string[]> {
  world.tokens.play = async () => {};
  const url = await requireListening(world, world.startRelay());
  const findings: string[] = [];
  for (const userId of users) {
    world.expire(userId);
    const result = await world.call(url, userId);
    if (result !== "success") findings.push(`called afterwards: ${result}`);
  }
  return findings;
}
