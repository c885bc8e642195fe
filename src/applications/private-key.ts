import { createHash, createHmac, randomBytes } from "node:crypto";
import { openSealed } from "../tokens/open-sealed.js";
import type { Sealer } from "../tokens/seal.js";
import type { SealBinding } from "../tokens/seal-blob.js";
import type { Application } from "./application.js";

const DOES_NOT_OPEN =
  "This application's stored key cannot be opened. The operator must restore the store or its key file, or give the application a new private key.";

/**
 * A new private key, to be shown once: `relay_sk_` and 48 random bytes in base64url, 73 characters.
 *
 * It is longer than 64 bytes on purpose. HMAC-SHA256 replaces a key longer than its 64-byte block by the key's SHA-256
 * (RFC 2104 section 2), so HMAC(private key, user id) equals HMAC(SHA-256(private key), user id): the hash that the
 * store keeps verifies user signatures, and the key itself is kept nowhere. A shorter key would have to be stored.
 */
export function createPrivateKey(): string {
  return `relay_sk_${randomBytes(48).toString("base64url")}`;
}

/** SHA-256 of a private key. It can sign for any user, so it is a secret too and stored only sealed. */
export function hashPrivateKey(privateKey: string): Buffer {
  return createHash("sha256").update(privateKey).digest();
}

/** HMAC-SHA256 of a user id, made from the private key's hash; the same as from the key itself. */
export function signUserId(privateKeyHash: Uint8Array, userId: string): Buffer {
  return createHmac("sha256", privateKeyHash).update(userId).digest();
}

/** The hash of a private key as an application row keeps it. */
export function sealPrivateKeyHash(sealer: Sealer, applicationId: string, privateKey: string): Uint8Array {
  return sealer.seal(hashPrivateKey(privateKey), bindingOf(applicationId));
}

/** Opens the stored hash. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openPrivateKeyHash(
  sealer: Sealer,
  { id, privateKeyHash }: Pick<Application, "id" | "privateKeyHash">,
): Buffer {
  return openSealed(sealer, privateKeyHash, bindingOf(id), DOES_NOT_OPEN);
}

function bindingOf(applicationId: string): SealBinding {
  return { table: "applications", column: "private_key_hash", applicationId, userId: "", providerName: "" };
}
