import { createAttachments } from "../lib/attachments.js";
import { createRedactor, type Redactor } from "../redaction/redact.js";
import type { Secret } from "../sealing/secret.js";

/** Gives the redactor for the secrets that were sent with a call. */
export type RedactorFor = (secrets: readonly Secret[]) => Redactor;

/**
 * Makes the spellings of a secret once, as long as whoever opened the secret keeps it: one secret is all that most calls
 * send, and making its spellings costs more than searching a small answer for them.
 */
export function createRedactors(): RedactorFor {
  const made = createAttachments<Secret, Redactor>();
  return (secrets) => {
    const [only] = secrets;
    if (only === undefined || secrets.length > 1) return createRedactor(secrets.map((secret) => secret.reveal()));
    const known = made.get(only);
    if (known !== undefined) return known;
    const redactor = createRedactor([only.reveal()]);
    made.set(only, redactor);
    return redactor;
  };
}
