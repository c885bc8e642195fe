import type { ServiceImpl } from "@connectrpc/connect";
import { Session_Role as SessionRole, type SessionService } from "../../gen/relay/admin/v1/session_pb.js";
import { operatorContextKey, type Role } from "./operator.js";
import type { AdminOptions } from "./options.js";

const ROLES: Readonly<Record<Role, SessionRole>> = {
  "read-only": SessionRole.READ_ONLY,
  operator: SessionRole.OPERATOR,
};

/** relay.admin.v1.SessionService: who asks, as the request was authenticated. */
export function createSessionService({
  publicUrl,
}: Pick<AdminOptions, "publicUrl">): ServiceImpl<typeof SessionService> {
  return {
    getSession(_request, { values }) {
      const operator = values.get(operatorContextKey);
      const role = operator === undefined ? SessionRole.UNSPECIFIED : ROLES[operator.role];
      return { operatorName: operator?.name ?? "", role, relayUri: publicUrl() ?? "" };
    },
  };
}
