import { randomUUID } from "node:crypto";
import type { Application, ApplicationSettings } from "../applications/application.js";
import { createPrivateKey, sealPrivateKeyHash } from "../applications/private-key.js";
import { createPublicKey } from "../applications/public-key.js";
import type { Administration } from "./administration.js";
import { FIELD_NAMES } from "./application-fields.js";
import { auditEntryFrom } from "./audit-entry.js";
import { applicationResource } from "./resource.js";

/** What an operator decides about a new application; a public key is made when none is given. */
export interface CreateApplicationInput extends ApplicationSettings {
  readonly publicKey: string | undefined;
}

/**
 * Stores a new application. The private key is only here: the store has its sealed hash. Rejects with
 * ApplicationExistsError.
 */
export async function createApplication(
  administration: Administration,
  { publicKey = createPublicKey(), ...input }: CreateApplicationInput,
): Promise<{ readonly application: Application; readonly privateKey: string }> {
  const { store, sealer, now } = administration;
  const privateKey = createPrivateKey();
  const id = randomUUID();
  const at = now();
  const privateKeyHash = sealPrivateKeyHash(sealer, id, privateKey);
  const made = { id, publicKey, privateKeyHash, captureUntil: 0, createdAt: at, updatedAt: at };
  const application: Application = { ...input, ...made };
  const fields = (Object.keys(input) as Array<keyof typeof input>).map((member) => FIELD_NAMES[member]);
  const resource = applicationResource(publicKey);
  await store.applications.create(
    application,
    auditEntryFrom(administration, "ApplicationService.CreateApplication", resource, fields),
  );
  return { application, privateKey };
}
