import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import type { Administration } from "../admin/administration.js";
import { createAuditStamps } from "../admin/audit-stamp.js";
import type { OpenStore } from "./open-store.js";

/** What a command changes things with; the audit trail has the operating system's user. */
export function administrationOf({ store, sealer }: Pick<OpenStore, "store" | "sealer">): Administration {
  const newAuditStamp = createAuditStamps(Date.now, () => randomBytes(8));
  return { actor: `cli:${userName()}`, store, sealer, now: Date.now, newAuditStamp };
}

/** In a container the user may be a number that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
