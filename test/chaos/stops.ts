import { setTimeout as delay } from "node:timers/promises";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { type CallResult, startWorld, type World } from "./world.js";

/** Leases that are stopped at the same time, each with its owner. */
const AT_ONCE = 5;
/** Longer than a lease (5 s) and the look for those that were left behind (every 5 s) together. */
const STOPPED_MS = 24_000;
/** The time in which a relay that goes on reads what came meanwhile, and acts on it. */
const AFTERMATH_MS = 1500;

/** What happens while the owner stands, and what must come of it. */
interface Scene {
  readonly name: string;
  readonly graceMs: number;
  /** Whether a refresh token that comes twice ends all that came of it. */
  readonly endsReusedGrants: boolean;
  /** Whether another process is called meanwhile; else it finds the lease that was left behind by itself. */
  readonly isCalled: boolean;
  /** What a caller gets meanwhile, and from then on. */
  readonly meanwhile: CallResult;
  readonly afterwards: CallResult;
  /** What becomes of the owner's answer: kept as previous refresh token, or the proof that nothing was lost. */
  readonly late: "kept" | "proved";
}

const OVER = "REAUTHORIZATION_REQUIRED";
const FORGIVING = { graceMs: 30_000, endsReusedGrants: true, meanwhile: "success", afterwards: "success" } as const;
const STRICT = { graceMs: 0, endsReusedGrants: true, meanwhile: OVER, afterwards: OVER } as const;
const SINGLE_USE = { graceMs: 0, endsReusedGrants: false, meanwhile: OVER, afterwards: "success" } as const;

const SCENES: readonly Scene[] = [
  { name: "called, 30 s of grace", ...FORGIVING, isCalled: true, late: "kept" },
  { name: "called, strict", ...STRICT, isCalled: true, late: "kept" },
  { name: "called, single use", ...SINGLE_USE, isCalled: true, late: "proved" },
  { name: "not called, 30 s of grace", ...FORGIVING, isCalled: false, late: "kept" },
  { name: "not called, strict", ...STRICT, isCalled: false, late: "kept" },
];

/** What became of one stop. */
interface Stop {
  readonly findings: readonly string[];
  /** What became of the answer that the owner found when it went on. */
  readonly late: Scene["late"] | "nothing";
}

/**
 * Stops the owner of a lease when the provider has answered it, for longer than the lease; another process takes over,
 * with a caller or without. What the owner does when it goes on must not overwrite what is newer; its answer is kept,
 * and is the proof that nothing was lost where the provider only refused the refresh token that came twice. A provider
 * that ended the grant over it costs the connection, and that is flagged (threats 3.4).
 */
export async function runStops(script: string, { count }: PartOptions): Promise<PartReport> {
  const runs = await Promise.all(SCENES.map((scene) => runScene(script, count, scene)));
  return { lines: runs.flatMap(({ lines }) => lines), findings: runs.flatMap(({ findings }) => findings) };
}

async function runScene(script: string, total: number, scene: Scene): Promise<PartReport> {
  const world = await startWorld(script, scene);
  try {
    const peer = await requireListening(world, world.startRelay());
    const stops: Stop[] = [];
    while (stops.length < total) {
      const length = Math.min(AT_ONCE, total - stops.length);
      stops.push(...(await Promise.all(Array.from({ length }, () => stopOwner(world, peer, scene)))));
    }
    const findings = [...stops.flatMap((stop) => stop.findings), ...world.faults];
    const count = (late: Stop["late"]) => stops.filter((stop) => stop.late === late).length;
    return {
      lines: [
        `${scene.name}: ${stops.length} owners stopped for ${STOPPED_MS / 1000} s; of their late answers ` +
          `${count("kept")} kept, ${count("proved")} proved good; ${findings.length} tokens overwritten or lost`,
      ],
      findings: findings.map((text) => `${scene.name}: ${text}`),
    };
  } finally {
    await world.close();
  }
}

async function stopOwner(world: World, peer: string, scene: Scene): Promise<Stop> {
  const relay = world.startRelay();
  const owner = await requireListening(world, relay);
  const userId = await world.connect();
  const asked = holdFirst(world, userId, () => relay.stop());
  const first = world.call(owner, userId);
  await asked;
  if (scene.isCalled) await world.call(peer, userId);
  await delay(STOPPED_MS - (Date.now() - (await asked)));
  const meanwhile = await world.call(peer, userId);
  const before = world.row(userId);
  relay.kill("SIGCONT");
  await first;
  await delay(AFTERMATH_MS);
  const after = world.row(userId);
  const findings = scene.late === "kept" ? differences(before, after) : [];
  if (meanwhile !== scene.meanwhile) findings.push(`the process that took over answered ${meanwhile}`);
  if (meanwhile === OVER && before["state_reason"] !== "rotation_lost_suspected") findings.push("was not flagged");
  const late = lateOf(before, after);
  if (late !== scene.late) findings.push(`the late answer was not ${scene.late}: ${late}`);
  world.expire(userId);
  for (const url of [peer, owner]) {
    const later = await world.call(url, userId);
    if (later !== scene.afterwards) findings.push(`called afterwards: ${later}`);
  }
  relay.kill("SIGTERM");
  await relay.exited;
  return { findings, late };
}

function lateOf(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): Stop["late"] {
  if (after["previous_refresh_token"] !== null) return "kept";
  return before["state"] !== "ACTIVE" && after["state"] === "ACTIVE" ? "proved" : "nothing";
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
