/** A protocol that the port serves: HTTP/1.0 and 1.1, or HTTP/2. */
export type Protocol = "http1" | "http2";

/** What a client with prior knowledge of HTTP/2 sends first, RFC 9113 section 3.4. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Judges the first bytes of a connection. Pure.
 *
 * @param alpnProtocol outcome of ALPN (RFC 7301): `false` for TLS without it, undefined for cleartext, where only the
 *   preface tells.
 * @returns the protocol, or undefined while the bytes may become either.
 */
export function decideProtocol(first: Buffer, alpnProtocol: string | false | undefined): Protocol | undefined {
  if (first.length === 0) return undefined;
  if (alpnProtocol !== undefined) return alpnProtocol === "h2" ? "http2" : "http1";
  const length = Math.min(first.length, PREFACE.length);
  if (first.compare(PREFACE, 0, length, 0, length) !== 0) return "http1";
  return length === PREFACE.length ? "http2" : undefined;
}
