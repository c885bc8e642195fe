import { createStreamGarbage } from "../call/budget.js";
import type { Call } from "../call/call.js";
import { explainCall } from "../call/explain.js";
import type { Explanation } from "../call/explanation.js";
import { createBoundary } from "../call/multipart.js";
import { createRateLimiter, type RateLimiter } from "../call/rate-limiter.js";
import { createRelay, type Relay } from "../call/relay.js";
import { createRedactors } from "../call/send-with-token.js";
import type { Config } from "../config/config.js";
import type { Readiness } from "../http/dispatch.js";
import type { HttpRequest } from "../http/exchange.js";
import type { TlsMaterial } from "../http/http1.js";
import { createTurns, type Turns } from "../lib/turns.js";
import { createYoungCollection } from "../lib/young-objects.js";
import { lateWork } from "../model/errors.js";
import { createTokenSource } from "../oauth/token-source.js";
import { limiterOverWorkers } from "../workers/messages.js";
import type { Parts } from "./parts.js";

/** What both ports are wired from. */
export interface Wiring {
  readonly config: Config;
  readonly parts: Parts;
  readonly calls: CallParts;
  readonly readiness: Readiness;
  /** Undefined: cleartext. */
  readonly tls: TlsMaterial | undefined;
  /** Whether an address is one of RELAY_TRUSTED_PROXIES. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Whom a request comes from, in front of those proxies. */
  readonly clientAddress: (request: HttpRequest) => string;
}

/** What performs and explains calls, the same for every surface. */
interface CallParts {
  readonly relay: Relay;
  /** See `explainCall()`. */
  readonly explain: (read: () => Call) => Promise<Explanation>;
  readonly rateLimiter: RateLimiter;
  readonly turns: Turns;
}

/** Made once, so that all surfaces count together and decide alike. */
export function createCallParts(parts: Parts): CallParts {
  const { store, sealer, catalog, upstream, log, refresher, authorization, recording } = parts;
  const rateLimiter = createRateLimiter(limiterOverWorkers);
  const turns = createTurns(lateWork);
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
  const relay = createRelay({
    ...checks,
    tokens: createTokenSource({ sealer, connections: store.connections, refresher, now: Date.now }),
    upstream,
    capturing: recording.capturing,
    redactorFor: createRedactors(),
    streamGarbage: createStreamGarbage(createYoungCollection()),
    log,
  });
  const { requireRefreshable } = refresher;
  return {
    relay,
    rateLimiter,
    turns,
    explain: (read) => explainCall({ ...checks, requireRefreshable, onFault: log.fault }, read),
  };
}
