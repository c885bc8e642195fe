import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import { createPrivateKey, sealPrivateKeyHash } from "../applications/private-key.js";
import { createPublicKey } from "../applications/public-key.js";
import type { OpenStore } from "./open-store.js";

/** What an operator decides about a new application; a public key is made when none is given. */
export interface CreateApplicationInput
  extends Pick<
    Application,
    | "name"
    | "callerAuth"
    | "allowedOrigins"
    | "allowedAddresses"
    | "allowedRedirectUris"
    | "callsPerMinute"
    | "connectionCallsPerMinute"
  > {
  readonly publicKey: string | undefined;
}

/** Stores a new application. The private key is only here: the store has its sealed hash. */
export async function createApplication(
  { store, sealer }: Pick<OpenStore, "store" | "sealer">,
  { publicKey = createPublicKey(), ...input }: CreateApplicationInput,
): Promise<{ readonly application: Application; readonly privateKey: string }> {
  const privateKey = createPrivateKey();
  const id = randomUUID();
  const now = Date.now();
  const application: Application = {
    ...input,
    id,
    publicKey,
    privateKeyHash: sealPrivateKeyHash(sealer, id, privateKey),
    state: "ACTIVE",
    captureUntil: 0,
    createdAt: now,
    updatedAt: now,
  };
  await store.applications.create(application);
  return { application, privateKey };
}
