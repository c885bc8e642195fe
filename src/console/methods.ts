import type * as Application from "../../gen/relay/admin/v1/application_pb.js";
import type { ListAuditRecordsRequestJson, ListAuditRecordsResponseJson } from "../../gen/relay/admin/v1/audit_pb.js";
import type * as Call from "../../gen/relay/admin/v1/call_pb.js";
import type * as CallRecord from "../../gen/relay/admin/v1/call_record_pb.js";
import type * as Connection from "../../gen/relay/admin/v1/connection_pb.js";
import type * as OAuthClient from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type * as Overview from "../../gen/relay/admin/v1/overview_pb.js";
import type {
  ListProvidersRequestJson,
  ListProvidersResponseJson,
} from "../../gen/relay/admin/v1/provider_service_pb.js";
import type { GetSessionRequestJson, SessionJson } from "../../gen/relay/admin/v1/session_pb.js";
import type * as Webhook from "../../gen/relay/admin/v1/webhook_pb.js";

/** Request and response types of the methods that the console calls. */
export interface Methods {
  "ApplicationService/CreateApplication": [
    Application.CreateApplicationRequestJson,
    Application.CreateApplicationResponseJson,
  ];
  "ApplicationService/CreateCallToken": [
    Application.CreateCallTokenRequestJson,
    Application.CreateCallTokenResponseJson,
  ];
  "ApplicationService/DeleteApplication": [Application.DeleteApplicationRequestJson, object];
  "ApplicationService/GetApplication": [Application.GetApplicationRequestJson, Application.ApplicationJson];
  "ApplicationService/ListApplications": [
    Application.ListApplicationsRequestJson,
    Application.ListApplicationsResponseJson,
  ];
  "ApplicationService/RotateApplicationKey": [
    Application.RotateApplicationKeyRequestJson,
    Application.RotateApplicationKeyResponseJson,
  ];
  "ApplicationService/UpdateApplication": [Application.UpdateApplicationRequestJson, Application.ApplicationJson];
  "AuditService/ListAuditRecords": [ListAuditRecordsRequestJson, ListAuditRecordsResponseJson];
  "CallRecordService/GetCallRecord": [CallRecord.GetCallRecordRequestJson, CallRecord.CallRecordJson];
  "CallRecordService/ListCallRecords": [CallRecord.ListCallRecordsRequestJson, CallRecord.ListCallRecordsResponseJson];
  "CallRecordService/StartCallCapture": [
    CallRecord.StartCallCaptureRequestJson,
    CallRecord.StartCallCaptureResponseJson,
  ];
  "CallRecordService/StopCallCapture": [CallRecord.StopCallCaptureRequestJson, object];
  "CallService/ExplainCall": [Call.ExplainCallRequestJson, Call.ExplainCallResponseJson];
  "CallService/PerformCall": [Call.PerformCallRequestJson, Call.PerformCallResponseJson];
  "ConnectionService/CreateConnectLink": [
    Connection.CreateConnectLinkRequestJson,
    Connection.CreateConnectLinkResponseJson,
  ];
  "ConnectionService/DeleteConnection": [
    Connection.DeleteConnectionRequestJson,
    Connection.DeleteConnectionResponseJson,
  ];
  "ConnectionService/GetConnection": [Connection.GetConnectionRequestJson, Connection.ConnectionJson];
  "ConnectionService/ListConnections": [Connection.ListConnectionsRequestJson, Connection.ListConnectionsResponseJson];
  "ConnectionService/PutConnection": [Connection.PutConnectionRequestJson, Connection.ConnectionJson];
  "ConnectionService/RefreshConnection": [
    Connection.RefreshConnectionRequestJson,
    Connection.RefreshConnectionResponseJson,
  ];
  "OAuthClientService/DeleteOAuthClient": [OAuthClient.DeleteOAuthClientRequestJson, object];
  "OAuthClientService/ListOAuthClients": [
    OAuthClient.ListOAuthClientsRequestJson,
    OAuthClient.ListOAuthClientsResponseJson,
  ];
  "OAuthClientService/UpdateOAuthClient": [OAuthClient.UpdateOAuthClientRequestJson, OAuthClient.OAuthClientJson];
  "OverviewService/GetFigures": [Overview.GetFiguresRequestJson, Overview.GetFiguresResponseJson];
  "OverviewService/GetOverview": [object, Overview.OverviewJson];
  "ProviderService/ListProviders": [ListProvidersRequestJson, ListProvidersResponseJson];
  "SessionService/GetSession": [GetSessionRequestJson, SessionJson];
  "WebhookService/DeleteWebhook": [Webhook.DeleteWebhookRequestJson, object];
  "WebhookService/GetWebhook": [Webhook.GetWebhookRequestJson, Webhook.WebhookJson];
  "WebhookService/ListWebhookDeliveries": [
    Webhook.ListWebhookDeliveriesRequestJson,
    Webhook.ListWebhookDeliveriesResponseJson,
  ];
  "WebhookService/PutWebhook": [Webhook.PutWebhookRequestJson, Webhook.PutWebhookResponseJson];
  "WebhookService/SendTestEvent": [Webhook.SendTestEventRequestJson, Webhook.SendTestEventResponseJson];
}

/** Request and message types of the streaming methods. */
export interface Streams {
  "CallRecordService/WatchCallRecords": [
    CallRecord.WatchCallRecordsRequestJson,
    CallRecord.WatchCallRecordsResponseJson,
  ];
}
