import { randomBytes } from "node:crypto";
import { openSealed } from "../tokens/open-sealed.js";
import type { Sealer } from "../tokens/seal.js";
import type { SealBinding } from "../tokens/seal-blob.js";
import { Secret } from "../tokens/secret.js";
import type { WebhookEndpoint } from "./webhook-store.js";

/** Of the specification's symmetric secrets; what follows is base64. */
const PREFIX = "whsec_";
/** As long as what HMAC-SHA256 makes of it; the specification asks for 24 to 64. */
const KEY_BYTES = 32;

const DOES_NOT_OPEN =
  "The stored webhook secret cannot be opened. The operator must restore the key file, or set the webhook again.";

/** Makes the signing secret of a new endpoint, in the text form of the Standard Webhooks specification. */
export function createWebhookSecret(): Secret {
  return new Secret(PREFIX + randomBytes(KEY_BYTES).toString("base64"));
}

/** The octets that sign. */
export function keyFromSecret(secret: Secret): Buffer {
  return Buffer.from(secret.reveal().slice(PREFIX.length), "base64");
}

/** Seals the signing secret of an application's endpoint. */
export function sealWebhookSecret(sealer: Sealer, applicationId: string, secret: Secret): Uint8Array {
  return sealer.seal(secret.reveal(), bindingOf(applicationId));
}

/** The signing secret in the clear. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openWebhookSecret(sealer: Sealer, endpoint: WebhookEndpoint): Secret {
  const { applicationId, secret } = endpoint;
  return new Secret(openSealed(sealer, secret, bindingOf(applicationId), DOES_NOT_OPEN).toString());
}

function bindingOf(applicationId: string): SealBinding {
  return { table: "webhook_endpoints", column: "secret", applicationId, userId: "", providerName: "" };
}
