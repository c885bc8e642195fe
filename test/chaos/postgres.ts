import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { type PostgresServer, startPostgresServer } from "../support/postgres-server.js";
import { createRandom } from "../support/random.js";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import { requireListening } from "./require-listening.js";
import { startWorld, type World } from "./world.js";
import type { WorldDatabase } from "./world-database.js";

const PROCESSES = 3;
const CALLERS = 100;
/** Connections that expire at the same moment. */
const AT_ONCE = 10;
const MAX_ANSWER_MS = 2000;
/** Of the answers, those before which the server ends every connection of the relays. */
const KILLED_SHARE = 0.3;
/** A relay may see a second late what was written behind its back. */
const STALE_MS = 1100;

/** What a run shares. */
interface Run {
  readonly world: World;
  readonly server: PostgresServer;
  readonly admin: pg.Pool;
  readonly random: () => number;
  readonly urls: readonly string[];
  readonly users: readonly string[];
  readonly results: Map<string, number>;
  kills: number;
}

/**
 * Tokens that end under callers of three relays on PostgreSQL, at a provider that never forgives a second request: the
 * server ends connections between the provider's answer and the commit, and crashes once in the middle.
 */
export async function runPostgres(script: string, { count, seed }: PartOptions): Promise<PartReport> {
  const server = await startPostgresServer();
  const admin = new pg.Pool({ connectionString: server.url, max: 2 });
  admin.on("error", () => {});
  const world = await startWorld(script, { database: databaseOf(server, admin) });
  try {
    const urls = await Promise.all(
      Array.from({ length: PROCESSES }, () => requireListening(world, world.startRelay())),
    );
    const users = await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, () => world.connect()));
    const run: Run = { world, server, admin, random: createRandom(seed), urls, users, results: new Map(), kills: 0 };
    const rounds = Math.ceil(count / AT_ONCE);
    for (let round = 0; round < rounds; round += 1) {
      const ending = users.slice(0, count - round * AT_ONCE);
      await (round === Math.floor(rounds / 2) ? crashRound(run, ending) : killRound(run, ending, round > 0));
    }
    return await reportOf(run, count);
  } finally {
    await world.close();
    await admin.end();
    await server.close();
  }
}

/** Every caller is called to the end: what a lost connection cost one is asked again. */
async function killRound(run: Run, ending: readonly string[], mustExpire: boolean): Promise<void> {
  const { world, random } = run;
  world.tokens.play = async () => {
    await delay(random() * MAX_ANSWER_MS);
    if (random() < KILLED_SHARE) await endConnections(run);
  };
  if (mustExpire) await expireAll(run, ending);
  await callAll(run, ending);
}

/** The server crashes when all token requests have been decided, and comes back when some answers are on their way. */
async function crashRound(run: Run, ending: readonly string[]): Promise<void> {
  const { world, server, random } = run;
  const known = world.tokens.exchanges.length;
  let crashed: Promise<unknown> | undefined;
  world.tokens.play = async () => {
    while (world.tokens.exchanges.length < known + ending.length) await delay(10);
    crashed ??= server.stop("immediate").then(() => void delay(MAX_ANSWER_MS / 2).then(() => server.start()));
    await crashed;
    await delay(random() * MAX_ANSWER_MS);
  };
  await expireAll(run, ending);
  await callAll(run, ending);
}

async function expireAll({ world }: Run, ending: readonly string[]): Promise<void> {
  await Promise.all(ending.map((userId) => world.expire(userId)));
  await delay(STALE_MS);
}

async function callAll(run: Run, ending: readonly string[]): Promise<void> {
  await Promise.all(
    ending.flatMap((userId) => Array.from({ length: CALLERS }, (_, at) => callUntilDone(run, userId, at))),
  );
}

async function callUntilDone({ world, urls, results }: Run, userId: string, caller: number): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    const result = await world.call(urls[caller % urls.length] as string, userId);
    results.set(result, (results.get(result) ?? 0) + 1);
    // While the database is away, a caller is told so and asks again.
    if (result !== "STORE_UNAVAILABLE" && result !== "REFRESH_UNAVAILABLE") return;
    await delay(200);
  }
}

async function endConnections(run: Run): Promise<void> {
  run.kills += 1;
  await run.admin
    .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'provider-call-relay'")
    // A connection of our own may have ended with the server.
    .catch(() => {});
}

async function reportOf({ world, users, results, kills }: Run, count: number): Promise<PartReport> {
  const { exchanges } = world.tokens;
  const refused = exchanges.filter(({ statusCode }) => statusCode !== 200).length;
  const rows = await Promise.all(users.map(world.find));
  const refreshes = rows.reduce((sum, { version }) => sum + version - 1, 0);
  const findings = world.faults.filter((line) => !/PostgresError|RelayError/.test(line));
  if (exchanges.length !== count) findings.push(`${exchanges.length} token requests for ${count} expiries`);
  if (refused > 0) findings.push(`${refused} token requests were refused`);
  if (refreshes !== count) findings.push(`${refreshes} refreshes were stored for ${count} expiries`);
  if (results.get("success") !== count * CALLERS) findings.push(`not every caller succeeded: ${textOf(results)}`);
  if (world.faults.some((line) => line.includes("CANARY"))) findings.push("a password is in the log");
  return {
    lines: [
      `${count} expiries × ${CALLERS} callers × ${PROCESSES} relays on PostgreSQL, connections ended ${kills} times before ` +
        `a commit, one crash: ${exchanges.length} token requests, ${refused} refused, ${refreshes} stored; calls: ${textOf(results)}`,
    ],
    findings,
  };
}

/** A database on a server of its own, as a world uses it. */
export function databaseOf(
  { url }: Pick<PostgresServer, "url">,
  admin: { query(sql: string, values: unknown[]): Promise<unknown> },
): WorldDatabase {
  return {
    url,
    expire: async (userId) => {
      await admin.query("UPDATE connections SET expires_at = 1 WHERE user_id = $1", [Buffer.from(userId)]);
    },
    row: () => {
      throw new Error("nothing compares rows here");
    },
    checkIntegrity: () => "ok",
    close: () => {},
  };
}
