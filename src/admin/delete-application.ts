import type { Application } from "../applications/application.js";
import type { ChangeOptions } from "../model/change-options.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import { applicationResource } from "./resource.js";

/** Deletes an application with everything of it. False when there was none. Rejects with ChangedMeanwhileError. */
export function deleteApplication(
  administration: Administration,
  publicKey: string,
  isCurrent?: ChangeOptions<Application>["isCurrent"],
): Promise<boolean> {
  const resource = applicationResource(publicKey);
  const audit = auditEntryFrom(administration, "ApplicationService.DeleteApplication", resource);
  return administration.store.applications.delete(publicKey, { audit, isCurrent });
}
