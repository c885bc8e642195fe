import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { AuditRecord } from "../audit.js";
import { operatorContextKey } from "./operator-context.js";
import type { AdminOptions } from "./options.js";
import { refusedResource } from "./refused-resource.js";
import { mayCall } from "./roles.js";

/**
 * Refuses methods that the operator's role does not allow, in front of every service of the administration port, and
 * writes the attempt into the audit trail.
 */
export function requireRole({ store, now, newAuditId, onFault }: AdminOptions): Interceptor {
  return (next) => async (request) => {
    const operator = request.contextValues.get(operatorContextKey);
    const { method } = request;
    // What is not of the relay's own package, server reflection, tells nothing of what is stored.
    const isOurs = method.parent.typeName.startsWith("relay.admin.v1.");
    if (operator !== undefined && (!isOurs || mayCall(operator.role, method))) return next(request);
    const { name: resource, publicKey } = refusedResource(request.stream ? {} : request.message);
    const record: AuditRecord = {
      id: newAuditId(),
      at: now(),
      actor: operator?.name ?? "",
      method: `${method.parent.typeName}.${method.name}`,
      resource,
      publicKey,
      changedFields: [],
      outcome: "REFUSED",
    };
    await store.audit.add(record).catch((error: unknown) => onFault("audit", error));
    throw new ConnectError(`This admin token is read-only; ${method.name} is for operators.`, Code.PermissionDenied);
  };
}
