import { decideHost } from "./host.js";
import type { ListenerLimits } from "./limits.js";
import { decideTransferCoding } from "./transfer-coding.js";

/** An answer given in front of the handler. `text` is sent to the client. */
export interface Refusal {
  readonly status: 400 | 431 | 501;
  readonly text: string;
}

const VERSION: Refusal = { status: 400, text: "This HTTP version is not supported; send HTTP/1.1 or HTTP/2." };
const TOO_MANY: Refusal = { status: 431, text: "The request has too many header fields; send fewer." };
const TOO_LARGE: Refusal = { status: 431, text: "The request's header fields are too large; send less." };

/**
 * Judges what every request must satisfy before any handler sees it; see {@link decideHost} for `acceptsHost`.
 *
 * @param spoken major version of the protocol the connection speaks. An HTTP/1 parser also accepts request lines
 *   of HTTP/0.9 and HTTP/2.0, which have no meaning there (RFC 9110 section 2.5).
 * @param rawHeaders names and values in turn, as received.
 * @returns the refusal, or undefined when the request may pass.
 */
export function decideRequest(
  spoken: 1 | 2,
  httpVersionMajor: number,
  rawHeaders: readonly string[],
  { maxHeaders, maxHeaderBytes }: Pick<ListenerLimits, "maxHeaders" | "maxHeaderBytes">,
  acceptsHost?: (value: string) => boolean,
): Refusal | undefined {
  if (httpVersionMajor !== spoken) return VERSION;
  // Counted raw: the parser drops fields over its own limit from `headers` without a word.
  if (rawHeaders.length > maxHeaders * 2) return TOO_MANY;
  // The parser of HTTP/1 has counted already; HTTP/2 holds a client to it only after the client has read our settings.
  if (spoken === 2 && fieldBytes(rawHeaders) > maxHeaderBytes) return TOO_LARGE;
  const problem = decideHost(rawHeaders, acceptsHost);
  if (problem !== undefined) return { status: 400, text: problem };
  // Node.js refuses the field on HTTP/2 (RFC 9113 section 8.2.2).
  return spoken === 1 ? decideTransferCoding(rawHeaders) : undefined;
}

/** Size of a field section as RFC 9113 section 6.5.2 defines it: 32 bytes for each field beside name and value. */
function fieldBytes(rawHeaders: readonly string[]): number {
  let bytes = rawHeaders.length * 16;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
