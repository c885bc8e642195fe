import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import type { Role } from "./operator.js";

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
