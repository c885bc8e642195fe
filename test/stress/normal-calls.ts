import { Pool } from "undici";
import type { ChildRelay } from "./child-relay.js";

/** How many calls of a client that does nothing wrong. */
export interface NormalCalls {
  readonly calls: number;
  /** Calls at once. */
  readonly concurrency: number;
  /** Goes on for at least so long; default 0. */
  readonly atLeastMs?: number;
}

/** What became of them. */
export interface NormalResult {
  readonly calls: number;
  readonly succeeded: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Kinds of failure and how often. */
  readonly failures: ReadonlyMap<string, number>;
}

/** Makes calls over kept-alive connections to the JSON route of the provider `normal`, which is a LabelProvider. */
export async function performNormalCalls(
  relay: Pick<ChildRelay, "url" | "publicKey">,
  origin: string,
  { calls, concurrency, atLeastMs = 0 }: NormalCalls,
): Promise<NormalResult> {
  const pool = new Pool(relay.url, { connections: concurrency, pipelining: 1 });
  const times: number[] = [];
  const failures = new Map<string, number>();
  const until = performance.now() + atLeastMs;
  let next = 0;
  const work = async () => {
    while (next < calls || performance.now() < until) {
      const startedAt = performance.now();
      const problem = await problemOf(pool, relay.publicKey, origin, `normal-${next++}`);
      if (problem === undefined) times.push(performance.now() - startedAt);
      else failures.set(problem, (failures.get(problem) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  await pool.close();
  times.sort((a, b) => a - b);
  return { calls: next, succeeded: times.length, medianMs: at(times, 0.5), p99Ms: at(times, 0.99), failures };
}

/** One call; what was wrong with it, if anything. */
export async function problemOf(
  pool: Pick<Pool, "request">,
  publicKey: string,
  origin: string,
  marker: string,
): Promise<string | undefined> {
  const path = `/oauth/method/normal/call?user_id=u&public_key=${publicKey}`;
  const body = JSON.stringify({ url: `${origin}/`, method: "POST", payload: { marker, ms: 0, size: 500 } });
  try {
    const answer = await pool.request({ path, method: "POST", body });
    const { rows } = (await answer.body.json()) as { rows: [{ errorType?: string; data?: { marker?: string } }] };
    if (rows[0].data?.marker === marker) return undefined;
    return rows[0].errorType ?? "another answer";
  } catch (error) {
    return String((error as { code?: unknown }).code ?? error);
  }
}

/** Failures in a few words. */
export function textOf(failures: ReadonlyMap<string, number>): string {
  return [...failures].map(([kind, count]) => `${count} × ${kind}`).join(", ");
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
