import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AuditRecord as AuditRecordMessage,
  AuditRecordSchema,
  type AuditService,
  AuditRecord_Outcome as Outcome,
} from "../../gen/relay/admin/v1/audit_pb.js";
import type { AuditRecord } from "../model/audit.js";
import { auditIdBefore } from "./administration.js";
import { type AdminOptions, NAME_PART, pageFrom, pageOfRest, timeFrom } from "./standard-methods.js";

/** relay.admin.v1.AuditService. */
export function createAuditService({ store }: AdminOptions): ServiceImpl<typeof AuditService> {
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
