import { createChunks } from "../chunks.js";
import { formatError, RelayError } from "../errors.js";
import type { HttpRequest } from "../listener/exchange.js";

/** Of the connect page's form, many times over. */
const MAX_FORM_BYTES = 16 * 1024;

/** Reads a urlencoded form. Rejects with RelayError REQUEST_TOO_LARGE, or CALL_FORMAT_ERROR when it is none or cut short. */
export async function readForm(request: HttpRequest): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) {
    throw formatError("The request is not a form. Use the page's own buttons.");
  }
  const chunks = createChunks();
  try {
    for await (const chunk of request) {
      chunks.push(chunk as Buffer);
      if (chunks.length > MAX_FORM_BYTES) throw new RelayError("REQUEST_TOO_LARGE", "The form is too large.");
    }
  } catch (error) {
    if (error instanceof RelayError) throw error;
    throw formatError("The form ended before it was complete. Send it again.");
  }
  return chunks.concat().toString();
}
