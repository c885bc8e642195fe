import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { auditEntryFrom, createAuditStamps } from "../admin/administration.js";
import { type AdminToken, type Admit, createAdmit, createAuthenticate, loadAdminTokens } from "../admin/admit.js";
import { createConsoleHandler } from "../admin/console-handler.js";
import { answerNotAdmitted, createAdminRpcHandler } from "../admin/rpc-handler.js";
import { createSignInHandler } from "../admin/sign-in.js";
import { createRateLimiter, type RateLimiter } from "../call/allowed-call.js";
import { createStreamGarbage, type StreamGarbage } from "../call/budget.js";
import type { Call } from "../call/call.js";
import { explainCall } from "../call/explain.js";
import type { Explanation } from "../call/explanation.js";
import { createBoundary } from "../call/multipart.js";
import { createRelay, type Relay } from "../call/relay.js";
import { createRedactors } from "../call/send-with-token.js";
import type { Config } from "../config/config.js";
import { defaultSpool } from "../config/database-location.js";
import { createRouter, type PathHandler, type Readiness } from "../http/dispatch.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../http/exchange.js";
import type { TlsMaterial } from "../http/http1.js";
import { type Listener, listen } from "../http/listener.js";
import { createYoungCollection } from "../lib/process.js";
import { createTurns, type Turns } from "../lib/turns.js";
import { lateWork } from "../model/errors.js";
import { createSigningClientFor } from "../oauth/authorization-server.js";
import { createTokenSource } from "../oauth/token-source.js";
import type { ConnectionCounts } from "../store/store-health.js";
import { gaugeOf, gaugesOf, type Metric } from "../telemetry/metric.js";
import { METRICS } from "../telemetry/metric-list.js";
import { EXPOSITION_TYPE, expositionOf } from "../telemetry/metrics.js";
import { limiterOverWorkers } from "../workers/worker.js";
import type { Parts } from "./parts.js";

/** Enough for operators, scrapers and open pages, not all for one client. The remaining descriptors are for calls. */
const LIMITS = { maxConnections: 200, maxClientConnections: 150 };

/**
 * Opens the administration port, with TLS if the public port uses it; undefined when it is switched off. Rejects with
 * AdminTokenFileError, or when the port is taken.
 */
export async function listenForOperators(wiring: Wiring): Promise<Listener | undefined> {
  const { config, parts, readiness, tls, isTrustedProxy } = wiring;
  const { adminListen } = config;
  if (adminListen === "off") return undefined;
  const handlers = await handlersFor(wiring);
  return listen({
    host: adminListen.host,
    port: adminListen.port,
    tls,
    handler: createRouter(handlers, readiness),
    onFault: parts.log.fault,
    isTrustedProxy,
    limits: { ...LIMITS, writeTimeoutMs: config.writeTimeoutMs },
  });
}

/** Handlers of the administration port. Each authenticates its requests, except for the console's files. */
async function handlersFor(wiring: Wiring): Promise<readonly PathHandler[]> {
  const { config, parts, calls, readiness, clientAddress } = wiring;
  const { store, sealer, catalog, providerFiles, authorization, refresher, self, log } = parts;
  const tokens = await loadTokens(wiring);
  const admit = createAdmit({
    authenticate: createAuthenticate(tokens),
    sessions: store.sessions,
    clientAddress,
    now: () => performance.now(),
  });
  const options = {
    store,
    sealer,
    catalog,
    providerFiles,
    disconnection: authorization,
    connecting: authorization,
    refresher,
    problems: () => [...store.health.problems.values()].flatMap((problem) => problem?.message ?? []),
    diskRoom: () => diskRoomOf(config),
    stopped: readiness.stopped,
    allowLoopback: config.allowLoopback,
    clientAddress,
    publicUrl: () => self.publicUrl,
    calls: { ...calls, deadlineMs: config.deadlineMs },
    now: Date.now,
    newAuditStamp: createAuditStamps(Date.now, () => randomBytes(8)),
    onFault: log.fault,
  };
  const rpcs = createAdminRpcHandler(options, admit);
  const auditOf = (actor: string, method: "relay console" | "relay console sign-out") =>
    auditEntryFrom({ ...options, actor }, method, { name: `sessions/${actor}`, publicKey: "" });
  const signIns = createSignInHandler({
    ...{ tokens, admit, clientAddress },
    folder: config.spool ?? defaultSpool(config.database),
    onSignIn: (name) => store.audit.add({ ...auditOf(name, "relay console"), outcome: "DONE" }),
    onSignOut: ({ name, session }) => store.sessions.end(session, Date.now(), auditOf(name, "relay console sign-out")),
  });
  return [rpcs, ...metricsHandlersFor(parts, admit), signIns, createConsoleHandler()];
}

/** Free space on the disk of a SQLite database; undefined for PostgreSQL. */
async function diskRoomOf({ database }: Pick<Config, "database">) {
  if (database.kind !== "sqlite") return undefined;
  const { bavail, blocks, bsize } = await statfs(dirname(database.path));
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

async function loadTokens({ config, parts: { logger } }: Wiring): Promise<readonly AdminToken[]> {
  const { adminTokenFile: file, keyFileMustExist: mustExist } = config;
  const onCreated = () => logger.info({ file }, "created a file with a new admin token");
  return loadAdminTokens(file, { mustExist, onCreated });
}

/**
 * `GET /metrics` in the text format of Prometheus, for the holder of any admin token. Empty when metrics are switched
 * off.
 */
function metricsHandlersFor({ metrics, store, log }: Parts, admit: Admit): readonly PathHandler[] {
  if (metrics === undefined) return [];
  const readConnections = createConnectionGauge({
    count: () => store.countConnections(),
    now: () => performance.now(),
    onFault: (error) => log.fault("metrics", error),
  });
  const read = async () => [...(await metrics.readAll()), ...(await readConnections())];
  const options = { admit, read, onFault: log.fault };
  return [(request, response, path) => (path === METRICS_PATH ? answerMetrics(options, request, response) : undefined)];
}

export const METRICS_PATH = "/metrics";

interface MetricsOptions {
  readonly admit: Admit;
  /** Current values of all metrics. Rejects when a process cannot be reached. */
  readonly read: () => Promise<readonly Metric[]>;
  readonly onFault: (where: string, error: unknown) => void;
}

async function answerMetrics(
  { admit, read, onFault }: MetricsOptions,
  request: HttpRequest,
  response: HttpResponse,
): Promise<void> {
  const admission = await admit(request);
  if (!admission.isAdmitted) return answerNotAdmitted(request, response, admission);
  const { method } = request;
  if (method !== "GET" && method !== "HEAD") {
    return answerPlain(response, 405, "Send a GET request.", { allow: "GET, HEAD" });
  }
  let text: string;
  try {
    text = await expositionOf([await read()]);
  } catch (error) {
    onFault("metrics", error);
    return answerPlain(response, 503, "The metrics of the other processes are not available right now.");
  }
  const body = Buffer.from(text);
  response.writeHead(200, {
    "content-type": EXPOSITION_TYPE,
    "content-length": String(body.length),
    "cache-control": "no-store",
  });
  response.end(body);
}

interface ConnectionGaugeOptions {
  readonly count: () => Promise<ConnectionCounts>;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Called with the error when counting fails. */
  readonly onFault: (error: unknown) => void;
}

/** Counting scans an index entry per connection. Once a minute is often enough for a number that changes slowly. */
const FRESH_MS = 60_000;
/** How long a scrape waits for a count in progress before it reports the previous one, or none. */
const WAIT_MS = 500;

/** Gauge of the connections in the store. Never rejects: leaves out counts that are not available. */
export function createConnectionGauge({ count, now, onFault }: ConnectionGaugeOptions): () => Promise<Metric[]> {
  let counts: ConnectionCounts | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  let counting = Promise.resolve();

  async function recount(): Promise<void> {
    try {
      counts = await count();
    } catch (error) {
      counts = undefined;
      onFault(error);
    }
  }

  return async () => {
    if (now() - startedAt >= FRESH_MS) {
      startedAt = now();
      counting = counting.then(recount);
    }
    await Promise.race([counting, delay(WAIT_MS, undefined, { ref: false })]);
    if (counts === undefined) return [];
    const states = [...counts.states].map(([state, value]) => ({ labels: { state: state.toLowerCase() }, value }));
    return [gaugesOf(METRICS.connections, states), gaugeOf(METRICS.connectionsRefreshFailing, counts.refreshFailing)];
  };
}

/** What both ports are built from. */
export interface Wiring {
  readonly config: Config;
  readonly parts: Parts;
  readonly calls: CallParts;
  readonly readiness: Readiness;
  /** Undefined: cleartext. */
  readonly tls: TlsMaterial | undefined;
  /** Whether an address is one of RELAY_TRUSTED_PROXIES. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Client address, after the trusted proxies. */
  readonly clientAddress: (request: HttpRequest) => string;
}

/** Performs and explains calls; shared by all surfaces. */
interface CallParts {
  readonly relay: Relay;
  /** See `explainCall()`. */
  readonly explain: (read: () => Call) => Promise<Explanation>;
  readonly rateLimiter: RateLimiter;
  readonly turns: Turns;
  readonly streamGarbage: StreamGarbage;
}

/** Created once, so that all surfaces share counters and decide alike. */
export function createCallParts(parts: Parts): CallParts {
  const { store, sealer, catalog, upstream, log, refresher, authorization, recording } = parts;
  const rateLimiter = createRateLimiter(limiterOverWorkers);
  const turns = createTurns(lateWork);
  const streamGarbage = createStreamGarbage(createYoungCollection());
  const checks = {
    now: Date.now,
    applications: store.lookups.applications,
    openPrivateKeyHash: authorization.openPrivateKeyHash,
    catalog,
    connections: store.lookups.connections,
    rateLimiter,
    newBoundary: createBoundary,
    turns,
  };
  const signingClientFor = createSigningClientFor({ catalog, oauthClients: store.oauthClients });
  const { connections } = store;
  const relay = createRelay({
    ...checks,
    tokens: createTokenSource({ sealer, catalog, connections, refresher, signingClientFor, now: Date.now }),
    upstream,
    capturing: recording.capturing,
    redactorFor: createRedactors(),
    streamGarbage,
    log,
  });
  const { requireRefreshable } = refresher;
  return {
    relay,
    rateLimiter,
    turns,
    streamGarbage,
    explain: (read) => explainCall({ ...checks, requireRefreshable, signingClientFor, onFault: log.fault }, read),
  };
}
