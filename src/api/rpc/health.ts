import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../../gen/health/v1/health_pb.js";
import type { Readiness } from "../../http/readiness.js";

/** gRPC health (grpc.health.v1) for the whole server (``) and for each named service; all share one readiness. */
export function createHealthService(services: readonly string[], readiness: Readiness): ServiceImpl<typeof Health> {
  const known = new Set(["", ...services]);
  const current = async () =>
    create(HealthCheckResponseSchema, {
      status: (await readiness.problem()) === undefined ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
    });
  return {
    check(request) {
      if (!known.has(request.service)) throw new ConnectError("unknown service", Code.NotFound);
      return current();
    },
    async list() {
      const status = await current();
      return create(HealthListResponseSchema, {
        statuses: Object.fromEntries([...known].map((name) => [name, status])),
      });
    },
    async *watch(request, context) {
      if (!known.has(request.service)) {
        yield create(HealthCheckResponseSchema, { status: ServingStatus.SERVICE_UNKNOWN });
        await readiness.stopped(context.signal);
        return;
      }
      yield await current();
      await readiness.stopped(context.signal);
      if (!context.signal.aborted) yield create(HealthCheckResponseSchema, { status: ServingStatus.NOT_SERVING });
    },
  };
}
