import type { Application } from "../applications/application.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import { applicationResource } from "./resource.js";

/** How long calls are captured unless told: long enough to make the call in question again. Minutes. */
export const DEFAULT_CAPTURE_MINUTES = 10;
/** What is captured may be personal: nobody should forget that it is on. Minutes. */
export const MAX_CAPTURE_MINUTES = 60;

/**
 * Captures headers and bodies of an application's calls for some minutes from now, or not any more for 0. Undefined when
 * there is no such application.
 */
export async function captureCalls(
  administration: Administration,
  publicKey: string,
  minutes: number,
): Promise<Application | undefined> {
  const method = minutes === 0 ? "StopCallCapture" : "StartCallCapture";
  const audit = auditEntryFrom(
    administration,
    `CallRecordService.${method}`,
    applicationResource(publicKey),
    minutes === 0 ? [] : ["duration"],
  );
  const now = administration.now();
  const captureUntil = minutes === 0 ? 0 : now + minutes * 60_000;
  return administration.store.applications.update(publicKey, { captureUntil }, now, { audit });
}
