import { createContextValues } from "@connectrpc/connect";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ApplicationService } from "../../gen/relay/admin/v1/application_pb.js";
import type { ApplicationStore } from "../applications/application.js";
import type { PathHandler } from "../listener/router.js";
import { createBudget } from "../relay/budget.js";
import { createRpcAdapter } from "../rpc/adapter.js";
import { JSON_OPTIONS } from "../rpc/json-options.js";
import { createReflectionService } from "../rpc/reflection.js";
import { createApplicationService } from "./application-service.js";
import type { Authenticate } from "./authenticate.js";
import { operatorContextKey } from "./operator-context.js";
import { requireRole } from "./require-role.js";
import { answerUnauthenticated } from "./unauthenticated.js";

/** The largest message holds a token response of 64 KiB, or an application's lists. In bytes. */
const MAX_REQUEST_BYTES = 256 * 1024;
/** A page of a thousand rows takes far less. In milliseconds. */
const MAX_TIMEOUT_MS = 60_000;
/** Operators are few: this bounds what somebody with a token can hold, beside the budget of the calls. */
const BUDGET = { maxInFlight: 64, maxBufferedBytes: 32 * 1024 * 1024 };
/** As on the public port: reflection takes names. */
const NAMES_ONLY = { readMaxBytes: 4096 };
/** Whether there is such a method is told to operators alone. */
const PATH = /^\/(?:relay\.admin\.v1|grpc\.reflection\.v1)\./;

/** What the services of the administration port work on. */
export interface AdminRpcOptions {
  readonly authenticate: Authenticate;
  readonly applications: ApplicationStore;
  readonly onFault: (where: string, error: unknown) => void;
}

/** Connect, gRPC and gRPC-Web for the services of relay.admin.v1 and for reflection; nothing of it without a token. */
export function createAdminRpcHandler(options: AdminRpcOptions): PathHandler {
  const { authenticate, onFault } = options;
  const services = [ApplicationService];
  const rpc = createRpcAdapter({
    routes: (router) => {
      router.service(ApplicationService, createApplicationService(options));
      router.service(ServerReflection, createReflectionService([...services, ServerReflection]), NAMES_ONLY);
    },
    interceptors: [requireRole],
    budget: createBudget(BUDGET),
    contextValues: (request) => createContextValues().set(operatorContextKey, authenticate(request)),
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
    if (authenticate(request) !== undefined) return rpc(request, response, path);
    return Promise.resolve(answerUnauthenticated(request, response));
  };
}
