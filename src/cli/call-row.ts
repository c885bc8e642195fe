import type { ResultRow } from "../../gen/relay/v1/relay_pb.js";

/** Protocols of the public port. */
export const PROTOCOLS = ["connect", "grpc", "grpc-web", "rest"] as const;

/** One of {@link PROTOCOLS}. */
export type Protocol = (typeof PROTOCOLS)[number];

/** Where and how a call goes to the relay. */
export interface CallTarget {
  /** `http://host:port`, without a slash at the end. */
  readonly relayUrl: string;
  readonly privateKey: string | undefined;
  /** The provider's body as mapped `data`, for people and programs, or as its exact bytes. */
  readonly responseMode: "data" | "body";
}

/** The one row of the envelope. */
export interface CallRow {
  readonly row: ResultRow;
  /** ProtoJSON; over REST exactly as the relay wrote it. */
  readonly json: string;
}

/** A call ends by the relay's own deadline, 120 s at most; this is for a relay that hangs. In milliseconds. */
export const CALL_TIMEOUT_MS = 130_000;

/** Largest answer that is read: far over the relay's default limit, far below what memory and strings hold. */
export const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** Text for a relay that cannot be reached, or with which no trusted connection can be made. */
export function unreachable(relayUrl: string, code: string): string {
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `The certificate of ${relayUrl} is for another name (${code}). Name the relay with --relay as its certificate does.`;
  }
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    return `The certificate of ${relayUrl} is not valid at this time (${code}). Replace it, or set the clock.`;
  }
  if (/CERT|^UNABLE_TO_|^INVALID_(?:CA|PURPOSE)$/.test(code)) {
    return `The certificate of ${relayUrl} is not trusted here (${code}). For a private one set NODE_EXTRA_CA_CERTS to a file with the certificate of whoever signed it, or with itself where nobody else did.`;
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) {
    return `${relayUrl} does not speak TLS as asked (${code}). Is it http rather than https? --relay names the address.`;
  }
  return `No relay answers at ${relayUrl} (${code}). Start it with 'relay serve', or name another one with --relay.`;
}
