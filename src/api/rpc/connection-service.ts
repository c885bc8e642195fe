import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { ErrorDetailSchema, type RelayService } from "../../../gen/relay/v1/relay_pb.js";
import type { CallerFields } from "../../applications/caller-keys.js";
import { overloaded } from "../../call/budget.js";
import { type Reason, RelayError } from "../../model/errors.js";
import type { ConnectionOperations } from "./connection-operations.js";
import { requestContextKey } from "./request-context.js";

/** RPC code of each reason that these methods fail with; others are faults of ours. */
const CODES: Partial<Record<Reason, Code>> = {
  CALL_FORMAT_ERROR: Code.InvalidArgument,
  INVALID_PUBLIC_KEY: Code.Unauthenticated,
  CALLER_NOT_ALLOWED: Code.PermissionDenied,
  INVALID_PROVIDER: Code.NotFound,
  INVALID_OAUTHID: Code.NotFound,
  PROVIDER_MISCONFIGURED: Code.FailedPrecondition,
  STORE_UNAVAILABLE: Code.Unavailable,
  OVERLOADED: Code.ResourceExhausted,
};

/** The methods of relay.v1.RelayService about connections: refusals are RPC errors with an ErrorDetail. */
export function createConnectionService(
  operations: ConnectionOperations,
  onFault: (where: string, error: unknown) => void,
): Omit<ServiceImpl<typeof RelayService>, "call" | "callStream"> {
  const answer = async <Response>(context: HandlerContext, operate: (caller: CallerFields) => Promise<Response>) => {
    try {
      const { caller, memory } = context.values.get(requestContextKey);
      if (memory === undefined || !memory.begin()) throw overloaded();
      return await operate(caller);
    } catch (error) {
      throw connectErrorFrom(error, onFault);
    }
  };
  return {
    listConnections: (request, context) => answer(context, (caller) => operations.listConnections(request, caller)),
    deleteConnection: (request, context) => answer(context, (caller) => operations.deleteConnection(request, caller)),
    createConnectLink: (request, context) => answer(context, (caller) => operations.createConnectLink(request, caller)),
  };
}

function connectErrorFrom(error: unknown, onFault: (where: string, error: unknown) => void): ConnectError {
  const code = error instanceof RelayError ? CODES[error.reason] : undefined;
  if (!(error instanceof RelayError) || code === undefined) {
    onFault("rpc", error);
    return new ConnectError("internal error", Code.Internal);
  }
  const detail = { desc: ErrorDetailSchema, value: { errorType: error.reason } };
  return new ConnectError(error.message, code, undefined, [detail]);
}
