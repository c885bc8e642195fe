import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import { ADMIN_TOKENS, type Harness } from "../support/harness.js";
import { bearer } from "./bearer.js";

/** A client of each service. */
export interface AdminClients {
  readonly applications: Client<typeof ApplicationService>;
  readonly oauthClients: Client<typeof OAuthClientService>;
  readonly connections: Client<typeof ConnectionService>;
  readonly webhooks: Client<typeof WebhookService>;
  readonly providers: Client<typeof ProviderService>;
  readonly calls: Client<typeof CallService>;
  readonly callRecords: Client<typeof CallRecordService>;
  readonly audit: Client<typeof AuditService>;
}

/** Clients that speak Connect with JSON, or gRPC, with the operator's token unless told. */
export function createAdminClients(
  { adminUrl: baseUrl }: Pick<Harness, "adminUrl">,
  protocol: "connect" | "grpc" = "connect",
  token: string = ADMIN_TOKENS.operator,
): AdminClients {
  const transport: Transport =
    protocol === "grpc"
      ? createGrpcTransport({ baseUrl, ...bearer(token) })
      : createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false, ...bearer(token) });
  return {
    applications: createClient(ApplicationService, transport),
    oauthClients: createClient(OAuthClientService, transport),
    connections: createClient(ConnectionService, transport),
    webhooks: createClient(WebhookService, transport),
    providers: createClient(ProviderService, transport),
    calls: createClient(CallService, transport),
    callRecords: createClient(CallRecordService, transport),
    audit: createClient(AuditService, transport),
  };
}
