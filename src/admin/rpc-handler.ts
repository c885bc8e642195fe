import type { DescService } from "@bufbuild/protobuf";
import { type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import { AuditService } from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import { createRpcAdapter } from "../api/rpc/adapter.js";
import { JSON_OPTIONS } from "../api/rpc/json-options.js";
import { createReflectionService } from "../api/rpc/reflection.js";
import { requestContextKey } from "../api/rpc/request-context.js";
import { withoutCallerFields } from "../applications/caller-keys.js";
import { createBudget } from "../call/budget.js";
import type { HttpRequest } from "../http/exchange.js";
import { identityOf } from "../http/identity.js";
import type { PathHandler } from "../http/router.js";
import type { Admit } from "./admit.js";
import { createApplicationService } from "./application-service.js";
import { createAuditService } from "./audit-service.js";
import { createCallRecordService } from "./call-record-service.js";
import { createCallService } from "./call-service.js";
import { createConnectionService } from "./connection-service.js";
import { answerNotAdmitted } from "./not-admitted.js";
import { createOAuthClientService } from "./oauth-client-service.js";
import type { Operator } from "./operator.js";
import { operatorContextKey } from "./operator-context.js";
import type { AdminOptions } from "./options.js";
import { createProviderService } from "./provider-service.js";
import { requireRole } from "./require-role.js";
import { createSessionService } from "./session-service.js";
import { translateErrors } from "./translate-errors.js";
import { MAX_WATCH_MS } from "./watch-calls.js";
import { createWebhookService } from "./webhook-service.js";

/** The largest message holds a token response of 64 KiB, or an application's lists. In bytes. */
const MAX_REQUEST_BYTES = 256 * 1024;
/** The longest page takes far less. In milliseconds. */
const MAX_TIMEOUT_MS = 60_000;
/** Operators are few: this bounds what somebody with a token can hold, beside the budget of the calls. */
const BUDGET = { maxInFlight: 64, maxBufferedBytes: 32 * 1024 * 1024 };
/**
 * As on the public port: reflection takes names, and so does watching. Small, because what begins a stream is not read in
 * blocks: 200,000 chunks of one byte would hold the event loop, which serves calls as well, for half a minute.
 */
const NAMES_ONLY = { readMaxBytes: 4096 };
/** Whether there is such a method is told to operators alone. */
const PATH = /^\/(?:relay\.admin\.v1|grpc\.reflection\.v1)\./;

/** The services of the administration port; roles.ts says who may call which method. */
export const ADMIN_SERVICES: readonly DescService[] = [
  ApplicationService,
  OAuthClientService,
  ConnectionService,
  WebhookService,
  ProviderService,
  AuditService,
  CallRecordService,
  CallService,
  SessionService,
];

/** Connect, gRPC and gRPC-Web for the services of relay.admin.v1 and for reflection; nothing of it without a token. */
export function createAdminRpcHandler(options: AdminOptions, admit: Admit): PathHandler {
  const { onFault } = options;
  const operators = new WeakMap<HttpRequest, Operator>();
  const rpc = createRpcAdapter({
    routes: (router) => addServices(router, options),
    interceptors: [translateErrors(onFault), requireRole(options)],
    budget: createBudget(BUDGET),
    clientAddress: options.clientAddress,
    contextValues: (request, memory) =>
      createContextValues()
        .set(operatorContextKey, operators.get(request))
        .set(requestContextKey, {
          // The fields are the operator's, and no proof of an application.
          caller: withoutCallerFields(options.clientAddress(request)),
          identity: identityOf(request),
          startedAt: performance.now(),
          memory,
        }),
    // Browsers come from the port's own pages, or not at all.
    listsOrigin: async () => false,
    onFault,
    readMaxBytes: MAX_REQUEST_BYTES,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    jsonOptions: JSON_OPTIONS,
  });
  return (request, response, path) => {
    if (!PATH.test(path)) return undefined;
    // Before a byte of the body is read.
    const admission = admit(request);
    if (!admission.isAdmitted) {
      return Promise.resolve(answerNotAdmitted(request, response, admission.waitSeconds));
    }
    operators.set(request, admission.operator);
    // Some answers hold a secret, this once (as RFC 6749 section 5.1 asks of tokens).
    response.setHeader("cache-control", "no-store");
    return rpc(request, response, path);
  };
}

function addServices(router: ConnectRouter, options: AdminOptions): void {
  router.service(ApplicationService, createApplicationService(options));
  router.service(OAuthClientService, createOAuthClientService(options));
  router.service(ConnectionService, createConnectionService(options));
  router.service(WebhookService, createWebhookService(options));
  router.service(ProviderService, createProviderService(options));
  router.service(AuditService, createAuditService(options));
  router.service(CallRecordService, createCallRecordService(options), { ...NAMES_ONLY, maxTimeoutMs: MAX_WATCH_MS });
  router.service(CallService, createCallService(options));
  router.service(SessionService, createSessionService(options));
  router.service(ServerReflection, createReflectionService([...ADMIN_SERVICES, ServerReflection]), NAMES_ONLY);
}
