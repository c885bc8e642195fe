import { createPrivateKey, sealPrivateKeyHash } from "../applications/private-key.js";
import type { Administration } from "./administration.js";
import { FIELD_NAMES } from "./application-fields.js";
import { auditEntryFrom } from "./audit-entry.js";
import { applicationResource } from "./resource.js";

/** Replaces the private key of an application, and resolves to the new one. Undefined when there is no such one. */
export async function rotateApplicationKey(
  administration: Administration,
  publicKey: string,
): Promise<string | undefined> {
  const { store, sealer, now } = administration;
  const application = await store.applications.findByPublicKey(publicKey);
  if (application === undefined) return undefined;
  const privateKey = createPrivateKey();
  const privateKeyHash = sealPrivateKeyHash(sealer, application.id, privateKey);
  const audit = auditEntryFrom(
    administration,
    "ApplicationService.RotateApplicationKey",
    applicationResource(publicKey),
    [FIELD_NAMES.privateKeyHash],
  );
  // An application that was made anew under this key meanwhile has another id, to which the hash is not sealed.
  const isCurrent = ({ id }: { readonly id: string }) => id === application.id;
  const updated = await store.applications.update(publicKey, { privateKeyHash }, now(), { audit, isCurrent });
  return updated === undefined ? undefined : privateKey;
}
