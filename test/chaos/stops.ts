import { setTimeout as delay } from "node:timers/promises";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

/** Leases that are stopped at the same time, each with its owner. */
const AT_ONCE = 5;
/** Twice the lease of a renewal. */
const STOPPED_MS = 24_000;
/** The time in which a relay that goes on reads what came meanwhile, and acts on it. */
const AFTERMATH_MS = 1500;

/** What happens while the owner stands. */
interface Scene {
  readonly name: string;
  readonly graceMs: number;
  /** Whether another process is called meanwhile. */
  readonly isTakenOver: boolean;
  /** What a caller gets from then on. */
  readonly result: string;
}

const SCENES: readonly Scene[] = [
  { name: "taken over, 30 s of grace", graceMs: 30_000, isTakenOver: true, result: "success" },
  { name: "taken over, strict", graceMs: 0, isTakenOver: true, result: "REAUTHORIZATION_REQUIRED" },
  { name: "not taken over, strict", graceMs: 0, isTakenOver: false, result: "success" },
];

/** What became of one stop. */
interface Stop {
  readonly findings: readonly string[];
  /** Whether the owner that was stopped found its answer, and that it had come too late. */
  readonly kept: boolean;
}

/**
 * Stops the owner of a lease when the provider has answered it, for twice the lease; another process takes over. What
 * the owner does when it goes on must not overwrite what is newer. With a forgiving provider and with a strict one; and
 * with nobody who takes over, when what the owner was answered must be stored.
 */
export async function runStops(script: string, { count }: PartOptions): Promise<PartReport> {
  const runs = await Promise.all(SCENES.map((scene) => runScene(script, count, scene)));
  return { lines: runs.flatMap(({ lines }) => lines), findings: runs.flatMap(({ findings }) => findings) };
}

async function runScene(script: string, count: number, scene: Scene): Promise<PartReport> {
  const world = await startWorld(script, { graceMs: scene.graceMs });
  try {
    const peer = await requireListening(world, world.startRelay());
    const stops: Stop[] = [];
    while (stops.length < count) {
      const length = Math.min(AT_ONCE, count - stops.length);
      stops.push(...(await Promise.all(Array.from({ length }, () => stopOwner(world, peer, scene)))));
    }
    const kept = stops.filter((stop) => stop.kept).length;
    const findings = [...stops.flatMap((stop) => stop.findings), ...world.faults].map(
      (text) => `${scene.name}: ${text}`,
    );
    const expected = scene.isTakenOver ? count : 0;
    if (kept !== expected) findings.push(`${scene.name}: ${kept} of ${expected} late answers were kept`);
    return {
      lines: [
        `${scene.name}: ${count} owners stopped for ${STOPPED_MS / 1000} s, ${kept} late answers kept as previous refresh token, ` +
          `${findings.length} tokens overwritten or lost`,
      ],
      findings,
    };
  } finally {
    await world.close();
  }
}

async function stopOwner(world: World, peer: string, { isTakenOver, result }: Scene): Promise<Stop> {
  const relay = world.startRelay();
  const owner = await requireListening(world, relay);
  const userId = await world.connect();
  const asked = holdFirst(world, userId, () => relay.stop());
  const first = world.call(owner, userId);
  await asked;
  const second = isTakenOver ? await world.call(peer, userId) : result;
  const before = world.row(userId);
  await delay(STOPPED_MS - (Date.now() - (await asked)));
  relay.kill("SIGCONT");
  await first;
  await delay(AFTERMATH_MS);
  const after = world.row(userId);
  const findings = isTakenOver ? differences(before, after) : [];
  if (second !== result) findings.push(`the process that took over answered ${second}`);
  world.expire(userId);
  for (const url of [peer, owner]) {
    const later = await world.call(url, userId);
    if (later !== result) findings.push(`called afterwards: ${later}`);
  }
  relay.kill("SIGTERM");
  await relay.exited;
  return { findings, kept: after["previous_refresh_token"] !== null };
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

/** What the row says; who renews it is no part of that. */
const COLUMNS = ["access_token", "refresh_token", "obtained_at", "expires_at", "version", "state", "state_reason"];

function differences(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string[] {
  const text = (value: unknown) => (Buffer.isBuffer(value) ? value.toString("hex") : String(value));
  const changed = COLUMNS.filter((column) => text(before[column]) !== text(after[column]));
  return changed.map((column) => `the owner that went on changed ${column}`);
}
