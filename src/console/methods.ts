import type {
  ListApplicationsRequestJson,
  ListApplicationsResponseJson,
} from "../../gen/relay/admin/v1/application_pb.js";
import type {
  ExplainCallRequestJson,
  ExplainCallResponseJson,
  PerformCallRequestJson,
  PerformCallResponseJson,
} from "../../gen/relay/admin/v1/call_pb.js";
import type {
  CallRecordJson,
  GetCallRecordRequestJson,
  ListCallRecordsRequestJson,
  ListCallRecordsResponseJson,
  WatchCallRecordsRequestJson,
  WatchCallRecordsResponseJson,
} from "../../gen/relay/admin/v1/call_record_pb.js";
import type {
  ListConnectionsRequestJson,
  ListConnectionsResponseJson,
} from "../../gen/relay/admin/v1/connection_pb.js";
import type {
  ListOAuthClientsRequestJson,
  ListOAuthClientsResponseJson,
} from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type {
  ListProvidersRequestJson,
  ListProvidersResponseJson,
} from "../../gen/relay/admin/v1/provider_service_pb.js";
import type { GetSessionRequestJson, SessionJson } from "../../gen/relay/admin/v1/session_pb.js";

/** The methods that the console calls: what each takes and answers. */
export interface Methods {
  "ApplicationService/ListApplications": [ListApplicationsRequestJson, ListApplicationsResponseJson];
  "CallRecordService/GetCallRecord": [GetCallRecordRequestJson, CallRecordJson];
  "CallRecordService/ListCallRecords": [ListCallRecordsRequestJson, ListCallRecordsResponseJson];
  "CallService/ExplainCall": [ExplainCallRequestJson, ExplainCallResponseJson];
  "CallService/PerformCall": [PerformCallRequestJson, PerformCallResponseJson];
  "ConnectionService/ListConnections": [ListConnectionsRequestJson, ListConnectionsResponseJson];
  "OAuthClientService/ListOAuthClients": [ListOAuthClientsRequestJson, ListOAuthClientsResponseJson];
  "ProviderService/ListProviders": [ListProvidersRequestJson, ListProvidersResponseJson];
  "SessionService/GetSession": [GetSessionRequestJson, SessionJson];
}

/** The methods that answer with a stream. */
export interface Streams {
  "CallRecordService/WatchCallRecords": [WatchCallRecordsRequestJson, WatchCallRecordsResponseJson];
}
