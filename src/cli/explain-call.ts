import { randomUUID } from "node:crypto";
import { descriptionFromBody } from "../api/rest/description.js";
import { openPrivateKeyHash } from "../applications/application.js";
import { callerFrom, withoutCallerFields } from "../applications/caller.js";
import { createBudget } from "../call/budget.js";
import type { Call } from "../call/call.js";
import { explainCall } from "../call/explain.js";
import type { Explanation } from "../call/explanation.js";
import { createBoundary } from "../call/multipart.js";
import { createRateLimiter } from "../call/rate-limiter.js";
import { atOnce, createTurns } from "../lib/turns.js";
import { lateWork } from "../model/errors.js";
import { createPlaceFor } from "../oauth/authorization-server.js";
import { createBreaker } from "../oauth/breaker.js";
import { createClientHolds } from "../oauth/client-holds.js";
import { requireRefreshable } from "../oauth/refreshable.js";
import { type CallRequestText, jsonBodyFrom } from "./call-row.js";
import { loadCatalog, type OpenStore } from "./open-store.js";

/**
 * Says what would become of a call from this machine, by the code of the service. What a running service knows beside
 * the store is not known here: how many calls were made in this minute, and which token endpoints are in trouble.
 */
export async function explainFromStore(
  { config, store, sealer }: OpenStore,
  request: CallRequestText,
  privateKey: string | undefined,
): Promise<Explanation> {
  const catalog = await loadCatalog(config);
  const placeFor = createPlaceFor({ catalog, oauthClients: store.oauthClients });
  const refreshable = { breaker: createBreaker(), clients: createClientHolds(), now: Date.now, placeFor };
  const options = {
    now: Date.now,
    applications: store.applications,
    openPrivateKeyHash: (application: Parameters<typeof openPrivateKeyHash>[1]) =>
      openPrivateKeyHash(sealer, application),
    catalog,
    connections: store.connections,
    rateLimiter: createRateLimiter(),
    newBoundary: createBoundary,
    turns: createTurns(lateWork),
    requireRefreshable: (connection: Parameters<typeof requireRefreshable>[1]) =>
      requireRefreshable(refreshable, connection),
    // The refusal that it becomes is printed.
    onFault: () => {},
  };
  return explainCall(options, () => callFrom(request, privateKey, config.deadlineMs));
}

/** As the JSON route reads it from a client on this machine. */
function callFrom(request: CallRequestText, privateKey: string | undefined, deadlineMs: number): Call {
  const { providerName, publicKey, userId, userSignature } = request;
  const startedAt = performance.now();
  const callId = randomUUID();
  const memory = createBudget({ maxInFlight: 1, maxBufferedBytes: Number.POSITIVE_INFINITY }).open("");
  memory.begin();
  return {
    callId,
    requestId: callId,
    traceContext: undefined,
    surface: "admin",
    startedAt,
    providerName,
    publicKey,
    userId,
    proof: callerFrom(withoutCallerFields("127.0.0.1"), { publicKey, privateKey, userSignature }).proof,
    description: atOnce(descriptionFromBody(Buffer.from(jsonBodyFrom(request)))),
    responseMode: "data",
    memory,
    signal: undefined,
    deadline: startedAt + deadlineMs,
  };
}
