import { createHmac, randomBytes } from "node:crypto";
import { openSealed, type SealBinding, type Sealer } from "../sealing/seal.js";
import { Secret } from "../sealing/secret.js";
import type { DueEvent, WebhookEndpoint } from "./webhook-store.js";

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
function keyFromSecret(secret: Secret): Buffer {
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

/**
 * The header fields that prove where an event comes from, as the Standard Webhooks specification has them. Pure.
 *
 * @param now when it is sent, milliseconds since the epoch: receivers refuse what was signed long ago.
 * @returns name, value, name, value, …
 */
export function signatureFields({ id, payload }: Pick<DueEvent, "id" | "payload">, secret: Secret, now: number) {
  const timestamp = Math.floor(now / 1000);
  const signature = createHmac("sha256", keyFromSecret(secret))
    .update(`${id}.${timestamp}.${payload}`)
    .digest("base64");
  return ["webhook-id", id, "webhook-timestamp", String(timestamp), "webhook-signature", `v1,${signature}`];
}
