import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type CallService,
  type CallTokenTerms,
  type ExplainCallResponse,
  ExplainCallResponseSchema,
  type ExplainedRequestSchema,
  ExplainCallResponse_Refresh as Refresh,
  type RuleVerdictSchema,
} from "../../gen/relay/admin/v1/call_pb.js";
import { type CallRequest, CallRequestSchema } from "../../gen/relay/v1/relay_pb.js";
import { type CallContext, callFrom, originOf, performCall, requestContextKey } from "../api/rpc/relay-service.js";
import { rowFromOutcome } from "../api/rpc/row.js";
import { openPrivateKeyHash } from "../applications/application.js";
import { createCallToken } from "../applications/call-token.js";
import type { CallerFields } from "../applications/caller.js";
import { asPassedThrough } from "../call/call.js";
import { type ExplainedRule, type Explanation, MASK } from "../call/explanation.js";
import type { RefreshNeed } from "../oauth/token-source.js";
import { auditAction } from "./administration.js";
import { operatorContextKey, type Role } from "./admit.js";
import { messageFromApplication, termsFrom } from "./application-service.js";
import { messageFromConnection, summaryFrom } from "./connection-service.js";
import { hiddenFieldsFor, type IsHidden } from "./provider-service.js";
import { refusedResource } from "./roles.js";
import { type AdminOptions, administrationFor, namedApplication, requiredId } from "./standard-methods.js";

type Place = Partial<Pick<CallerFields, "origin" | "address">>;

const EMPTY = create(CallRequestSchema);

/** relay.admin.v1.CallService: message → relay → message. A refused call is a normal response, not an RPC error. */
export function createCallService(options: AdminOptions): ServiceImpl<typeof CallService> {
  const { calls, now } = options;
  return {
    async explainCall({ call: asked = EMPTY, origin, clientAddress, passedThrough, callTokenTerms }, context) {
      const call = callTokenTerms === undefined ? asked : await withCallToken(options, asked, callTokenTerms);
      const place = { ...(origin !== "" && { origin }), ...(clientAddress !== "" && { address: clientAddress }) };
      const from = contextFrom(context, place);
      const explanation = await calls.explain(() => {
        const read = callFrom(calls, originOf(call, from), call, from);
        return passedThrough ? { ...read, description: asPassedThrough(read.description) } : read;
      });
      return messageFromExplanation(explanation, context.values.get(operatorContextKey)?.role, now());
    },
    async performCall({ call = EMPTY }, context) {
      // Before the call: without an entry, the relay must not act on a user's account.
      await auditAction(administrationFor(options, context), "CallService.PerformCall", refusedResource({ call }));
      const { outcome } = await performCall(calls, call, contextFrom(context));
      return { row: rowFromOutcome(outcome) };
    },
  };
}

/** The call's context. The request's own headers are the operator's, not the caller's. */
function contextFrom(context: HandlerContext, place?: Place): CallContext {
  const known = context.values.get(requestContextKey);
  const { signal } = context;
  return { ...known, caller: { ...known.caller, ...place }, surface: "admin", signal, timesOutAt: Infinity };
}

/** Lifetime of a token that is never handed out: every application allows it. */
const PREVIEW_SECONDS = 1;

/** The call with a call token of these terms. The token exists only for this explanation. */
async function withCallToken(
  { store, sealer, catalog, now }: AdminOptions,
  call: CallRequest,
  terms: CallTokenTerms,
): Promise<CallRequest> {
  const application = await namedApplication(store.applications, call.publicKey, "call.public_key");
  const token = {
    publicKey: call.publicKey,
    userId: requiredId(call.userId, "call.user_id"),
    ...termsFrom(terms, catalog, "call_token_terms."),
    lifetimeSeconds: PREVIEW_SECONDS,
    now: now(),
  };
  const { callToken } = createCallToken(token, openPrivateKeyHash(sealer, application));
  return { ...call, privateKey: callToken };
}

/** Enough of a body to see what it is. */
const BODY_START_BYTES = 4096;

/** The message of an explanation, as the role may see it. @param now milliseconds since the epoch. */
export function messageFromExplanation(
  explanation: Explanation,
  role: Role | undefined,
  now: number,
): ExplainCallResponse {
  const { application, caller, provider, egress, permission, connection, refresh, request, refusal } = explanation;
  return create(ExplainCallResponseSchema, {
    ...(application && { application: messageFromApplication(application) }),
    ...(caller && { caller: verdictFrom(caller) }),
    providerName: provider?.name ?? "",
    ...(egress && { egress: verdictFrom(egress) }),
    ...(permission?.application && { applicationRules: verdictFrom(permission.application) }),
    ...(permission?.callToken && { callTokenRules: verdictFrom(permission.callToken) }),
    ...(application &&
      connection && { connection: messageFromConnection(summaryFrom(connection, application.publicKey), now) }),
    refresh: Refresh[(refresh?.toUpperCase() ?? "UNSPECIFIED") as Uppercase<RefreshNeed> | "UNSPECIFIED"],
    ...(request && { request: messageFromRequest(request, hiddenFieldsFor(role, provider)) }),
    ...(refusal && { refusal }),
  });
}

function verdictFrom({ isAllowed, rule }: ExplainedRule): MessageInitShape<typeof RuleVerdictSchema> {
  return { allowed: isAllowed, rule };
}

function messageFromRequest(
  request: NonNullable<Explanation["request"]>,
  isHidden: IsHidden,
): MessageInitShape<typeof ExplainedRequestSchema> {
  const { method, origin, path, headers, body } = request;
  const shown = (name: string, value: string) => ({ name, value: isHidden(name, value) ? MASK : value });
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [shown(name, headers[at + 1] ?? "")] : []));
  return {
    method,
    url: origin + path,
    headers: pairs,
    bodyBytes: body?.length ?? 0,
    bodyStart: body?.subarray(0, BODY_START_BYTES) ?? new Uint8Array(),
  };
}
