import { createHmac, randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { Parsed } from "../applications/application.js";
import { parseUrl } from "../lib/parse-url.js";
import { openSealed, type SealBinding, type Sealer } from "../sealing/seal.js";
import { Secret } from "../sealing/secret.js";
import { decideAddress } from "../upstream/address.js";
import type { DueEvent, WebhookEndpoint } from "./webhook-store.js";

const MAX_LENGTH = 2048;

/**
 * Reads the address that an application's events are sent to: https, or http to this machine where that is allowed.
 * What a host name resolves to is judged when it is dialled.
 */
export function parseWebhookUri(text: string, policy: { readonly allowLoopback: boolean }): Parsed {
  if (text.length > MAX_LENGTH) return { problem: `must have at most ${MAX_LENGTH} characters` };
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(text) ? parseUrl(text) : undefined;
  if (url === undefined) return { problem: "must be an https address" };
  if (text.includes("#") || url.username !== "" || url.password !== "") {
    return { problem: "must have neither a fragment nor a name and password" };
  }
  if (url.href !== text && url.href !== `${text}/`) return { problem: `must be written as ${url.href}` };
  return hostProblem(url, policy) ?? { value: url.href };
}

function hostProblem({ protocol, hostname }: URL, { allowLoopback }: { readonly allowLoopback: boolean }) {
  const address = hostname.replace(/^\[|\]$/g, "");
  const { result, rule } =
    isIP(address) === 0
      ? { result: "allow", rule: hostname === "localhost" ? "loopback" : "name" }
      : decideAddress(address, { allowLoopback: true, allowPrivateNetwork: false });
  if (result === "deny") return { problem: "must not be an address of a private or special network" };
  if (rule === "loopback" && !allowLoopback) {
    return { problem: "is on this machine; that is only for development, with RELAY_ALLOW_LOOPBACK=true" };
  }
  const isSecure = protocol === "https:" || rule === "loopback";
  return isSecure ? undefined : { problem: "must use https" };
}

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
