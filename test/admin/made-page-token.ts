import { createHash } from "node:crypto";

/** A page token that anybody can make: of a request with these fields, and whatever key. */
export function madePageToken(filter: readonly unknown[], key: readonly string[]): string {
  const digest = createHash("sha256").update(JSON.stringify(filter)).digest("base64url").slice(0, 16);
  return Buffer.from(JSON.stringify([digest, ...key])).toString("base64url");
}
