import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { type CallRequest, CallRequestSchema, ResponseMode } from "../../gen/relay/v1/relay_pb.js";
import { descriptionFromMessage } from "../api/rpc/description.js";
import { requestContextKey } from "../api/rpc/request-context.js";
import { rowFromOutcome } from "../api/rpc/row.js";
import { type CallerFields, callerFrom } from "../applications/caller-keys.js";
import { overloaded } from "../call/budget.js";
import type { Call, CallOrigin } from "../call/call.js";
import { auditEntryFrom } from "./audit-entry.js";
import { messageFromExplanation } from "./explanation-message.js";
import { operatorContextKey } from "./operator-context.js";
import { type AdminOptions, administrationFor, type CallServiceOptions } from "./options.js";
import { refusedResource } from "./refused-resource.js";

type Place = Partial<Pick<CallerFields, "origin" | "address">>;

const EMPTY = create(CallRequestSchema);

/** relay.admin.v1.CallService: message → relay → message. A call that is refused is an answer, no RPC error. */
export function createCallService(options: AdminOptions): ServiceImpl<typeof CallService> {
  const { calls, now } = options;
  return {
    async explainCall({ call = EMPTY, origin, clientAddress }, context) {
      const place = { ...(origin !== "" && { origin }), ...(clientAddress !== "" && { address: clientAddress }) };
      const explanation = await calls.explain(() => callFrom(calls, originOf(call, context), call, place, context));
      return messageFromExplanation(explanation, context.values.get(operatorContextKey)?.role, now());
    },
    async performCall({ call = EMPTY }, context) {
      await writeDown(options, call, context);
      const origin = originOf(call, context);
      let read: Call;
      try {
        read = callFrom(calls, origin, call, {}, context);
      } catch (error) {
        return { row: rowFromOutcome(calls.relay.refuse(origin, error)) };
      }
      return { row: rowFromOutcome((await calls.relay.perform(read)).outcome) };
    },
  };
}

/** Before it is done: what cannot be written down is not done for a user whose account it is. */
async function writeDown(options: AdminOptions, call: CallRequest, context: HandlerContext): Promise<void> {
  const administration = administrationFor(options, context);
  const entry = auditEntryFrom(administration, "CallService.PerformCall", refusedResource({ call }));
  await options.store.audit.add({ ...entry, outcome: "DONE" });
}

function originOf({ providerName }: CallRequest, context: HandlerContext): CallOrigin {
  const { identity, startedAt } = context.values.get(requestContextKey);
  return { ...identity, surface: "admin", startedAt, providerName };
}

/** The headers of the request are the operator's, not the caller's. Fails with CALL_FORMAT_ERROR or OVERLOADED. */
function callFrom(
  { deadlineMs }: CallServiceOptions,
  origin: CallOrigin,
  request: CallRequest,
  place: Place,
  context: HandlerContext,
): Call {
  const { caller, memory } = context.values.get(requestContextKey);
  if (memory === undefined || !memory.begin()) throw overloaded();
  return {
    ...origin,
    publicKey: request.publicKey,
    userId: request.userId,
    proof: callerFrom({ ...caller, ...place }, request).proof,
    description: descriptionFromMessage(request.call),
    responseMode: request.responseMode === ResponseMode.BODY ? "body" : "data",
    memory,
    signal: context.signal,
    deadline: origin.startedAt + deadlineMs,
  };
}
