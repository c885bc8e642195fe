import { randomBytes } from "node:crypto";
import type { Parsed } from "./parsed.js";

/** A new public key: `relay_pk_` and 32 random characters. It names the application and opens nothing by itself. */
export function createPublicKey(): string {
  return `relay_pk_${randomBytes(24).toString("base64url")}`;
}

/** Reads a public key an operator brings from another service: 8 to 256 characters of visible ASCII. */
export function parsePublicKey(text: string): Parsed {
  if (text.length < 8 || text.length > 256) return { problem: "must have 8 to 256 characters" };
  return /^[\x21-\x7E]+$/.test(text) ? { value: text } : { problem: "must be visible ASCII, without spaces" };
}
