import type { Logger } from "pino";
import { openPrivateKeyHash } from "../applications/application.js";
import { createRelayLog, type RelayLog, reasonOf } from "../call/trace.js";
import type { Config } from "../config/config.js";
import { createPending, packageVersion } from "../lib/process.js";
import { type AuthorizationOptions, createPlaceFor, createTargetFor } from "../oauth/authorization-server.js";
import { createBreaker, createClientHolds } from "../oauth/breaker.js";
import type { Peers, Spool } from "../oauth/peers.js";
import { createRefresher, type Refresher } from "../oauth/refresher.js";
import { startExpirySweep, startSweep } from "../oauth/sweep.js";
import { createTickets } from "../oauth/tickets.js";
import { createTokenEndpoint, MAX_TOKEN_ANSWER_BYTES } from "../oauth/token-endpoint.js";
import { loadProviders } from "../providers/catalog.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { loadKeyring } from "../sealing/keyring.js";
import { createSealer, type Sealer } from "../sealing/seal.js";
import { hasStore, openStore } from "../store/open-store.js";
import { openSpool, spoolPlaceOf } from "../store/spool.js";
import type { Store } from "../store/store.js";
import { verifyKeys } from "../store/verify-keys.js";
import { createCallLog } from "../telemetry/call-log.js";
import { createTracing, isSdkLoaded } from "../telemetry/call-spans.js";
import { causeOf, describeError } from "../telemetry/log.js";
import { countOf } from "../telemetry/metric.js";
import { METRICS } from "../telemetry/metric-list.js";
import { createUpstream, type UpstreamOptions } from "../upstream/client.js";
import type { SelfAddress } from "../upstream/connector.js";
import type { Upstream } from "../upstream/request.js";
import {
  type CallRecording,
  createServiceMetrics,
  healthMetrics,
  recordCalls,
  type ServiceMetrics,
} from "./service-metrics.js";

/** What callers of `startService()` can replace. */
export interface ServiceOptions {
  readonly logger: Logger;
  /** Log lines dropped since the start; none by default. */
  readonly droppedLines?: () => number;
  /** Parts of the upstream that tests replace: the resolver, additional trusted certificates. */
  readonly upstream?: Pick<UpstreamOptions, "resolve" | "ca">;
  /** Whether plain typed calls take the fast path instead of connect-node; true by default. Tests compare the two. */
  readonly fastPath?: boolean;
}

/** Fault places that are caused by clients: malformed requests, broken sessions. */
const CLIENT_FAULTS: ReadonlySet<string> = new Set(["client", "session"]);

const NO_SDK =
  "RELAY_TRACES is on, but no OpenTelemetry SDK is loaded, so no spans are created: docs/monitoring.md says how to load one";

/** Time for answers of token endpoints that are still in flight when the start fails. */
const FAILED_START_GRACE_MS = 10_000;

/** Largest answer of a webhook receiver: only its status is used. */
const MAX_RECEIVER_ANSWER_BYTES = 256 * 1024;

/** What has to be closed, in reverse order. */
export type Closers = Array<() => Promise<void> | void>;

/** The shared parts of the service, created once. */
export interface Parts {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly catalog: ProviderCatalog;
  /** Files with the operator's own definitions, by provider name. */
  readonly providerFiles: ReadonlyMap<string, string>;
  readonly upstream: Upstream;
  /** HTTP client for webhook receivers: a small limit on answers, and sockets separate from those of calls. */
  readonly webhookUpstream: Upstream;
  /** HTTP client for authorization servers: separate, so that answers that take minutes do not delay calls. */
  readonly tokenUpstream: Upstream;
  readonly refresher: Refresher;
  /** Undefined when metrics are switched off. */
  readonly metrics: ServiceMetrics | undefined;
  readonly recording: CallRecording;
  readonly authorization: AuthorizationOptions;
  /** Addresses at which this process listens, filled once it does. Calls to them are refused. */
  readonly selfAddresses: SelfAddress[];
  /** The origin at which browsers reach this process; set once it listens. */
  readonly self: { publicUrl: string | undefined };
  readonly log: RelayLog;
  readonly logger: Logger;
}

/**
 * Opens store and keys, and creates the HTTP clients. Adds what has to be closed, in reverse order, to `closers`, even
 * when it rejects half-way.
 */
export async function openParts(config: Config, options: ServiceOptions, closers: Closers): Promise<Parts> {
  const { allowLoopback, providers: paths } = config;
  const { catalog, files: providerFiles } = loadProviders({ paths, allowLoopback });
  // With an existing database, a new key would open nothing.
  const mustExist = config.keyFileMustExist || (await hasStore(config));
  const keyring = await loadKeyring(config.keyFile, { mustExist });
  const sealer = createSealer(keyring);
  const metrics = createServiceMetrics(config, closers);
  const store = await openStore(config, {
    onOperation: metrics?.store,
    onDamagedCalls: (file) => options.logger.warn({ file }, "call records were damaged; starting new ones"),
    onHealth: (check, problem) => {
      if (problem === undefined) options.logger.info({ check }, "store check recovered");
      else options.logger.error({ check, problem: problem.message, ...describeError(problem) }, "store check failed");
    },
  });
  closers.push(() => store.close());
  metrics?.addSource(() => healthMetrics(store.health));
  await verifyKeys(store, sealer);
  const ways = waysOut(config, options, closers);
  const fault = faultLog(options.logger, metrics);
  const recording = recordCalls({ config, store, sealer, logger: options.logger, onFault: fault });
  closers.push(() => recording.close());
  metrics?.addSource(() => [
    countOf(METRICS.callRecordsDropped, recording.records?.dropped ?? 0),
    countOf(METRICS.logLinesDropped, options.droppedLines?.() ?? 0),
  ]);
  const log = relayLogFor(config, options.logger, { fault, metrics, recording });
  const made = { store, sealer, catalog, providerFiles, ...ways, metrics, log, logger: options.logger };
  const spool = openSpoolFor(config, made, closers);
  const self = { publicUrl: config.publicUrl };
  const authorization = authorizationFor(made, () => self.publicUrl);
  const refresher = refresherFor(made, spool, config);
  await startSweeps(made, { refresher, spool }, closers);
  return { ...made, recording, self, authorization, refresher };
}

function waysOut(
  config: Config,
  options: ServiceOptions,
  closers: Closers,
): Pick<Parts, "upstream" | "webhookUpstream" | "tokenUpstream" | "selfAddresses"> {
  const selfAddresses: SelfAddress[] = [];
  const shared = {
    connectTimeoutMs: config.connectTimeoutMs,
    reuse: config.upstreamReuse,
    keepAliveTimeoutMs: config.upstreamKeepAliveMs,
    quietMs: config.upstreamQuietMs,
    onStray: (origin: string) => options.logger.warn({ origin }, "stray answer"),
    allowLoopback: config.allowLoopback,
    selfAddresses: () => selfAddresses,
    maxKept: config.maxInFlight,
    ...options.upstream,
  };
  const perOrigin = { maxConcurrent: config.maxOriginCalls, maxWaiting: config.maxOriginWaiting };
  const upstream = createUpstream({ ...perOrigin, ...shared, maxResponseBytes: config.maxResponseBytes });
  const webhookUpstream = createUpstream({ ...shared, maxResponseBytes: MAX_RECEIVER_ANSWER_BYTES });
  const tokenUpstream = createUpstream({ ...shared, maxResponseBytes: MAX_TOKEN_ANSWER_BYTES });
  const all = [upstream, webhookUpstream, tokenUpstream];
  closers.push(async () => void (await Promise.all(all.map((each) => each.close()))));
  return { upstream, webhookUpstream, tokenUpstream, selfAddresses };
}

/** Opens this process's own spool. It is removed at the end, unless answers are left for other processes to store. */
function openSpoolFor(config: Config, { store, log, logger }: Made, closers: Closers): Spool {
  const spool = openSpool({
    ...spoolPlaceOf(config, store.id),
    onFault: (error) => log.fault("spool", error),
    onLeft: (file, answers, why) =>
      logger.error({ file, answers, why }, "token endpoint answers are waiting in a spool"),
  });
  closers.push(() => spool.close(store.connections.freeLeases));
  return spool;
}

/**
 * Starts the background jobs: recover what dead processes left behind, and end connections that expire with their
 * token.
 */
async function startSweeps(
  { store, log, logger }: Made,
  { refresher, spool }: { readonly refresher: Refresher; readonly spool: Spool },
  closers: Closers,
): Promise<void> {
  const { connections } = store;
  const onFault = (error: unknown) => log.fault("sweep", error);
  const presence = store.announce?.(spool);
  const peers: Peers[] = presence === undefined ? [spool] : [spool, presence];
  const sweep = startSweep({
    connections,
    peers,
    refresher,
    onReplayed: ({ applicationId, providerName: provider }, outcome) =>
      logger.warn({ applicationId, provider, outcome }, "replayed"),
    onFault,
  });
  // Store what an earlier process could not, before a call needs it.
  await sweep.settle();
  const expirySweep = startExpirySweep({
    connections,
    now: Date.now,
    onEnded: ({ applicationId, providerName: provider }) => logger.info({ applicationId, provider }, "expired"),
    onFault,
  });
  closers.push(
    // For a failed start: store the results of refreshes in progress before anything they need is closed.
    () => refresher.close(FAILED_START_GRACE_MS),
    () => sweep.close(),
    () => expirySweep.close(),
  );
}

type Made = Pick<Parts, "store" | "sealer" | "catalog" | "tokenUpstream" | "metrics" | "log" | "logger">;

function authorizationFor(
  { store, sealer, catalog, tokenUpstream, log, logger }: Made,
  publicUrl: () => string | undefined,
): AuthorizationOptions {
  return {
    applications: store.applications,
    openPrivateKeyHash: (application) => openPrivateKeyHash(sealer, application),
    catalog,
    connections: store.connections,
    oauthClients: store.oauthClients,
    sealer,
    tickets: createTickets({ store: store.tickets, sealer, now: Date.now }),
    pending: createPending(),
    send: createTokenEndpoint(tokenUpstream, undefined, unansweredLog(logger)),
    publicUrl,
    now: Date.now,
    onEvent: ({ what, ...event }) => logger.info(event, what),
    onFault: log.fault,
  };
}

function refresherFor(
  { store, sealer, catalog, tokenUpstream, metrics, log, logger }: Made,
  spool: Spool,
  { refreshTimeoutMs }: Config,
): Refresher {
  return createRefresher({
    connections: store.connections,
    sealer,
    breaker: createBreaker(),
    spool,
    requestTimeoutMs: refreshTimeoutMs,
    clients: createClientHolds(),
    noteClientRefused: store.oauthClients.noteRefused,
    now: Date.now,
    random: Math.random,
    onFault: (error) => log.fault("refresh", error),
    targetFor: createTargetFor({ catalog, oauthClients: store.oauthClients, sealer }),
    placeFor: createPlaceFor({ catalog, oauthClients: store.oauthClients }),
    send: createTokenEndpoint(tokenUpstream, refreshTimeoutMs, unansweredLog(logger)),
    onRefresh: ({ applicationId, providerName: provider }, outcome) => {
      const level = outcome === "refreshed" || outcome === "lost" ? "info" : "warn";
      logger[level]({ applicationId, provider, outcome }, "refresh");
      metrics?.refresh(provider, outcome);
    },
    onRevocation: ({ applicationId, providerName: provider }, revocation) =>
      logger.info({ applicationId, provider, outcome: revocation.toLowerCase() }, "revocation"),
  });
}

function unansweredLog(logger: Logger): Parameters<typeof createTokenEndpoint>[2] {
  return ({ registration: { applicationId, providerName: provider } }, error) =>
    logger.warn({ applicationId, provider, error: reasonOf(error), cause: causeOf(error) }, "no answer");
}

function relayLogFor(
  { traces }: Config,
  logger: Logger,
  to: {
    readonly fault: RelayLog["fault"];
    readonly metrics: ServiceMetrics | undefined;
    readonly recording: CallRecording;
  },
): RelayLog {
  // Spans that go nowhere would cost each call as much as its record.
  const isTracing = traces === "on" && isSdkLoaded();
  if (traces === "on" && !isTracing) logger.warn(NO_SDK);
  return createRelayLog({
    sinks: [createCallLog(logger), to.metrics?.call, to.recording.sink].filter((sink) => sink !== undefined),
    fault: to.fault,
    startSpans: isTracing ? createTracing(packageVersion()) : undefined,
  });
}

function faultLog(logger: Logger, metrics: ServiceMetrics | undefined): RelayLog["fault"] {
  return (where, error) => {
    // Faults caused by clients must not flood the log.
    logger[CLIENT_FAULTS.has(where) ? "debug" : "error"]({ where, ...describeError(error) }, "fault");
    metrics?.fault(where);
  };
}
