import { type Command, InvalidArgumentError } from "commander";
import { auditIdBefore, parseTime } from "../admin/administration.js";
import type { AuditRecord } from "../model/audit.js";
import { addCommand, addGroup, textTable, wholeNumber, writeNote, writeResult } from "./command.js";
import { withStore } from "./open-store.js";

/** `relay audit`: what operators have changed. */
export function addAudit(program: Command): void {
  addGroup(program, {
    usage: "audit",
    about: "Show what operators changed, over the administration port and with commands.",
    examples: ["relay audit list"],
    commands: [addAuditList],
  });
}

interface ListOptions {
  readonly app?: string;
  readonly before?: number;
  readonly limit: number;
  readonly json?: boolean;
}

function addAuditList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the audit trail, newest first: who did what to which resource. It never contains a secret.",
    examples: ["relay audit list", "relay audit list --app PUBLIC_KEY --before 2026-03-01T00:00:00Z --json"],
    more: `Records are written with the change itself and are never changed or deleted. Methods are those of
the administration API; a command is recorded as the method that does the same.`,
  })
    .option("--app <public-key>", "only those about this application")
    .option("--before <time>", "only those written before, such as 2026-03-01T00:00:00Z", timeFrom)
    .option("--limit <count>", "at most this many", wholeNumber(1, 1_000_000), 100)
    .action(list);
}

async function list({ app, before, limit, ...options }: ListOptions): Promise<void> {
  const beforeId = before === undefined ? undefined : auditIdBefore(before);
  // One more than requested, to see whether there are more.
  const filter = { beforeId, publicKey: app, limit: limit + 1 };
  const found = await withStore(({ store }) => store.audit.list(filter));
  const records = found.slice(0, limit).map(jsonFromRecord);
  const rows = records.map(({ time, actor, method, resource, changedFields, outcome }) => {
    return [time, actor, outcome, method.split(".").at(-1) ?? method, resource, changedFields.join(" ")];
  });
  writeResult(options, records, textTable(["TIME", "WHO", "OUTCOME", "METHOD", "RESOURCE", "FIELDS"], rows));
  if (found.length > limit) writeNote(`There are more than ${limit}; see them with --before or --limit.`);
}

function jsonFromRecord({ id, at, actor, method, resource, changedFields, outcome }: AuditRecord) {
  return { id, time: new Date(at).toISOString(), actor, method, resource, changedFields, outcome };
}

function timeFrom(text: string): number {
  const time = /^[\d-]+(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text) ? parseTime(text) : undefined;
  if (time === undefined) throw new InvalidArgumentError("It must be a date, or a time such as 2026-03-01T00:00:00Z.");
  return time;
}
