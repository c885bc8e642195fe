import type { Application, ApplicationPatch } from "../applications/application.js";
import type { ChangeOptions } from "../model/change-options.js";
import type { Administration } from "./administration.js";
import { FIELD_NAMES } from "./application-fields.js";
import { auditEntryFrom } from "./audit-entry.js";
import { applicationResource } from "./resource.js";

/** Changes what the patch names. Undefined when there is no such application. Rejects with ChangedMeanwhileError. */
export async function updateApplication(
  administration: Administration,
  publicKey: string,
  patch: Omit<ApplicationPatch, "privateKeyHash">,
  isCurrent?: ChangeOptions<Application>["isCurrent"],
): Promise<Application | undefined> {
  const fields = (Object.keys(patch) as Array<keyof typeof patch>).map((member) => FIELD_NAMES[member]);
  const audit = auditEntryFrom(
    administration,
    "ApplicationService.UpdateApplication",
    applicationResource(publicKey),
    fields,
  );
  const { store, now } = administration;
  return store.applications.update(publicKey, patch, now(), { audit, isCurrent });
}
