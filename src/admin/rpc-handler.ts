import { create, type DescService } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  createContextValues,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import {
  type AuditRecord as AuditRecordMessage,
  AuditRecordSchema,
  AuditService,
  AuditRecord_Outcome as Outcome,
} from "../../gen/relay/admin/v1/audit_pb.js";
import { CallService } from "../../gen/relay/admin/v1/call_pb.js";
import { CallRecordService } from "../../gen/relay/admin/v1/call_record_pb.js";
import { ConnectionService } from "../../gen/relay/admin/v1/connection_pb.js";
import { OAuthClientService } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import { OverviewService } from "../../gen/relay/admin/v1/overview_pb.js";
import { ProviderService } from "../../gen/relay/admin/v1/provider_service_pb.js";
import { Session_Role as SessionRole, SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { WebhookService } from "../../gen/relay/admin/v1/webhook_pb.js";
import { createRpcAdapter } from "../api/rpc/adapter.js";
import { createReflectionService } from "../api/rpc/reflection.js";
import { requestContextKey } from "../api/rpc/relay-service.js";
import { JSON_OPTIONS } from "../api/rpc/row.js";
import { ApplicationExistsError } from "../applications/application.js";
import { withoutCallerFields } from "../applications/caller.js";
import { createBudget } from "../call/budget.js";
import type { PathHandler } from "../http/dispatch.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../http/exchange.js";
import { identityOf } from "../http/identity.js";
import { type AuditRecord, ChangedMeanwhileError } from "../model/audit.js";
import { type Reason, RelayError } from "../model/errors.js";
import { auditIdBefore } from "./administration.js";
import { type Admit, type Operator, operatorContextKey, type Refused, type Role } from "./admit.js";
import { createApplicationService } from "./application-service.js";
import { createCallRecordService, MAX_WATCH_MS } from "./call-record-service.js";
import { createCallService } from "./call-service.js";
import { createConnectionService } from "./connection-service.js";
import { createOAuthClientService, OAuthClientExistsError } from "./oauth-client-service.js";
import { createOverviewService } from "./overview-service.js";
import { createProviderService } from "./provider-service.js";
import { requireRole } from "./roles.js";
import { type AdminOptions, NAME_PART, pageFrom, pageOfRest, timeFrom } from "./standard-methods.js";
import { createWebhookService } from "./webhook-service.js";

/** The largest message contains a token response of 64 KiB, or an application's lists. */
const MAX_REQUEST_BYTES = 256 * 1024;
/** The largest page takes far less. */
const MAX_TIMEOUT_MS = 60_000;
/** Operators are few. This bounds what one with a token can occupy, separately from the budget of calls. */
const BUDGET = { maxInFlight: 64, maxBufferedBytes: 32 * 1024 * 1024 };
/**
 * As on the public port: requests for reflection and watching contain only names. Small, because the first message of a
 * stream is not read in blocks: 200,000 chunks of one byte would block the event loop, which also serves calls, for
 * half a minute.
 */
const NAMES_ONLY = { readMaxBytes: 4096 };
/** Matches unknown methods too: only operators learn whether a method exists. */
const PATH = /^\/(?:relay\.admin\.v1|grpc\.reflection\.v1)\./;

/** A service, and how its methods are made and limited. */
function serviceOf<Service extends DescService>(
  service: Service,
  create: (options: AdminOptions) => ServiceImpl<Service>,
  limits?: Partial<ConnectRouterOptions>,
) {
  const add = (router: ConnectRouter, options: AdminOptions) => router.service(service, create(options), limits);
  return { service, add };
}

const SERVICES = [
  serviceOf(ApplicationService, createApplicationService),
  serviceOf(OAuthClientService, createOAuthClientService),
  serviceOf(ConnectionService, createConnectionService),
  serviceOf(WebhookService, createWebhookService),
  serviceOf(ProviderService, createProviderService),
  serviceOf(AuditService, createAuditService),
  serviceOf(CallRecordService, createCallRecordService, { ...NAMES_ONLY, maxTimeoutMs: MAX_WATCH_MS }),
  serviceOf(CallService, createCallService),
  serviceOf(OverviewService, createOverviewService),
  serviceOf(SessionService, createSessionService),
];

/** The services of the administration port. roles.ts decides who may call which method. */
export const ADMIN_SERVICES: readonly DescService[] = SERVICES.map(({ service }) => service);

/** Connect, gRPC and gRPC-Web for the services of relay.admin.v1 and for reflection. All require a token. */
export function createAdminRpcHandler(options: AdminOptions, admit: Admit): PathHandler {
  const { onFault } = options;
  const operators = new WeakMap<HttpRequest, Operator>();
  const rpc = createRpcAdapter({
    routes: (router) => addServices(router, options),
    interceptors: [translateErrors(onFault), requireRole(options)],
    budget: createBudget(BUDGET),
    clientAddress: options.clientAddress,
    contextValues: (request, address, memory) =>
      createContextValues()
        .set(operatorContextKey, operators.get(request))
        .set(requestContextKey, {
          // The header fields are the operator's; they do not prove an application.
          caller: withoutCallerFields(address),
          identity: identityOf(request),
          startedAt: performance.now(),
          memory,
        }),
    // Only the port's own pages may call from a browser.
    listsOrigin: async () => false,
    onFault,
    readMaxBytes: MAX_REQUEST_BYTES,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    jsonOptions: JSON_OPTIONS,
  });
  const answer: PathHandler = async (request, response, path) => {
    // Before a byte of the body is read.
    const admission = await admit(request);
    if (!admission.isAdmitted) return answerNotAdmitted(request, response, admission);
    operators.set(request, admission.operator);
    // Some answers hold a secret, this once (as RFC 6749 section 5.1 asks of tokens).
    response.setHeader("cache-control", "no-store");
    await (rpc(request, response, path) ?? answerPlain(response, 404, "Not found."));
  };
  return (request, response, path) => (PATH.test(path) ? answer(request, response, path) : undefined);
}

function addServices(router: ConnectRouter, options: AdminOptions): void {
  for (const { add } of SERVICES) add(router, options);
  router.service(ServerReflection, createReflectionService([...ADMIN_SERVICES, ServerReflection]), NAMES_ONLY);
}

/** A refusal as RPC code, HTTP status and text. */
interface Refusal {
  readonly code: Code;
  readonly status: number;
  readonly text: string;
}

const UNAUTHENTICATED: Refusal = {
  code: Code.Unauthenticated,
  status: 401,
  text: "Send an admin token: Authorization: Bearer TOKEN, with a token that was in RELAY_ADMIN_TOKEN_FILE when the relay started.",
};

const UNKNOWN: Refusal = {
  code: Code.Unavailable,
  status: 503,
  text: "The relay cannot read its database to check whether this session was signed out. Try again in a moment; the admin token itself still works.",
};

/**
 * Answers a request that was not admitted, in its own protocol. HTTP and Connect get 401 with `WWW-Authenticate:
 * Bearer` (RFC 6750 section 3) or 429 with `Retry-After` (RFC 6585 section 4); over Connect the body is an error. gRPC
 * and gRPC-Web, whose HTTP status is always 200, get the status UNAUTHENTICATED or RESOURCE_EXHAUSTED without a
 * message.
 *
 * Answers 503 when the store cannot tell at the moment whether the session was ended.
 */
export function answerNotAdmitted(
  { headers }: HttpRequest,
  response: HttpResponse,
  { waitSeconds, isUnknown }: Refused,
): void {
  if (waitSeconds > 0) response.setHeader("retry-after", String(waitSeconds));
  else if (!isUnknown) response.setHeader("www-authenticate", challenge(headers.authorization !== undefined));
  response.setHeader("cache-control", "no-store");
  const refusal = waitSeconds > 0 ? tooMany(waitSeconds) : isUnknown ? UNKNOWN : UNAUTHENTICATED;
  const contentType = headers["content-type"] ?? "";
  if (contentType.startsWith("application/grpc")) answerGrpc(response, contentType, refusal);
  else answerConnect(response, refusal);
}

function challenge(hasToken: boolean): string {
  return `Bearer realm="relay administration"${hasToken ? ', error="invalid_token"' : ""}`;
}

function tooMany(waitSeconds: number): Refusal {
  const text = `Too many wrong admin tokens from this address. Try again in ${waitSeconds} s.`;
  return { code: Code.ResourceExhausted, status: 429, text };
}

function answerConnect(response: HttpResponse, { code, status, text }: Refusal): void {
  const body = Buffer.from(JSON.stringify({ code: codeToString(code), message: text }));
  response.writeHead(status, { "content-type": "application/json", "content-length": String(body.length) });
  response.end(body);
}

/**
 * A response without messages carries its status in the header fields: Trailers-Only of the gRPC protocol over HTTP/2.
 */
function answerGrpc(response: HttpResponse, contentType: string, { code, text }: Refusal): void {
  response.writeHead(200, {
    "content-type": contentType,
    "grpc-status": String(code),
    "grpc-message": encodeURIComponent(text).replaceAll("%20", " "),
  });
  response.end();
}

/** RPC code of each reason with which a store or a use case fails. Any other reason is a fault of the relay. */
const CODES: Partial<Record<Reason, Code>> = {
  // The application was deleted during the request.
  INVALID_PUBLIC_KEY: Code.NotFound,
  STORE_UNAVAILABLE: Code.Unavailable,
  OVERLOADED: Code.ResourceExhausted,
};

/** Translates the errors of the administration port's services. The texts of unexpected errors go only to the log. */
function translateErrors(onFault: (where: string, error: unknown) => void): Interceptor {
  const translated = (error: unknown): ConnectError => {
    if (error instanceof ConnectError) return error;
    const code = codeOf(error);
    if (code !== undefined) return new ConnectError((error as Error).message, code);
    onFault("administration", error);
    return new ConnectError("internal error", Code.Internal);
  };
  return (next) => async (request) => {
    try {
      const response = await next(request);
      return response.stream ? { ...response, message: translating(response.message, translated) } : response;
    } catch (error) {
      throw translated(error);
    }
  };
}

/** Translates the error of a stream, which may fail at any message. */
async function* translating<Message>(
  messages: AsyncIterable<Message>,
  translated: (error: unknown) => ConnectError,
): AsyncGenerator<Message, void, undefined> {
  try {
    yield* messages;
  } catch (error) {
    throw translated(error);
  }
}

function codeOf(error: unknown): Code | undefined {
  if (error instanceof ApplicationExistsError || error instanceof OAuthClientExistsError) return Code.AlreadyExists;
  if (error instanceof ChangedMeanwhileError) return Code.Aborted;
  return error instanceof RelayError ? CODES[error.reason] : undefined;
}

const ROLES: Readonly<Record<Role, SessionRole>> = {
  "read-only": SessionRole.READ_ONLY,
  operator: SessionRole.OPERATOR,
};

/** relay.admin.v1.SessionService: the operator as whom the request was authenticated. */
function createSessionService({ publicUrl }: Pick<AdminOptions, "publicUrl">): ServiceImpl<typeof SessionService> {
  return {
    getSession(_request, { values }) {
      const operator = values.get(operatorContextKey);
      const role = operator === undefined ? SessionRole.UNSPECIFIED : ROLES[operator.role];
      return { operatorName: operator?.name ?? "", role, relayUri: publicUrl() ?? "" };
    },
  };
}

/** relay.admin.v1.AuditService. */
function createAuditService({ store }: AdminOptions): ServiceImpl<typeof AuditService> {
  return {
    async listAuditRecords(request) {
      const before = timeFrom(request.beforeTime, "before_time");
      const publicKey = request.publicKey === "" ? undefined : request.publicKey;
      const page = pageFrom(request, [before, publicKey], [NAME_PART]);
      const beforeId = page.after?.[0] ?? (before === undefined ? undefined : auditIdBefore(before));
      const rest = await store.audit.list({ beforeId, publicKey, limit: page.size + 1 });
      const { rows, nextPageToken } = pageOfRest(page, rest, ({ id }) => [id]);
      return { auditRecords: rows.map(messageFromRecord), nextPageToken };
    },
  };
}

function messageFromRecord(record: AuditRecord): AuditRecordMessage {
  const { id, actor, method, resource } = record;
  return create(AuditRecordSchema, {
    id,
    createTime: timestampFromMs(record.at),
    actor,
    method,
    resource,
    changedFields: [...record.changedFields],
    outcome: Outcome[record.outcome],
  });
}
