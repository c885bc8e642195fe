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

/** Text for a relay that cannot be reached. */
export function unreachable(relayUrl: string, code: string): string {
  return `No relay answers at ${relayUrl} (${code}). Start it with 'relay serve', or name another one with --relay.`;
}
