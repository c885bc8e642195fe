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

/** Methods that change nothing, allowed for the role `read-only`. All others require the role `operator`. */
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

/** Methods are compared by name: the OpenAPI document is generated from other descriptor objects. */
function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** Most refusals audited per operator and minute: enough to see what was tried, too few to fill the disk. */
const MAX_REFUSALS = 60;

/**
 * Interceptor for every service of the administration port: refuses methods that the operator's role does not allow.
 * Writes each refusal to the audit trail, up to {@link MAX_REFUSALS} per operator and minute.
 */
export function requireRole(options: AdminOptions): Interceptor {
  const refusals = createAttempts(MAX_REFUSALS, () => performance.now());
  return (next) => async (request) => {
    const operator = request.contextValues.get(operatorContextKey);
    const { method } = request;
    // Methods outside the relay's own package (server reflection) reveal nothing that is stored.
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

/** The resource that an unvalidated message names, as far as it names one. Each part is cut to the length of an id. */
export function refusedResource(message: object): Resource {
  const parts = partsOf(message);
  const [publicKey, userId, provider] = ["publicKey", "userId", "providerName"].map((name) => textOf(parts, name));
  if (!publicKey) return { name: "applications", publicKey: "" };
  if (userId && provider) return connectionResource(publicKey, userId, provider);
  return provider ? oauthClientResource(publicKey, provider) : applicationResource(publicKey);
}

/** The nested resource of the message if it has one, otherwise the message itself. */
function partsOf(message: object): object {
  const inner = ["application", "oauthClient", "webhook", "call"].map((name): unknown => Reflect.get(message, name));
  return inner.find((each): each is object => typeof each === "object" && each !== null) ?? message;
}

function textOf(parts: object, name: string): string {
  const value: unknown = Reflect.get(parts, name);
  return typeof value === "string" ? value.slice(0, MAX_ID_LENGTH).toWellFormed() : "";
}
