import { readFile } from "node:fs/promises";
import { RelayService } from "../../gen/relay/v1/relay_pb.js";
import { createFastPath } from "../api/fast/handler.js";
import { createConnectionsHandler } from "../api/rest/connections-handler.js";
import { createRestHandler } from "../api/rest/handler.js";
import { routeFromMethod } from "../api/rest/read-call.js";
import { createStreamHandler } from "../api/rest/stream-handler.js";
import { createConnectionOperations } from "../api/rpc/connection-operations.js";
import { createRpcHandler } from "../api/rpc/handler.js";
import { createViaHandler } from "../api/via/handler.js";
import { VIA } from "../api/via/read-call.js";
import { createBudget } from "../call/budget.js";
import { reasonOf } from "../call/trace.js";
import { type Config, listenUrlFrom, publicUrlFrom } from "../config/config.js";
import { createReadiness, createRouter, type PathHandler } from "../http/dispatch.js";
import { createClientAddress, createIsEncrypted } from "../http/exchange.js";
import type { TlsMaterial } from "../http/http1.js";
import { type Listener, listen } from "../http/listener.js";
import { createAddressMatcher } from "../lib/address-list.js";
import { RelayError } from "../model/errors.js";
import { createPagesHandler } from "../pages/handler.js";
import { probeKeys } from "../store/verify-keys.js";
import { causeOf } from "../telemetry/log.js";
import { createDeliverer, type Deliverer, type Delivery } from "../webhooks/deliverer.js";
import { createCallParts, listenForOperators, type Wiring } from "./admin-port.js";
import { type Closers, openParts, type Parts, type ServiceOptions } from "./parts.js";
import { budgetMetrics, listenerMetrics } from "./service-metrics.js";

/** A running service. */
export interface Service {
  /** `http://host:port`, or https with a certificate. */
  readonly url: string;
  /** The administration port, in the same form as `url`; undefined when it is switched off. */
  readonly adminUrl: string | undefined;
  /**
   * Stops accepting, waits at most `graceMs` milliseconds for calls to finish, then closes everything. Idle connections
   * are kept for `quietMs` before that, so that a client that uses one is told to open another.
   */
  close(graceMs: number, quietMs?: number): Promise<void>;
}

/** Page requests per client address: enough for an office behind one address, too few for a script. */
const PAGES_PER_MINUTE = 300;

/**
 * Constructs and wires everything, and listens. Rejects when a key does not open the store, a definition is malformed
 * or the port is taken; nothing is then left open. The store may have been created or migrated by then.
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Service> {
  const closers: Closers = [];
  try {
    const parts = await openParts(config, options, closers);
    const readiness = createReadiness(probeFor(parts));
    const tls = await tlsFrom(config);
    const calls = createCallParts(parts);
    const isTrustedProxy = createAddressMatcher(config.trustedProxies);
    const clientAddress = createClientAddress(isTrustedProxy);
    const wiring = { config, parts, calls, readiness, tls, isTrustedProxy, clientAddress };
    const listener = await listenForClients(wiring, options);
    closers.push(() => listener.close(0));
    parts.metrics?.addSource(() => listenerMetrics(listener));
    // Always after the public port: when the system chooses ports, node:cluster matches those of workers by order.
    const adminListener = await listenForOperators(wiring);
    const listeners = adminListener === undefined ? [listener] : [listener, adminListener];
    parts.selfAddresses.push(...listeners.map(({ address: { host, port } }) => ({ address: host, port })));
    parts.self.publicUrl = publicUrlFrom(config, { host: config.listen.host, port: listener.address.port });
    const deliverer = deliverWebhooks(parts);
    return {
      url: listenUrlFrom(config, listener.address),
      adminUrl: adminListener && listenUrlFrom(config, adminListener.address),
      close: closeAll(wiring, listeners, deliverer, closers),
    };
  } catch (error) {
    for (const close of closers.reverse()) await close();
    throw error;
  }
}

/** A readiness probe: resolves to why calls cannot be served (store or keys), or to undefined. */
function probeFor({ store, sealer }: Parts): () => Promise<string | undefined> {
  return async () => {
    try {
      await store.ready();
      await probeKeys(store, sealer);
      return undefined;
    } catch (error) {
      // Other errors name keys and files. `relay config check` shows them to the operator.
      return error instanceof RelayError
        ? error.message
        : "The relay cannot use its store, or its keys do not open it.";
    }
  };
}

async function listenForClients(wiring: Wiring, options: ServiceOptions): Promise<Listener> {
  const { config, parts, readiness, tls, isTrustedProxy } = wiring;
  const { maxConnections, maxClientConnections, writeTimeoutMs } = config;
  return listen({
    host: config.listen.host,
    port: config.listen.port,
    tls,
    handler: createRouter(await handlersFor(wiring, options), readiness),
    onFault: parts.log.fault,
    isTrustedProxy,
    limits: { maxConnections, maxClientConnections, writeTimeoutMs },
    asksItself: (target) => target.startsWith(VIA),
  });
}

async function handlersFor(wiring: Wiring, { fastPath = true }: ServiceOptions): Promise<readonly PathHandler[]> {
  const { config, parts, readiness, clientAddress, isTrustedProxy } = wiring;
  const { relay, explain, rateLimiter, turns, streamGarbage } = wiring.calls;
  const { applications, lookups } = parts.store;
  const { authorization } = parts;
  const budget = createBudget(config);
  parts.metrics?.addSource(() => budgetMetrics(budget, config));
  const connections = createConnectionOperations(authorization);
  const shared = {
    relay,
    onFault: parts.log.fault,
    allowedOrigins: async (publicKey: string) =>
      (await lookups.applications.findByPublicKey(publicKey))?.allowedOrigins ?? [],
    listsOrigin: (origin: string) => applications.listsOrigin(origin),
    clientAddress,
    maxRequestBytes: config.maxRequestBytes,
    deadlineMs: config.deadlineMs,
    budget,
    turns,
  };
  const rpcs = createRpcHandler({ ...shared, readiness, connections });
  // The SDK is loaded only when MCP is on.
  const mcp = config.mcp === "on" ? await import("../api/mcp/handler.js") : undefined;
  const forAgents = mcp?.createMcpHandler({
    ...shared,
    explain,
    connections,
    catalog: parts.catalog,
    applications: lookups.applications,
    openPrivateKeyHash: authorization.openPrivateKeyHash,
    now: Date.now,
    maxAnswerBytes: config.mcpMaxAnswerBytes,
  });
  return [
    createRestHandler({
      ...shared,
      surface: "rest",
      route: routeFromMethod(RelayService.method.call),
      httpStatus: config.httpStatus,
    }),
    createStreamHandler({ ...shared, surface: "stream", route: routeFromMethod(RelayService.method.callStream) }),
    createViaHandler({
      ...shared,
      catalog: parts.catalog,
      maxStreamRequestBytes: config.maxStreamRequestBytes,
      streamGarbage,
      publicUrl: () => parts.self.publicUrl,
      isEncrypted: createIsEncrypted(isTrustedProxy),
    }),
    fastPath ? createFastPath({ ...shared, otherwise: rpcs }) : rpcs,
    createConnectionsHandler({ ...shared, operations: connections }),
    ...(forAgents === undefined ? [] : [forAgents]),
    createPagesHandler({
      authorization,
      clientAddress,
      takeRequest: (address) => rateLimiter.take(`page ${address}`, PAGES_PER_MINUTE),
    }),
  ];
}

async function tlsFrom({ tlsCertFile, tlsKeyFile }: Config): Promise<TlsMaterial | undefined> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  const [cert, key] = await Promise.all([readFile(tlsCertFile), readFile(tlsKeyFile)]);
  return { cert, key };
}

function closeAll(
  { parts: { refresher, authorization }, readiness }: Wiring,
  listeners: readonly Listener[],
  deliverer: Deliverer,
  closers: Closers,
) {
  return async (graceMs: number, quietMs = 0) => {
    readiness.stop();
    const drained = Promise.all(listeners.map((listener) => listener.close(graceMs, quietMs)));
    // No new deliveries start, and new refreshes only for calls in flight.
    await Promise.all([drained, refresher.close(quietMs + graceMs, drained), deliverer.close(graceMs)]);
    // Wait for codes being redeemed: their tokens exist nowhere else.
    await authorization.pending.settled();
    for (const close of [...closers].reverse()) await close();
  };
}

/** Outcomes as metric labels. */
const OUTCOMES = { delivered: "delivered", retry: "retry", givenUp: "given_up" } as const;

const LEVELS = { delivered: "info", retry: "warn", givenUp: "error" } as const;

/** Starts to deliver events to applications. Logs one line per attempt. */
function deliverWebhooks({ store, sealer, webhookUpstream, metrics, log, logger }: Parts): Deliverer {
  return createDeliverer({
    webhooks: store.webhooks,
    sealer,
    upstream: webhookUpstream,
    now: Date.now,
    random: Math.random,
    onDelivery(delivery) {
      logger[LEVELS[delivery.outcome]](fieldsFrom(delivery), "webhook");
      metrics?.delivery(OUTCOMES[delivery.outcome]);
    },
    onFault: (error) => log.fault("webhooks", error),
  });
}

/** Log fields of a delivery: names and numbers; no address, secret or payload. */
function fieldsFrom({ event, outcome, statusCode, error }: Delivery) {
  const { id, type, endpoint, attempts } = event;
  return {
    eventId: id,
    type,
    applicationId: endpoint.applicationId,
    attempt: attempts,
    outcome,
    statusCode,
    ...(error === undefined ? {} : { error: reasonOf(error), cause: causeOf(error) }),
  };
}
