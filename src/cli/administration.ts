import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import type { Administration } from "../administration/administration.js";
import { createAuditIds } from "../administration/audit-id.js";
import type { OpenStore } from "./open-store.js";

/** What a command changes things with; the audit trail has the operating system's user. */
export function administrationOf({ store, sealer }: Pick<OpenStore, "store" | "sealer">): Administration {
  const newAuditId = createAuditIds(Date.now, () => randomBytes(8));
  return { actor: `cli:${userName()}`, store, sealer, now: Date.now, newAuditId };
}

/** In a container the user may be a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
