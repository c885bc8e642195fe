import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Connection } from "../../src/oauth/connection.js";
import { postRest } from "../support/callers.js";
import { type Harness, startHarness, type TestApplication } from "../support/harness.js";
import { startPostgresServer } from "../support/postgres-server.js";
import { startTokenEndpoint, type TestTokenEndpoint } from "../support/token-endpoint.js";
import { textOf } from "./expiries.js";
import type { PartOptions, PartReport } from "./part.js";
import { startRelayProcess } from "./relay-process.js";

const PROVIDER = "judged";
/** How long the token endpoint answers in the words of a scene, in milliseconds. */
const TROUBLE_MS = 20_000;
/** By when every connection that did not end must be callable again, in milliseconds. */
const RECOVERY_MS = 60_000;
const EVERY_MS = 500;

/** What the token endpoint answers to whom. */
interface Scene {
  readonly name: string;
  readonly status: number;
  readonly text: string;
  readonly isOfAll: boolean;
  /** How many connections it ends. */
  readonly ends: number;
  /** Whether the operator ends the trouble, by putting the right client. */
  readonly isOperators?: boolean;
}

const error = (code: string) => JSON.stringify({ error: code });
const ofAll = { isOfAll: true, ends: 0 };
const ofOne = { isOfAll: false, ends: 0 };
const SCENES: readonly Scene[] = [
  { name: "row 3: 400 with HTML for all", status: 400, text: "<html>blocked</html>", ...ofAll },
  { name: "row 3: 403 rate_limit_exceeded for all", status: 403, text: error("rate_limit_exceeded"), ...ofAll },
  { name: "row 4: unauthorized_client for one", status: 400, text: error("unauthorized_client"), ...ofOne },
  { name: "row 4: 401 without a body for one", status: 401, text: "", ...ofOne },
  { name: "row 5: a listed code for one", status: 400, text: error("BAD_REFRESH_TOKEN"), ...ofOne, ends: 1 },
  { name: "row 5: a code of no definition for one", status: 200, text: error("invalid_code"), ...ofOne },
  { name: "row 8: invalid_client for all", status: 401, text: error("invalid_client"), ...ofAll, isOperators: true },
  { name: "row 16: 500 for all", status: 500, text: "", ...ofAll },
];

/** Answers of a token endpoint for a while, then good ones: what they end, whom they hold up, and for how long. */
export async function runVerdicts(script: string, { count }: PartOptions): Promise<PartReport> {
  const server = await startPostgresServer();
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  const createDatabase = async (scene: Scene) => {
    const name = `scene_${SCENES.indexOf(scene)}`;
    await admin.query(`CREATE DATABASE ${name}`);
    const url = new URL(server.url);
    url.pathname = name;
    return url.href;
  };
  try {
    const reports = await Promise.all(SCENES.map((scene) => runScene(script, count, scene)));
    reports.push(
      ...(await Promise.all(SCENES.map(async (scene) => runScene(script, count, scene, await createDatabase(scene))))),
    );
    return { lines: reports.flatMap(({ lines }) => lines), findings: reports.flatMap(({ findings }) => findings) };
  } finally {
    await admin.end();
    await server.close();
  }
}

async function runScene(script: string, count: number, scene: Scene, database?: string): Promise<PartReport> {
  const bed = await startBed(script, count, database);
  const { users, endpoint, faults } = bed;
  try {
    let isBad = true;
    endpoint.play = async (body, response, pass) => {
      const isMeant = scene.isOfAll || new URLSearchParams(body).get("refresh_token") === bed.refreshTokens[0];
      if (isBad && isMeant) response.writeHead(scene.status).end(scene.text);
      else await pass();
    };
    const during = await callUntil(bed, new Set(), TROUBLE_MS);
    const asked = endpoint.received.length;
    isBad = false;
    if (scene.isOperators) await bed.harness.putClient(bed.application, PROVIDER);
    // One that is refused by itself waits for longer, as its trouble does.
    const expected = scene.isOfAll ? users.length - scene.ends : users.length - 1;
    const after = await callUntil(bed, during.good, RECOVERY_MS, expected);
    const rows = await Promise.all(users.map(bed.find));
    const ended = rows.filter(({ state }) => state !== "ACTIVE").length;
    const findings = [...faults];
    if (ended !== scene.ends) findings.push(`${ended} connections ended instead of ${scene.ends}`);
    if (after.good.size < expected) findings.push(`${after.good.size} of ${users.length} connections are callable`);
    const title = `${scene.name}, ${TROUBLE_MS / 1000} s, ${database === undefined ? "SQLite" : "PostgreSQL"}`;
    return {
      lines: [
        `${title}: ${users.length} connections, ${asked} token requests, ${during.good.size} refreshed meanwhile, ` +
          `${ended} ended, ${expected} callable ${Math.round(after.tookMs / 1000)} s later; ` +
          `calls meanwhile: ${textOf(during.results)}`,
      ],
      findings: findings.map((text) => `${title}: ${text}`),
    };
  } finally {
    await bed.close();
  }
}

/** Users whose tokens have ended, a relay, and a token endpoint that a scene plays. */
interface Bed {
  readonly harness: Harness;
  readonly application: TestApplication;
  readonly endpoint: TestTokenEndpoint;
  readonly users: readonly string[];
  readonly refreshTokens: readonly string[];
  readonly faults: readonly string[];
  /** Resolves to `success`, or the type of the error. */
  call(userId: string): Promise<string>;
  find(userId: string): Promise<Connection>;
  close(): Promise<void>;
}

/** @param database as RELAY_DATABASE says it; a file in SQLite by default. */
async function startBed(script: string, count: number, database?: string): Promise<Bed> {
  let harness: Harness | undefined;
  const endpoint = await startTokenEndpoint(() => harness?.sandbox.origin ?? "");
  const oauth2 = { tokenEndpoint: endpoint.url, clientAuthentication: "client_secret_basic" };
  harness = await startHarness({
    definitionsFor: (origin) => [
      { name: PROVIDER, apiOrigins: [origin], oauth2: { ...oauth2, refreshEndedErrors: ["BAD_REFRESH_TOKEN"] } },
    ],
    env: database === undefined ? {} : { RELAY_DATABASE: database },
    onLogLine: () => {},
  });
  const { folder, sandbox, store, connect } = harness;
  const faults: string[] = [];
  const env = environmentOf(folder, database ?? `sqlite:${join(folder, "relay.db")}`);
  const relay = startRelayProcess(script, env, (line) => faults.push(line));
  const url = await relay.listening;
  if (url === undefined) throw new Error(`a relay did not start: ${faults.join(" ")}`);
  const application = await harness.createApplication();
  await harness.putClient(application, PROVIDER);
  const users = Array.from({ length: count }, (_, at) => `u${at}`);
  const refreshTokens = users.map(() => sandbox.issueToken().refresh_token as string);
  for (const [at, userId] of users.entries()) {
    const refreshToken = refreshTokens[at] as string;
    await connect(application, userId, { providerName: PROVIDER, expiresAt: 1, refreshToken });
  }
  const { id: applicationId, publicKey } = application;
  const call = { url: `${sandbox.origin}/me`, method: "GET" };
  return {
    harness,
    application,
    endpoint,
    users,
    refreshTokens,
    faults,
    async call(userId) {
      const { text } = await postRest(url, { providerName: PROVIDER, userId, publicKey, call });
      const [row] = JSON.parse(text).rows as [{ pincStatus: string; errorType?: string }];
      return row.errorType ?? row.pincStatus;
    },
    find: async (userId) =>
      (await store.connections.find({ applicationId, userId, providerName: PROVIDER })) as Connection,
    async close() {
      relay.kill("SIGKILL");
      await relay.exited;
      await harness.close();
      await endpoint.close();
    },
  };
}

/** Calls, again and again, for all who have not succeeded; until so many have, or the time is over. */
async function callUntil(
  { users, call }: Bed,
  before: ReadonlySet<string>,
  forMs: number,
  expected = Number.POSITIVE_INFINITY,
): Promise<{
  readonly good: ReadonlySet<string>;
  readonly results: ReadonlyMap<string, number>;
  readonly tookMs: number;
}> {
  const good = new Set(before);
  const results = new Map<string, number>();
  const startedAt = Date.now();
  while (good.size < expected && Date.now() - startedAt < forMs) {
    for (const userId of users.filter((user) => !good.has(user))) {
      const result = await call(userId);
      if (result === "success") good.add(userId);
      results.set(result, (results.get(result) ?? 0) + 1);
    }
    await delay(EVERY_MS);
  }
  return { good, results, tookMs: Date.now() - startedAt };
}

function environmentOf(folder: string, database: string): Record<string, string> {
  return {
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: database,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_SPOOL: join(folder, "spool"),
    RELAY_PROVIDERS: [0, 1].map((at) => join(folder, `provider-${at}.json`)).join(":"),
    RELAY_ALLOW_LOOPBACK: "true",
  };
}
