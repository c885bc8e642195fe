import { randomUUID } from "node:crypto";
import { sealClientSecret } from "../tokens/client-secret.js";
import type { Secret } from "../tokens/secret.js";
import type { OpenStore } from "./open-store.js";

/** An application's OAuth client at one provider, with its secret in the clear. */
export interface PutClientInput {
  readonly applicationId: string;
  /** The provider's name, never an alias. */
  readonly providerName: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  /** As the provider writes it; empty for the definition's default. */
  readonly scope: string;
  readonly originParameters: Readonly<Record<string, string>>;
}

/** Seals the secret and stores the client; one that exists is replaced. */
export async function putClient(
  { store, sealer }: Pick<OpenStore, "store" | "sealer">,
  { clientSecret, ...input }: PutClientInput,
): Promise<void> {
  await store.oauthClients.put({
    ...input,
    id: randomUUID(),
    clientSecret: clientSecret && sealClientSecret(sealer, input, clientSecret),
    updatedAt: Date.now(),
  });
}
