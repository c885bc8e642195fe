import { createHmac } from "node:crypto";
import type { Secret } from "../tokens/secret.js";
import { keyFromSecret } from "./secret.js";
import type { DueEvent } from "./webhook-store.js";

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
