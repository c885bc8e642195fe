import type { Command } from "commander";
import { addAuditList } from "./audit-list.js";
import { addGroup } from "./command.js";

/** `relay audit`: what operators have changed. */
export function addAudit(program: Command): void {
  const group = addGroup(program, {
    usage: "audit",
    about: "See what operators have changed, over the administration port and with commands.",
    examples: ["relay audit list"],
  });
  addAuditList(group);
}
