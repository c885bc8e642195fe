import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { operatorContextKey } from "./operator-context.js";
import { mayCall } from "./roles.js";

/** Refuses methods that the operator's role does not allow, in front of every service of the administration port. */
export const requireRole: Interceptor = (next) => (request) => {
  const operator = request.contextValues.get(operatorContextKey);
  // What is not of the relay's own package, server reflection, tells nothing of what is stored.
  const isOurs = request.service.typeName.startsWith("relay.admin.v1.");
  if (operator !== undefined && (!isOurs || mayCall(operator.role, request.method))) return next(request);
  throw new ConnectError(
    `This admin token is read-only; ${request.method.name} is for operators.`,
    Code.PermissionDenied,
  );
};
