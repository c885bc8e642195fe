import { formatError } from "../model/errors.js";

/** Most characters of a name that is written anew: to encode ten mebibytes in one go takes two seconds. */
const MAX_LENGTH = 16 * 1024;

/** A name that is going to be encoded. Fails with CALL_FORMAT_ERROR when it is too long. @param field whose name it is. */
export function requireShortName(name: string, field: string): string {
  if (name.length <= MAX_LENGTH) return name;
  throw formatError(`${field} has a name of more than ${MAX_LENGTH} characters. Shorten it.`);
}

/** A member's place in the call, safe to repeat to the caller: short and without control characters. */
export function fieldOf(key: string, index: number): string {
  return /^[\w.$-]{1,64}$/.test(key) ? `payload.${key}` : `payload member ${index + 1}`;
}
