import type { Call } from "../call/call.js";
import { explainCall } from "../call/explain.js";
import type { Explanation } from "../call/explanation.js";
import { createBoundary } from "../call/multipart.js";
import { createRateLimiter, type RateLimiter } from "../call/rate-limiter.js";
import { createRedactors } from "../call/redactors.js";
import { createRelay, type Relay } from "../call/relay.js";
import { createStreamGarbage } from "../call/stream-garbage.js";
import { createTurns, type Turns } from "../lib/turns.js";
import { createYoungCollection } from "../lib/young-objects.js";
import { lateWork } from "../model/errors.js";
import { createTokenSource } from "../oauth/token-source.js";
import { limiterOverWorkers } from "../workers/messages.js";
import type { Parts } from "./parts.js";

/** What performs and explains calls, the same for every surface. */
export interface CallParts {
  readonly relay: Relay;
  /** See `explainCall()`. */
  readonly explain: (read: () => Call) => Promise<Explanation>;
  readonly rateLimiter: RateLimiter;
  readonly turns: Turns;
}

/** Made once, so that all surfaces count together and decide alike. */
export function createCallParts(parts: Parts): CallParts {
  const { store, sealer, catalog, upstream, log, renewer, authorization, recording } = parts;
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
    tokens: createTokenSource({ sealer, connections: store.connections, renewer, now: Date.now }),
    upstream,
    capturing: recording.capturing,
    redactorFor: createRedactors(),
    streamGarbage: createStreamGarbage(createYoungCollection()),
    log,
  });
  const { requireRenewable } = renewer;
  return {
    relay,
    rateLimiter,
    turns,
    explain: (read) => explainCall({ ...checks, requireRenewable, onFault: log.fault }, read),
  };
}
