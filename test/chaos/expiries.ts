import { setTimeout as delay } from "node:timers/promises";
import { createRandom } from "../support/random.js";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

const PROCESSES = 3;
const CALLERS = 100;
/** Connections that expire at the same moment. */
const AT_ONCE = 10;
const MAX_ANSWER_MS = 5000;

/**
 * Tokens that end, by their own time or because the provider ends them, under callers of all processes at once: each
 * end costs one token request, at a provider that never forgives a second one.
 */
export async function runExpiries(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const random = createRandom(seed);
  const world = await startWorld(script);
  try {
    const urls = await Promise.all(
      Array.from({ length: PROCESSES }, () => requireListening(world, world.startRelay())),
    );
    const users = await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, () => world.connect()));
    world.tokens.play = () => delay(random() * MAX_ANSWER_MS);
    const results = new Map<string, number>();
    for (let done = 0, round = 0; done < count; done += AT_ONCE, round += 1) {
      const ending = users.slice(0, count - done);
      if (round > 0) for (const userId of ending) round % 2 === 0 ? world.expire(userId) : world.revoke(userId);
      const calls = ending.flatMap((userId) => callersOf(world, urls, userId));
      for (const result of await Promise.all(calls)) results.set(result, (results.get(result) ?? 0) + 1);
    }
    return await reportOf(world, { count, users, results });
  } finally {
    await world.close();
  }
}

function callersOf(world: World, urls: readonly string[], userId: string): Array<Promise<string>> {
  return Array.from({ length: CALLERS }, (_, at) => world.call(urls[at % urls.length] as string, userId));
}

async function reportOf(
  { tokens, faults, find }: World,
  run: { readonly count: number; readonly users: readonly string[]; readonly results: ReadonlyMap<string, number> },
): Promise<PartReport> {
  const { count, users, results } = run;
  const refused = tokens.exchanges.filter(({ statusCode }) => statusCode !== 200).length;
  const rows = await Promise.all(users.map(find));
  const refreshes = rows.reduce((sum, { version }) => sum + version - 1, 0);
  const findings = [...faults];
  if (tokens.exchanges.length !== count)
    findings.push(`${tokens.exchanges.length} token requests for ${count} expiries`);
  if (refused > 0) findings.push(`${refused} token requests were refused`);
  if (refreshes !== count) findings.push(`${refreshes} refreshes were stored for ${count} expiries`);
  if (results.get("success") !== count * CALLERS) findings.push(`not every call succeeded: ${textOf(results)}`);
  return {
    lines: [
      `${count} expiries × ${CALLERS} callers × ${PROCESSES} processes: ${tokens.exchanges.length} token requests, ` +
        `${refused} refused, ${refreshes} stored; calls: ${textOf(results)}`,
    ],
    findings,
  };
}

/** How often each result came. */
export function textOf(results: ReadonlyMap<string, number>): string {
  return [...results].map(([result, times]) => `${times} ${result}`).join(", ") || "none";
}
