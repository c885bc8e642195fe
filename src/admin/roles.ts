import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import { MAX_ID_LENGTH } from "../applications/caller.js";
import { applicationResource, connectionResource, oauthClientResource, type Resource } from "./administration.js";
import { createAttempts, type Operator, operatorContextKey, type Role } from "./admit.js";
import type { AdminOptions } from "./standard-methods.js";

type RolesOf<Service extends DescService> = Readonly<Record<keyof Service["method"], Role>>;

/** The weakest role that may call a method, for every method there is. */
const ROLES: ReadonlyMap<string, Readonly<Record<string, Role>>> = new Map([
  rolesOf(ApplicationService, {
    getApplication: "read-only",
    listApplications: "read-only",
    createApplication: "operator",
    updateApplication: "operator",
    deleteApplication: "operator",
    rotateApplicationKey: "operator",
    createCallToken: "operator",
  }),
  rolesOf(OAuthClientService, {
    getOAuthClient: "read-only",
    listOAuthClients: "read-only",
    createOAuthClient: "operator",
    updateOAuthClient: "operator",
    deleteOAuthClient: "operator",
  }),
  rolesOf(ConnectionService, {
    getConnection: "read-only",
    listConnections: "read-only",
    putConnection: "operator",
    deleteConnection: "operator",
  }),
  rolesOf(WebhookService, {
    getWebhook: "read-only",
    putWebhook: "operator",
    deleteWebhook: "operator",
  }),
  rolesOf(ProviderService, {
    getProvider: "read-only",
    listProviders: "read-only",
  }),
  rolesOf(CallRecordService, {
    getCallRecord: "read-only",
    listCallRecords: "read-only",
    watchCallRecords: "read-only",
    startCallCapture: "operator",
    stopCallCapture: "operator",
  }),
  rolesOf(CallService, {
    explainCall: "read-only",
    performCall: "operator",
  }),
  rolesOf(SessionService, {
    getSession: "read-only",
  }),
  rolesOf(AuditService, {
    listAuditRecords: "read-only",
  }),
]);

/** Whether a role may call a method. One that the table does not have is for operators alone. */
export function mayCall(role: Role, { parent, localName }: Pick<DescMethod, "parent" | "localName">): boolean {
  return role === "operator" || ROLES.get(parent.typeName)?.[localName] === "read-only";
}

/** The compiler asks for every method of the service. */
function rolesOf<Service extends DescService>(service: Service, roles: RolesOf<Service>) {
  return [service.typeName, roles as Readonly<Record<string, Role>>] as const;
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
