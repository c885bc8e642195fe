import { randomUUID } from "node:crypto";
import { toJson } from "@bufbuild/protobuf";
import { ExplainCallResponseSchema } from "../../gen/relay/admin/v1/call_pb.js";
import { messageFromExplanation } from "../admin/call-service.js";
import { descriptionFromBody } from "../api/rest/description.js";
import { openPrivateKeyHash } from "../applications/application.js";
import { callerFrom, withoutCallerFields } from "../applications/caller.js";
import { createRateLimiter } from "../call/allowed-call.js";
import { createBudget } from "../call/budget.js";
import { asPassedThrough, type Call } from "../call/call.js";
import { explainCall } from "../call/explain.js";
import type { Explanation } from "../call/explanation.js";
import { createBoundary } from "../call/multipart.js";
import { atOnce, createTurns } from "../lib/turns.js";
import { lateWork } from "../model/errors.js";
import { createPlaceFor, createSigningClientFor } from "../oauth/authorization-server.js";
import { createBreaker, createClientHolds } from "../oauth/breaker.js";
import { requireRefreshable, toldStateOf } from "../oauth/refreshable.js";
import type { RefreshNeed } from "../oauth/token-source.js";
import { type CallRequestText, jsonBodyFrom } from "./call-row.js";
import { printable, textFields, writeJson, writeLine } from "./command.js";
import { loadCatalog, type OpenStore } from "./open-store.js";

/** Prints an explanation, with `json` in the form of the administration API. */
export function writeExplanation(explanation: Explanation, { json }: { readonly json: boolean }): void {
  const text = textFromExplanation(explanation);
  if (json) writeJson(toJson(ExplainCallResponseSchema, messageFromExplanation(explanation, "operator", Date.now())));
  else if (text !== "") writeLine(text);
}

const REFRESHES: Readonly<Record<RefreshNeed, string>> = {
  none: "none: the current token is sent",
  beside: "in the background: the current token is sent",
  before: "before the call: no valid token is stored, so a new one is obtained and sent",
};

/** An explanation as text: the decisions, then the request as it would be sent. */
function textFromExplanation(explanation: Explanation): string {
  const decided = textFields(fieldsOf(explanation));
  const request = requestText(explanation);
  return request === undefined ? decided : `${decided}\n\n${request}`;
}

function fieldsOf({ application, caller, provider, egress, permission, connection, refresh }: Explanation) {
  const fields: Array<readonly [name: string, value: string]> = [];
  if (application) fields.push(["application", `${application.name}, ${application.callerAuth}, ${application.state}`]);
  if (caller) fields.push(["caller", verdictText(caller)]);
  if (provider) fields.push(["provider", provider.name]);
  if (egress) fields.push(["url", verdictText(egress)]);
  if (permission?.application) fields.push(["call rules", verdictText(permission.application)]);
  if (permission?.callToken) fields.push(["call token", verdictText(permission.callToken)]);
  if (connection) fields.push(["connection", connectionText(connection)]);
  if (refresh) fields.push(["refresh", REFRESHES[refresh]]);
  return fields;
}

function verdictText({ isAllowed, rule }: NonNullable<Explanation["egress"]>): string {
  return `${isAllowed ? "allowed by" : "refused by"} ${rule}`;
}

function connectionText(connection: NonNullable<Explanation["connection"]>): string {
  const { state, reason, expiresAt } = toldStateOf(connection, Date.now());
  const end = expiresAt === undefined ? "token expires: unknown" : `token expires ${new Date(expiresAt).toISOString()}`;
  return `${reason === undefined ? state : `${state} (${reason})`}, ${end}`;
}

function requestText({ request }: Explanation): string | undefined {
  if (request === undefined) return undefined;
  const { method, origin, path, headers, body } = request;
  const lines = [`${method} ${origin}${path}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  lines.push(body === undefined ? "(no body)" : `(${body.length} bytes of body)`);
  return lines.map(printable).join("\n");
}

/**
 * Explains what would happen to a call from this machine, with the code of the service. It lacks what a running service
 * knows besides the store: how many calls were made in this minute, and which token endpoints are failing.
 */
export async function explainFromStore(
  { config, store, sealer }: OpenStore,
  request: CallRequestText,
  { privateKey, via }: { readonly privateKey: string | undefined; readonly via: boolean },
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
    signingClientFor: createSigningClientFor({ catalog, oauthClients: store.oauthClients }),
    // A fault becomes a refusal, which is printed.
    onFault: () => {},
  };
  return explainCall(options, () => {
    const call = callFrom(request, privateKey, config.deadlineMs);
    return via ? { ...call, description: asPassedThrough(call.description) } : call;
  });
}

/** The call as the JSON route would read it from a client on this machine. */
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
    ...callerFrom(withoutCallerFields("127.0.0.1"), { publicKey, userId, privateKey, userSignature }),
    description: atOnce(descriptionFromBody(Buffer.from(jsonBodyFrom(request)))),
    responseMode: "data",
    memory,
    signal: undefined,
    deadline: startedAt + deadlineMs,
  };
}
