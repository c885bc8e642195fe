import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { type PostgresServer, startPostgresServer } from "../support/postgres-server.js";
import { createRandom } from "../support/random.js";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import { databaseOf } from "./postgres.js";
import { refusalsOfFile, refusalsOfServer } from "./refusals.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";

const PROCESSES = 3;
/** Connections that expire at the same moment. */
const AT_ONCE = 50;
/** How long the store refuses every write: longer than leases once were. */
const REFUSED_MS = 12_000;
/** From and to which the token endpoint takes: longer than requests once were listened to, and than callers wait. */
const SLOW_MS = { from: 9000, to: 40_000 };
const GRACES_MS = [0, 30_000];
/** A relay may see a second late what was written behind its back. */
const STALE_MS = 1100;

/** A database that can be made to refuse writes, and how it says so. */
interface Bed {
  readonly name: string;
  /** Resolves to what lets it take writes again. */
  refuse(): Promise<() => Promise<void>>;
  readonly world: World;
  close(): Promise<void>;
}

/**
 * Stores that refuse every write after the provider has answered, and a token endpoint that takes longer than callers
 * wait: of many processes none sends a refresh token whose answer another one has, or will have.
 */
export function runOutages(script: string, options: PartOptions): Promise<PartReport> {
  return runOn(createSqliteBed, script, options);
}

/** The same on PostgreSQL. */
export function runPostgresOutages(script: string, options: PartOptions): Promise<PartReport> {
  return runOn(createPostgresBed, script, options);
}

async function runOn(
  createBed: (script: string, graceMs: number) => Promise<Bed>,
  script: string,
  options: PartOptions,
): Promise<PartReport> {
  const reports: PartReport[] = [];
  for (const graceMs of GRACES_MS) {
    for (const scene of [refusalScene, slowScene]) {
      const bed = await createBed(script, graceMs);
      try {
        reports.push(await runScene(bed, options, { graceMs, scene }));
      } finally {
        await bed.close();
      }
    }
  }
  return { lines: reports.flatMap(({ lines }) => lines), findings: reports.flatMap(({ findings }) => findings) };
}

/** Prepares a round of so many expiries; the callers come afterwards. */
type Scene = (bed: Bed, ending: number, random: () => number) => { readonly name: string };

const refusalScene: Scene = ({ world, refuse }, ending) => {
  const known = world.tokens.exchanges.length;
  let refused: Promise<unknown> | undefined;
  world.tokens.play = async () => {
    // Every lease is written by then, and no answer is.
    while (world.tokens.exchanges.length < known + ending) await delay(10);
    refused ??= refuse().then((allow) => void delay(REFUSED_MS).then(allow));
    await refused;
  };
  return { name: `the store refuses writes for ${REFUSED_MS / 1000} s` };
};

const slowScene: Scene = ({ world }, _ending, random) => {
  world.tokens.play = () => delay(SLOW_MS.from + random() * (SLOW_MS.to - SLOW_MS.from));
  return { name: `the token endpoint takes ${SLOW_MS.from / 1000} to ${SLOW_MS.to / 1000} s` };
};

async function runScene(
  bed: Bed,
  { count, seed }: PartOptions,
  { graceMs, scene }: { readonly graceMs: number; readonly scene: Scene },
): Promise<PartReport> {
  const { world } = bed;
  const random = createRandom(seed);
  const urls = await Promise.all(Array.from({ length: PROCESSES }, () => requireListening(world, world.startRelay())));
  const users: string[] = [];
  while (users.length < Math.min(AT_ONCE, count)) users.push(await world.connect());
  const results = new Map<string, number>();
  let what = "";
  for (let done = 0; done < count; done += AT_ONCE) {
    const ending = users.slice(0, count - done);
    if (done > 0) await Promise.all(ending.map((userId) => world.expire(userId)));
    await delay(STALE_MS);
    what = scene(bed, ending.length, random).name;
    const calls = ending.flatMap((userId) => urls.map((url) => callUntilDone(world, url, userId, results)));
    await Promise.all(calls);
  }
  const { exchanges } = world.tokens;
  const refused = exchanges.filter(({ statusCode }) => statusCode !== 200).length;
  const rows = await Promise.all(users.map(world.find));
  const stored = rows.reduce((sum, { version }) => sum + version - 1, 0);
  const lost = rows.filter(({ state }) => state !== "ACTIVE").length;
  const findings = world.faults.filter((line) => !/PostgresError|RelayError|SqliteError/.test(line));
  if (lost > 0) findings.push(`${lost} connections were lost`);
  if (exchanges.length !== count) findings.push(`${exchanges.length} token requests for ${count} expiries`);
  if (stored !== count) findings.push(`${stored} answers were stored for ${count} expiries`);
  const grace = graceMs === 0 ? "strict" : `${graceMs / 1000} s of grace`;
  const title = `${bed.name}, ${grace}, ${what}`;
  return {
    lines: [
      `${title}: ${count} expiries under callers of ${PROCESSES} processes, ${exchanges.length} token requests, ` +
        `${refused} refused, ${stored} stored, ${lost} lost; calls: ${textOf(results)}`,
    ],
    findings: findings.map((text) => `${title}: ${text}`),
  };
}

/** While the store refuses, or the provider does not answer, a caller is told so and asks again. */
async function callUntilDone(world: World, url: string, userId: string, results: Map<string, number>): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    const result = await world.call(url, userId);
    results.set(result, (results.get(result) ?? 0) + 1);
    if (result !== "STORE_UNAVAILABLE" && result !== "REFRESH_UNAVAILABLE") return;
    await delay(500);
  }
}

async function createSqliteBed(script: string, graceMs: number): Promise<Bed> {
  const world = await startWorld(script, { graceMs });
  const refusals = refusalsOfFile(world.databaseFile ?? "");
  return {
    name: "SQLite",
    world,
    refuse: () => refusals.refuse(),
    async close() {
      refusals.close();
      await world.close();
    },
  };
}

async function createPostgresBed(script: string, graceMs: number): Promise<Bed> {
  const server: PostgresServer = await startPostgresServer();
  const admin = new pg.Pool({ connectionString: server.url, max: 2 });
  const world = await startWorld(script, { graceMs, database: databaseOf(server, admin) });
  const refusals = await refusalsOfServer(admin);
  return {
    name: "PostgreSQL",
    world,
    refuse: () => refusals.refuse(),
    async close() {
      await world.close();
      await admin.end();
      await server.close();
    },
  };
}
