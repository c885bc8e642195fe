import { randomBytes } from "node:crypto";
import { type Admit, createAdmit } from "../admin/admit.js";
import { createAuditStamps } from "../admin/audit-stamp.js";
import { type Authenticate, createAuthenticate } from "../admin/authenticate.js";
import { createConsoleHandler } from "../admin/console-handler.js";
import { loadAdminTokens } from "../admin/load-tokens.js";
import { createAdminRpcHandler } from "../admin/rpc-handler.js";
import { type Listener, listen } from "../http/listener.js";
import { createRouter, type PathHandler } from "../http/router.js";
import { createConnectionGauge } from "./connection-gauge.js";
import { createMetricsHandler } from "./metrics-handler.js";
import type { Parts } from "./parts.js";
import type { Wiring } from "./wiring.js";

/** Operators, scrapers and open pages, and no client all of it; the rest of the descriptors is for calls. */
const LIMITS = { maxConnections: 200, maxClientConnections: 150 };

/**
 * Listens for operators, with TLS where the public port has it; undefined where that is switched off. Rejects with
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

/** What the administration port serves. Each of them asks who is there. */
async function handlersFor(wiring: Wiring): Promise<readonly PathHandler[]> {
  const { config, parts, calls, readiness, clientAddress } = wiring;
  const { store, sealer, catalog, providerFiles, authorization, self, log } = parts;
  const admit = createAdmit({
    authenticate: await loadAuthenticate(wiring),
    clientAddress,
    now: () => performance.now(),
  });
  const options = {
    store,
    sealer,
    catalog,
    providerFiles,
    disconnection: authorization,
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
  return [rpcs, ...metricsHandlersFor(parts, admit), createConsoleHandler()];
}

async function loadAuthenticate({ config, parts: { logger } }: Wiring): Promise<Authenticate> {
  const { adminTokenFile: file, keyFileMustExist: mustExist } = config;
  const onCreated = () => logger.info({ file }, "made a file with a new admin token");
  return createAuthenticate(await loadAdminTokens(file, { mustExist, onCreated }));
}

/** None when metrics are switched off. */
function metricsHandlersFor({ metrics, store, log }: Parts, admit: Admit): readonly PathHandler[] {
  if (metrics === undefined) return [];
  const readConnections = createConnectionGauge({
    count: () => store.countConnections(),
    now: () => performance.now(),
    onFault: (error) => log.fault("metrics", error),
  });
  const read = async () => [...(await metrics.readAll()), ...(await readConnections())];
  return [createMetricsHandler({ admit, read, onFault: log.fault })];
}
