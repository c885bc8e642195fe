import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { OverviewService } from "../../gen/relay/admin/v1/overview_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import { MAX_ID_LENGTH } from "../applications/caller.js";
import { applicationResource, connectionResource, oauthClientResource, type Resource } from "./administration.js";
import { createAttempts, type Operator, operatorContextKey, type Role } from "./admit.js";
import type { AdminOptions } from "./standard-methods.js";

/** The methods that change nothing, for tokens that may only look. Every other one is for operators alone. */
const READ_ONLY: ReadonlySet<string> = new Set(
  [
    ...[ApplicationService.method.getApplication, ApplicationService.method.listApplications],
    ...[OAuthClientService.method.getOAuthClient, OAuthClientService.method.listOAuthClients],
    ...[ConnectionService.method.getConnection, ConnectionService.method.listConnections],
    ...[WebhookService.method.getWebhook, WebhookService.method.listWebhookDeliveries],
    ...[ProviderService.method.getProvider, ProviderService.method.listProviders],
    ...[CallRecordService.method.getCallRecord, CallRecordService.method.listCallRecords],
    CallRecordService.method.watchCallRecords,
    CallService.method.explainCall,
    SessionService.method.getSession,
    ...[OverviewService.method.getOverview, OverviewService.method.getFigures],
    AuditService.method.listAuditRecords,
  ].map(nameOf),
);

/** Whether a role may call a method. */
export function mayCall(role: Role, method: DescMethod): boolean {
  return role === "operator" || READ_ONLY.has(nameOf(method));
}

/** By name, not by object: the OpenAPI document is made from descriptors of its own. */
function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

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

/** What a message that nobody has checked says it is about, as far as it goes; each part cut where an id ends. */
export function refusedResource(message: object): Resource {
  const parts = partsOf(message);
  const [publicKey, userId, provider] = ["publicKey", "userId", "providerName"].map((name) => textOf(parts, name));
  if (!publicKey) return { name: "applications", publicKey: "" };
  if (userId && provider) return connectionResource(publicKey, userId, provider);
  return provider ? oauthClientResource(publicKey, provider) : applicationResource(publicKey);
}

/** The message's own fields, or those of the resource in it. */
function partsOf(message: object): object {
  const inner = ["application", "oauthClient", "webhook", "call"].map((name): unknown => Reflect.get(message, name));
  return inner.find((each): each is object => typeof each === "object" && each !== null) ?? message;
}

function textOf(parts: object, name: string): string {
  const value: unknown = Reflect.get(parts, name);
  return typeof value === "string" ? value.slice(0, MAX_ID_LENGTH).toWellFormed() : "";
}
