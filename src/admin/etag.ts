import { createHash } from "node:crypto";
import type { ChangeOptions } from "../model/change-options.js";

/** An etag of what a resource says (AIP-154). */
export function etagFrom(values: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(values)).digest("base64url").slice(0, 16);
}

/** What judges a row by the etag that a request brings; undefined when it brings none. */
export function isCurrentFrom<Row>(etag: string, etagOf: (row: Row) => string): ChangeOptions<Row>["isCurrent"] {
  return etag === "" ? undefined : (row) => etagOf(row) === etag;
}
