import { randomBytes } from "node:crypto";

/** A multipart boundary that nobody can guess (RFC 2046 section 5.1.1): 41 letters and digits. */
export function createBoundary(): string {
  return `relay${randomBytes(18).toString("hex")}`;
}
