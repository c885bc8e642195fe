/** What is wrong with the framing of a body, and the status that says so. */
export interface TransferProblem {
  readonly status: 400 | 501;
  readonly text: string;
}

const UNFRAMED: TransferProblem = {
  status: 400,
  text: "Transfer-Encoding does not say where the body ends; send chunked, once and last.",
};
const UNKNOWN: TransferProblem = {
  status: 501,
  text: "This transfer coding is not supported; send chunked alone, and a Content-Encoding instead.",
};

/**
 * Judges how the body of a request of HTTP/1.1 is framed. The parser finds out only behind the head, when a handler may
 * have answered already, and nothing that follows on the connection could be told from the body (RFC 9112 section 6.3).
 * Pure.
 *
 * @param rawHeaders names and values in turn, as received.
 * @returns undefined for `chunked`, or no transfer coding at all.
 */
export function decideTransferCoding(rawHeaders: readonly string[]): TransferProblem | undefined {
  let codings: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length !== "transfer-encoding".length || name.toLowerCase() !== "transfer-encoding") continue;
    codings = codings === undefined ? rawHeaders[index + 1] : `${codings},${rawHeaders[index + 1]}`;
  }
  if (codings === undefined || codings === "chunked") return undefined;
  const names = codings.split(",").map((each) => unpadded(each).toLowerCase());
  if (names.indexOf("chunked") !== names.length - 1) return UNFRAMED;
  return names.length === 1 ? undefined : UNKNOWN;
}

/** Without the white space of RFC 9110 section 5.6.3 around it. No pattern for its end: within the text it costs the square. */
function unpadded(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end--;
  return text.slice(0, end).replace(/^[ \t]+/, "");
}
