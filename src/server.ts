import { randomBytes, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { Logger } from "pino";
import { RelayService } from "../gen/relay/v1/relay_pb.js";
import { createAddressMatcher } from "./address-list.js";
import { openPrivateKeyHash } from "./applications/private-key.js";
import { createTargetFor } from "./authorization/renewal-target.js";
import { createTokenEndpoint } from "./authorization/token-endpoint.js";
import type { Config } from "./config.js";
import { createClientAddress } from "./listener/client-address.js";
import { type Listener, listen } from "./listener/listener.js";
import { createReadiness, type Readiness } from "./listener/readiness.js";
import { createRouter, type PathHandler } from "./listener/router.js";
import { loadProviders } from "./providers/catalog.js";
import type { ProviderCatalog } from "./providers/provider.js";
import { createBudget } from "./relay/budget.js";
import { createRateLimiter } from "./relay/rate-limiter.js";
import { createRelay, type Relay } from "./relay/relay.js";
import { createRelayLog, type RelayLog } from "./relay/trace.js";
import { createRestHandler } from "./rest/handler.js";
import { routeFromMethod } from "./rest/route.js";
import { createRpcHandler } from "./rpc/handler.js";
import { openSqliteStore, type SqliteStore } from "./store/sqlite.js";
import { verifyKeys } from "./store/verify-keys.js";
import { createCallLog } from "./telemetry/call-log.js";
import { describeError } from "./telemetry/log.js";
import { createBreaker } from "./tokens/breaker.js";
import { loadKeyring } from "./tokens/keyring.js";
import { createRenewer, type Renewer } from "./tokens/renewer.js";
import { createSealer, type Sealer } from "./tokens/seal.js";
import { createTokenSource } from "./tokens/token-source.js";
import { createUpstream, type UpstreamOptions } from "./upstream/client.js";
import type { SelfAddress } from "./upstream/dial.js";
import type { Upstream } from "./upstream/request.js";

/** A running service. */
export interface Service {
  /** `http://host:port`, or https with a certificate. */
  readonly url: string;
  /** Stops accepting, lets calls finish for at most `graceMs` milliseconds, then closes everything. */
  close(graceMs: number): Promise<void>;
}

/** What a caller of `startService()` may replace. */
export interface ServiceOptions {
  readonly logger: Logger;
  /** Parts of the upstream that tests stand in for: the resolver, further trusted certificates. */
  readonly upstream?: Pick<UpstreamOptions, "resolve" | "ca">;
}

/** Where the listener meets what a client did: malformed requests, broken sessions. */
const CLIENT_FAULTS: ReadonlySet<string> = new Set(["client", "session"]);

interface Parts {
  readonly store: SqliteStore;
  readonly sealer: Sealer;
  readonly catalog: ProviderCatalog;
  readonly upstream: Upstream;
  readonly renewer: Renewer;
  /** Where this process listens, once it does: no call may go there. */
  readonly selfAddresses: SelfAddress[];
  readonly log: RelayLog;
}

/**
 * Constructs and wires everything, and listens. Rejects, with nothing left open and nothing changed, when a key does
 * not open the store, a definition is malformed or the port is taken.
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const closers: Array<() => Promise<void> | void> = [];
  try {
    const parts = await openParts(config, options, closers);
    const readiness = createReadiness(() => parts.store.ready());
    const listener = await listenFor(config, parts, readiness);
    parts.selfAddresses.push({ address: listener.address.host, port: listener.address.port });
    return { url: urlOf(config, listener), close: closeAll(listener, parts.renewer, readiness, closers) };
  } catch (error) {
    for (const close of closers.reverse()) await close();
    throw error;
  }
}

async function openParts(
  config: Config,
  options: ServiceOptions,
  closers: Array<() => Promise<void> | void>,
): Promise<Parts> {
  const { catalog } = await loadProviders({ paths: config.providers, allowLoopback: config.allowLoopback });
  // Beside an existing database a new key would open nothing.
  const mustExist = config.keyFileMustExist || existsSync(config.databasePath);
  const keyring = await loadKeyring(config.keyFile, { mustExist });
  const sealer = createSealer(keyring);
  const store = openSqliteStore(config.databasePath);
  closers.push(() => store.close());
  await verifyKeys(store, sealer);
  const selfAddresses: SelfAddress[] = [];
  const upstream = createUpstream({
    connectTimeoutMs: config.connectTimeoutMs,
    maxResponseBytes: config.maxResponseBytes,
    reuse: config.upstreamReuse,
    allowLoopback: config.allowLoopback,
    selfAddresses: () => selfAddresses,
    ...options.upstream,
  });
  closers.push(() => upstream.close());
  const log = relayLogFor(options.logger);
  const renewer = renewerFor({ store, sealer, catalog, upstream, log }, options.logger);
  return { store, sealer, catalog, upstream, renewer, selfAddresses, log };
}

function renewerFor(
  { store, sealer, catalog, upstream, log }: Pick<Parts, "store" | "sealer" | "catalog" | "upstream" | "log">,
  logger: Logger,
): Renewer {
  return createRenewer({
    connections: store.connections,
    sealer,
    breaker: createBreaker(),
    owner: randomUUID(),
    now: Date.now,
    random: Math.random,
    onFault: (error) => log.fault("renewal", error),
    targetFor: createTargetFor({ catalog, oauthClients: store.oauthClients, sealer }),
    send: createTokenEndpoint(upstream),
    onRenewal: ({ applicationId, providerName: provider }, outcome) =>
      logger[outcome === "renewed" || outcome === "lost" ? "info" : "warn"](
        { applicationId, provider, outcome },
        "renewal",
      ),
  });
}

function relayLogFor(logger: Logger): RelayLog {
  return createRelayLog(createCallLog(logger), (where, error) =>
    // What single clients send is theirs: it must not flood the log.
    logger[CLIENT_FAULTS.has(where) ? "debug" : "error"]({ where, ...describeError(error) }, "fault"),
  );
}

function relayFor(parts: Parts): Relay {
  const { store, sealer, catalog, upstream, log, renewer } = parts;
  return createRelay({
    now: Date.now,
    applications: store.applications,
    openPrivateKeyHash: (application) => openPrivateKeyHash(sealer, application),
    catalog,
    connections: store.connections,
    tokens: createTokenSource({ sealer, connections: store.connections, renewer, now: Date.now }),
    upstream,
    rateLimiter: createRateLimiter(),
    newBoundary: () => `relay${randomBytes(18).toString("hex")}`,
    log,
  });
}

async function listenFor(config: Config, parts: Parts, readiness: Readiness): Promise<Listener> {
  return listen({
    host: config.listen.host,
    port: config.listen.port,
    tls: await tlsFrom(config),
    handler: createRouter(handlersFor(config, parts, readiness), readiness),
    onFault: parts.log.fault,
  });
}

function handlersFor(config: Config, parts: Parts, readiness: Readiness): readonly PathHandler[] {
  const { applications } = parts.store;
  const shared = {
    relay: relayFor(parts),
    clientAddress: createClientAddress(createAddressMatcher(config.trustedProxies)),
    newCallId: randomUUID,
    maxRequestBytes: config.maxRequestBytes,
    deadlineMs: config.deadlineMs,
    budget: createBudget(config),
  };
  return [
    createRestHandler({
      ...shared,
      route: routeFromMethod(RelayService.method.call),
      allowedOrigins: async (publicKey) => (await applications.findByPublicKey(publicKey))?.allowedOrigins ?? [],
      httpStatus: config.httpStatus,
    }),
    createRpcHandler({
      ...shared,
      readiness,
      listsOrigin: (origin) => applications.listsOrigin(origin),
      onFault: parts.log.fault,
    }),
  ];
}

async function tlsFrom({ tlsCertFile, tlsKeyFile }: Config): Promise<{ cert: Buffer; key: Buffer } | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  const [cert, key] = await Promise.all([readFile(tlsCertFile), readFile(tlsKeyFile)]);
  return { cert, key };
}

function urlOf(config: Config, { address }: Listener): string {
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `${config.tlsCertFile === undefined ? "http" : "https"}://${host}:${address.port}`;
}

function closeAll(
  listener: Listener,
  renewer: Renewer,
  readiness: Readiness,
  closers: ReadonlyArray<() => Promise<void> | void>,
) {
  return async (graceMs: number) => {
    readiness.stop();
    // No renewal is begun any more; those that have begun end beside the calls.
    await Promise.all([listener.close(graceMs), renewer.close()]);
    for (const close of [...closers].reverse()) await close();
  };
}
