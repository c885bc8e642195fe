import { formatError } from "../model/errors.js";

/** Ids and keys; nothing longer is one (threats I19, T02). In UTF-16 code units. */
export const MAX_ID_LENGTH = 256;

/** What everything done for a user must name. Throws RelayError CALL_FORMAT_ERROR that names the field. */
export function requireCallerIds({ publicKey, userId }: { readonly publicKey: string; readonly userId: string }): void {
  requireId(publicKey, "public_key");
  requireId(userId, "user_id");
}

function requireId(value: string, field: string): void {
  if (value === "") throw formatError(`${field} is missing.`);
  if (value.length > MAX_ID_LENGTH) {
    throw formatError(`${field} is longer than ${MAX_ID_LENGTH} characters.`);
  }
  // UTF-8 cannot hold a lone surrogate: two different ids would become the same bytes in the store.
  if (!value.isWellFormed()) throw formatError(`${field} is not well-formed Unicode.`);
}
