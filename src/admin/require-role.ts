import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { createAttempts } from "./attempts.js";
import type { Operator } from "./operator.js";
import { operatorContextKey } from "./operator-context.js";
import type { AdminOptions } from "./options.js";
import { refusedResource } from "./refused-resource.js";
import { mayCall } from "./roles.js";

/** Written down of one operator in a minute: enough to see what was tried, and no way to fill the disk. */
const MAX_REFUSALS = 60;

/**
 * Refuses methods that the operator's role does not allow, in front of every service of the administration port, and
 * writes the attempt into the audit trail; of somebody who goes on and on, the first ones of each minute.
 */
export function requireRole(options: AdminOptions): Interceptor {
  const refusals = createAttempts(MAX_REFUSALS, () => performance.now());
  return (next) => async (request) => {
    const operator = request.contextValues.get(operatorContextKey);
    const { method } = request;
    // What is not of the relay's own package, server reflection, tells nothing of what is stored.
    const isOurs = method.parent.typeName.startsWith("relay.admin.v1.");
    if (operator !== undefined && (!isOurs || mayCall(operator.role, method))) return next(request);
    const { name = "" } = operator ?? {};
    if (refusals.waitSeconds(name) === 0) {
      refusals.add(name);
      await writeDown(options, request, name);
    }
    throw new ConnectError(`This admin token is read-only; ${method.name} is for operators.`, Code.PermissionDenied);
  };
}

async function writeDown(
  { store, newAuditStamp, onFault }: AdminOptions,
  request: UnaryRequest | StreamRequest,
  actor: Operator["name"],
): Promise<void> {
  const { method } = request;
  const { name: resource, publicKey } = refusedResource(request.stream ? {} : request.message);
  const added = store.audit.add({
    ...newAuditStamp(),
    actor,
    method: `${method.parent.typeName}.${method.name}`,
    resource,
    publicKey,
    changedFields: [],
    outcome: "REFUSED",
  });
  await added.catch((error: unknown) => onFault("audit", error));
}
