import type { DescMessage, MessageJsonType } from "@bufbuild/protobuf";
import type { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import type { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import type { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import type { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import type { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import type { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { OverviewService } from "../../gen/relay/admin/v1/overview_pb.js";
import type { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import type { SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import type { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";

/** The methods of a service, as `Service/Method`, with their request and response types in ProtoJSON. */
type MethodsOf<Name extends string, Service extends { readonly method: object }, Kind = "unary"> = {
  [Key in keyof Service["method"] & string as Service["method"][Key] extends { methodKind: Kind }
    ? `${Name}/${Capitalize<Key>}`
    : never]: Service["method"][Key] extends {
    input: infer Input extends DescMessage;
    output: infer Output extends DescMessage;
  }
    ? [MessageJsonType<Input>, MessageJsonType<Output>]
    : never;
};

/** The methods of the administration API: request and response types. */
export type Methods = MethodsOf<"ApplicationService", typeof ApplicationService> &
  MethodsOf<"AuditService", typeof AuditService> &
  MethodsOf<"CallRecordService", typeof CallRecordService> &
  MethodsOf<"CallService", typeof CallService> &
  MethodsOf<"ConnectionService", typeof ConnectionService> &
  MethodsOf<"OAuthClientService", typeof OAuthClientService> &
  MethodsOf<"OverviewService", typeof OverviewService> &
  MethodsOf<"ProviderService", typeof ProviderService> &
  MethodsOf<"SessionService", typeof SessionService> &
  MethodsOf<"WebhookService", typeof WebhookService>;

/** The streaming methods: request and message types. */
export type Streams = MethodsOf<"CallRecordService", typeof CallRecordService, "server_streaming">;
