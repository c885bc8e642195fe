import { setTimeout as delay } from "node:timers/promises";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

/** Leases that are stopped at the same time, each with its owner. */
const AT_ONCE = 5;
/** Longer than callers wait, and many looks of others for owners that are gone; an owner that stands is none. */
const STOPPED_MS = 24_000;
/** How long a call may take: the one that is under way at the end of the stop has most of it before itself. */
const DEADLINE_MS = 11_000;
/** By so much an answer may be late on two busy cores. */
const MAX_LATE_MS = 5000;
/** The time in which a relay that goes on reads what came meanwhile, and acts on it. */
const AFTERMATH_MS = 1500;

/** What the provider does with a refresh token that comes twice. */
interface Scene {
  readonly name: string;
  readonly graceMs: number;
  /** Whether a refresh token that comes twice ends all that came of it. */
  readonly endsReusedGrants: boolean;
}

const SCENES: readonly Scene[] = [
  { name: "30 s of grace", graceMs: 30_000, endsReusedGrants: true },
  { name: "strict", graceMs: 0, endsReusedGrants: true },
  { name: "single use", graceMs: 0, endsReusedGrants: false },
];

/**
 * Stops the owner of a lease when the provider has answered it. Another process that is called meanwhile leaves the row
 * to it, since it lives, and its callers ask again; the owner stores its answer when it goes on. Nothing is lost.
 */
export async function runStops(script: string, { count }: PartOptions): Promise<PartReport> {
  const runs = await Promise.all(SCENES.map((scene) => runScene(script, count, scene)));
  return { lines: runs.flatMap(({ lines }) => lines), findings: runs.flatMap(({ findings }) => findings) };
}

async function runScene(script: string, total: number, scene: Scene): Promise<PartReport> {
  const world = await startWorld(script, { ...scene, settings: { RELAY_DEADLINE_MS: String(DEADLINE_MS) } });
  try {
    const peer = await requireListening(world, world.startRelay());
    const findings: string[] = [];
    const waits: number[] = [];
    for (let stopped = 0; stopped < total; stopped += AT_ONCE) {
      const length = Math.min(AT_ONCE, total - stopped);
      findings.push(...(await Promise.all(Array.from({ length }, () => stopOwner(world, peer, waits)))).flat());
    }
    findings.push(...world.faults);
    const longestMs = Math.round(Math.max(...waits));
    if (longestMs > DEADLINE_MS + MAX_LATE_MS) findings.push(`a caller waited for ${longestMs} ms`);
    const { exchanges } = world.tokens;
    // The one of the stop, and the one of the call afterwards.
    if (exchanges.length !== 2 * total) findings.push(`${exchanges.length} token requests for ${2 * total} expiries`);
    return {
      lines: [
        `${scene.name}: ${total} owners stopped for ${STOPPED_MS / 1000} s, ${exchanges.length} token requests for ` +
          `${2 * total} expiries; ${waits.length} calls meanwhile, the longest of ${longestMs} ms with a deadline of ` +
          `${DEADLINE_MS} ms; ${findings.length} findings`,
      ],
      findings: findings.map((text) => `${scene.name}: ${text}`),
    };
  } finally {
    await world.close();
  }
}

async function stopOwner(world: World, peer: string, waits: number[]): Promise<readonly string[]> {
  const relay = world.startRelay();
  const owner = await requireListening(world, relay);
  const userId = await world.connect();
  const asked = holdFirst(world, userId, () => relay.stop());
  const first = world.call(owner, userId);
  await asked;
  const meanwhile = callUntilDone(world, peer, userId, waits);
  await delay(STOPPED_MS - (Date.now() - (await asked)));
  const { version, state } = await world.find(userId);
  relay.kill("SIGCONT");
  await first;
  await delay(AFTERMATH_MS);
  const findings = version === 1 && state === "ACTIVE" ? [] : ["was taken over while its owner lived"];
  const waited = await meanwhile;
  if (waited !== "success") findings.push(`called meanwhile: ${waited}`);
  const after = await world.find(userId);
  if (after.version !== 2 || after.state !== "ACTIVE")
    findings.push(`the owner's answer was not stored: ${after.state}`);
  world.expire(userId);
  for (const url of [peer, owner]) {
    const later = await world.call(url, userId);
    if (later !== "success") findings.push(`called afterwards: ${later}`);
  }
  relay.kill("SIGTERM");
  await relay.exited;
  return findings;
}

/** Whoever is told by his deadline that the token cannot be refreshed now asks again. */
async function callUntilDone(world: World, url: string, userId: string, waits: number[]): Promise<string> {
  for (;;) {
    const startedAt = performance.now();
    const result = await world.call(url, userId);
    waits.push(performance.now() - startedAt);
    if (result !== "REFRESH_UNAVAILABLE") return result;
    await delay(500);
  }
}

/** Runs `act` when the user's first token request has been decided and before it is answered. Resolves to when. */
function holdFirst({ tokens }: World, userId: string, act: () => Promise<void>): Promise<number> {
  const before = tokens.play;
  return new Promise((resolve) => {
    let isFirst = true;
    tokens.play = async (exchange) => {
      if (exchange.userId !== userId || !isFirst) return before(exchange);
      isFirst = false;
      await act();
      resolve(Date.now());
    };
  });
}
