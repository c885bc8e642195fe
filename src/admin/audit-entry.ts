import type { AuditEntry } from "../model/audit.js";
import type { Administration } from "./administration.js";
import type { Resource } from "./resource.js";

/** A method that changes something, without its package. */
export type ChangingMethod =
  | `ApplicationService.${"Create" | "Update" | "Delete"}Application`
  | "ApplicationService.RotateApplicationKey"
  | `OAuthClientService.${"Create" | "Update" | "Delete"}OAuthClient`
  | `ConnectionService.${"Put" | "Delete"}Connection`
  | `WebhookService.${"Put" | "Delete"}Webhook`
  | `CallRecordService.${"Start" | "Stop"}CallCapture`
  | "CallService.PerformCall";

/** A command that no method does the same as. */
type ChangingCommand = "relay key rotate";

/** The entry that is written with a change. */
export function auditEntryFrom(
  { actor, newAuditStamp }: Pick<Administration, "actor" | "newAuditStamp">,
  method: ChangingMethod | ChangingCommand,
  { name, publicKey }: Resource,
  changedFields: readonly string[] = [],
): AuditEntry {
  return {
    ...newAuditStamp(),
    actor,
    method: method.startsWith("relay ") ? method : `relay.admin.v1.${method}`,
    resource: name,
    publicKey,
    changedFields,
  };
}
