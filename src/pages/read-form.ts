import { DRAIN_FACTOR, type HttpRequest } from "../http/exchange.js";
import { createChunks } from "../lib/chunks.js";
import { formatError, RelayError } from "../model/errors.js";

/** Of the connect page's form, many times over. */
const MAX_FORM_BYTES = 16 * 1024;

/** Reads a urlencoded form. Rejects with RelayError REQUEST_TOO_LARGE, or CALL_FORMAT_ERROR when it is none or cut short. */
export async function readForm(request: HttpRequest): Promise<string> {
  if (/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) return readText(request);
  throw formatError("The request is not a form. Use the page's own buttons.");
}

/** What is too much is read on for a while and thrown away, so that the browser gets to see the answer. */
function readText(request: HttpRequest): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks = createChunks();
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_FORM_BYTES) chunks.push(chunk);
      else if (length > MAX_FORM_BYTES * DRAIN_FACTOR) request.destroy();
    });
    request.on("end", () => {
      if (length <= MAX_FORM_BYTES) resolve(chunks.concat().toString());
      else reject(new RelayError("REQUEST_TOO_LARGE", "The form is too large."));
    });
    const cutShort = () => reject(formatError("The form ended before it was complete. Send it again."));
    request.on("error", cutShort);
    request.on("close", cutShort);
  });
}
